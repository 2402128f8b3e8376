"""Suppression by torchvision and supervision, which others use: the same boxes stay."""

import numpy as np
import pytest
import supervision as sv

from elements.inference.nms import nms

IOU = 0.45


def crowd(seed):
    """200 boxes of 3 classes in 40 clusters, some beyond the picture's edges; no two scores alike."""
    random = np.random.default_rng(seed)
    center = np.repeat(random.uniform(-20, 340, (40, 2)), 5, axis=0) + random.normal(0, 6, (200, 2))
    half = np.repeat(random.uniform(10, 60, (40, 2)), 5, axis=0) * random.uniform(0.8, 1.2, (200, 2))
    boxes = np.concatenate([center - half, center + half], axis=1).astype(np.float32)
    return boxes, random.permutation(np.linspace(0.1, 0.99, 200)).astype(np.float32), random.integers(0, 3, 200)


@pytest.mark.parametrize("seed", range(10))
def test_torchvision(seed):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    try:
        from torchvision.ops import batched_nms
    except (ImportError, RuntimeError) as error:  # it is built for one version of torch
        pytest.skip(f"needs a torchvision that fits the torch: {error}")
    boxes, scores, classes = crowd(seed)
    kept = batched_nms(torch.from_numpy(boxes), torch.from_numpy(scores), torch.from_numpy(classes), IOU)
    assert nms(boxes, scores, classes, IOU).tolist() == kept.tolist()
    assert 40 < len(kept) < 150


@pytest.mark.parametrize("seed", range(10))
def test_supervision(seed):
    boxes, scores, classes = crowd(seed)
    kept = sv.Detections(xyxy=boxes, confidence=scores, class_id=classes).with_nms(threshold=IOU)
    ours = sorted(scores[nms(boxes, scores, classes, IOU)].tolist())
    assert ours == sorted(kept.confidence.tolist())

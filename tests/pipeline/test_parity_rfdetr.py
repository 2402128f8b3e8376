"""RF-DETR's own `predict`, and the same network through the example class and as an ONNX export: the same boxes.

Skipped where rfdetr (dev only) or the clips are missing. Weights are random, so no score says much: the 300 best pairs
of query and class that the package gives are cut down to the one class there is.
"""

from pathlib import Path

import cv2
import numpy as np
import pytest

rfdetr = pytest.importorskip("rfdetr", reason="needs rfdetr")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.model import open_model  # noqa: E402
from elements.metadata.detections import Detections  # noqa: E402
from tests.parity import Comparison, bgr_frames, rgb_frame  # noqa: E402

SIZE = 384  # of the input: pictures of this size are not scaled by either
EXAMPLES = Path(__file__).parents[2] / "configs" / "examples"


@pytest.fixture(scope="module")
def network():
    import torch

    torch.manual_seed(0)
    return rfdetr.RFDETRNano(pretrain_weights=None, num_classes=1)


@pytest.fixture(scope="module")
def frames(shared_data):
    clip = shared_data / "videos" / "one-by-one-person-detection.mp4"
    return [cv2.resize(frame, (SIZE, SIZE)) for frame in bgr_frames(clip, 600, 3)[1:]]


@pytest.fixture(scope="module")
def wanted(network, frames):
    """What the package finds, and the lowest score that all of it has."""
    given = [network.predict(np.ascontiguousarray(frame[..., ::-1]), threshold=0) for frame in frames]
    found = [Detections(one.xyxy, one.confidence, one.class_id) for one in given]
    least = max(float(one.scores.min()) for one in found) + 1e-4
    return [one[(one.class_ids == 0) & (one.scores >= least)] for one in found], least


def assert_same(model, frames, wanted, least):
    model.load()
    sums = Comparison(least, 1)
    for frame, theirs in zip(frames, wanted, strict=True):
        (ours,) = model.infer([rgb_frame(frame)])
        sums.add(ours[(ours.class_ids == 0) & (ours.scores >= least)], theirs)
    model.close()
    assert sums.paired > 50
    assert not sums.reasons["unexplained"], sums.reasons
    assert max(sums.shifts) <= 0.5
    assert max(sums.score_shifts) < 1e-3


def test_the_example_class(network, frames, wanted, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(rfdetr, "RFDETRNano", lambda **options: network)
    params = {"variant": "Nano", "threshold": 0.0, "labels": ["thing", "nothing"]}
    assert_same(open_model(ModelConfig("rfdetr_model:RfDetr", params=params)), frames, *wanted)


def test_an_export(network, frames, wanted, tmp_path):
    network.export(output_dir=str(tmp_path), verbose=False)
    (path,) = tmp_path.glob("*.onnx")
    config = ModelConfig(str(path), confidence=0, labels=["thing"], layout="rfdetr")
    assert_same(open_model(config), frames, *wanted)

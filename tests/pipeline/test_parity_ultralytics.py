"""ultralytics' own `predict` on real pictures and our models on the same files: the same objects within half a pixel.

Skipped where ultralytics (AGPL, dev only) or the clips are missing. Weights are made up; see `tests.yolos`.
"""

import cv2
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch")
ultralytics = pytest.importorskip("ultralytics", reason="needs ultralytics")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.model import DetectionModel  # noqa: E402
from tests.parity import Comparison, bgr_frames, rgb_frame, slightly_other  # noqa: E402
from tests.ultralytics_reference import predict, settings, task_of  # noqa: E402
from tests.yolos import yolo_file  # noqa: E402

SIZE, CONFIDENCE, IOU = 320, 0.25, 0.45
KINDS = ("yolo11n", "yolo11n-obb", "yolo11n-pose", "yolo11n-seg", "yolo26n", "yolov8n")


@pytest.fixture(scope="module")
def frames(shared_data):
    """Six pictures of three sizes. Half of height and width are multiples of the network's stride in its input."""
    clips = {"one-by-one-person-detection.mp4": 500, "udacity_test_video.mp4": 25, "odd_427x241_vp9.webm": 60}
    found = [bgr_frames(shared_data / "videos" / name, step, 3)[-2:] for name, step in clips.items()]
    return [frame for pair in found for frame in pair]


@pytest.fixture(scope="module")
def files(tmp_path_factory, frames):
    """Paths by kind and suffix, each made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("yolos"), {}

    def file(kind, suffix):
        if kind not in made:
            made[kind] = yolo_file(kind, folder, frames)
        if suffix == ".onnx" and not made[kind].with_suffix(suffix).exists():
            ultralytics.YOLO(made[kind]).export(format="onnx", imgsz=SIZE, verbose=False)
        return made[kind].with_suffix(suffix)

    return file


def compared(path, task, pictures):
    """The comparison, and our and their objects of each picture, pair by pair."""
    model = DetectionModel(ModelConfig(**settings(path, SIZE), confidence=CONFIDENCE, iou=IOU))
    model.load()
    assert model.task == task
    sums, pairs = Comparison(CONFIDENCE, IOU, fast_nms=task == "obb"), []
    for bgr, theirs in zip(pictures, predict(path, task, pictures, SIZE, CONFIDENCE, IOU), strict=True):
        frame = rgb_frame(bgr)
        (ours,) = model.infer([frame])
        rows, columns = sums.add(ours, theirs, slightly_other(model, frame))
        pairs.append((ours[rows], theirs[columns]))
    return sums, pairs


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.endswith("seg")])
def test_checkpoints(files, frames, kind):
    """Both lay 16:9 pictures into a rectangle."""
    sums, pairs = compared(files(kind, ".pt"), task_of(kind), frames)
    check(sums)
    for ours, theirs in pairs:
        if ours.keypoints is not None and len(ours):
            np.testing.assert_allclose(ours.keypoints[..., :2], theirs.keypoints[..., :2], atol=0.5)
            np.testing.assert_allclose(ours.keypoints[..., 2], theirs.keypoints[..., 2], atol=5e-3)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.endswith("seg")])
def test_exports_of_a_fixed_size(files, frames, kind):
    """Both lay every picture into the square. Its padding is full of objects that only made-up weights find there and
    that neither reports, so pictures are made square here."""
    squares = [cv2.resize(frame, (400, 400)) for frame in frames]
    check(compared(files(kind, ".onnx"), task_of(kind), squares)[0])


@pytest.mark.parametrize("suffix", [".pt", ".onnx"])
def test_masks(files, frames, suffix):
    """Twice as wide as high, as ultralytics rounds the padding to whole pixels of its masks (4 of the input's)."""
    wide = [cv2.resize(frame, (640, 320)) for frame in frames]
    sums, pairs = compared(files("yolo11n-seg", suffix), "segment", wide)
    check(sums)
    overlaps = []
    for ours, theirs in pairs:
        for mine, other in zip(ours.full_masks(640, 320), theirs.full_masks(640, 320), strict=True):
            if (mine | other).any():
                overlaps.append((mine & other).sum() / (mine | other).sum())
    assert np.median(overlaps) > 0.98


def check(sums):
    """Apart from ties, and what ties bring with them, which made-up weights have many of, all objects are pairs."""
    assert sums.ours > 50
    assert not sums.reasons["unexplained"], sums.reasons
    assert sums.theirs - sums.paired <= 0.1 * sums.theirs, sums.reasons
    assert max(sums.shifts) <= 0.5
    assert np.median(sums.shifts) < 0.02
    assert max(sums.score_shifts) < 2e-3

"""YOLOX on the real clips: our boxes are those of a separate version of what its authors describe."""

import pytest

from elements.inference.config import ModelConfig
from elements.inference.model import DetectionModel
from tests.gstorch_cli import events, gstorch
from tests.parity import Comparison, bgr_frames, detections_of, rgb_frame
from tests.yolox_reference import YoloxReference

CONFIDENCE, IOU = 0.25, 0.45
CLIPS = {
    "one-by-one-person-detection.mp4": 70,  # every so many frames
    "store-aisle_from_preview_gif.mp4": 5,
    "udacity_test_video.mp4": 4,
    "rot90_display_matrix.mp4": 9,
    "odd_427x241_vp9.webm": 9,
    "vfr_irregular.mp4": 5,
    "hevc_main10.mp4": 9,
}


@pytest.fixture(scope="module")
def path(shared_data):
    return str(shared_data / "models" / "yolox_nano_416.onnx")


@pytest.fixture(scope="module")
def reference(path):
    return YoloxReference(path, 416)


@pytest.mark.parametrize(("name", "step"), CLIPS.items(), ids=lambda value: str(value).partition("_")[0])
def test_the_same_boxes_on_the_same_pictures(shared_data, path, reference, name, step):
    model = DetectionModel(ModelConfig(path, confidence=CONFIDENCE, iou=IOU))
    model.load()
    sums = Comparison(CONFIDENCE, IOU)
    for bgr in bgr_frames(shared_data / "videos" / name, step):
        (ours,) = model.infer([rgb_frame(bgr)])
        sums.add(ours, reference.predict(bgr, CONFIDENCE, IOU))
    assert sums.ours == sums.theirs == sums.paired > 0
    assert max(sums.shifts) < 0.05
    assert max(sums.score_shifts) < 1e-3


def test_nearly_the_same_boxes_from_the_file(shared_data, path, reference, tmp_path):
    """The pipeline converts planes that it has scaled, OpenCV's decoder whole pictures: a grey level or two apart."""
    clip, out, definition = shared_data / "videos" / "store-aisle_from_preview_gif.mp4", tmp_path / "e.jsonl", "d.yaml"
    (tmp_path / definition).write_text(
        f"pipeline: parity\nsources: [{{name: clip, uri: {clip}}}]\n"
        f"stages: [infer: {{model: {path}, confidence: {CONFIDENCE}, iou: {IOU}}}]\n"
        f"outputs: [events: {{path: {out}}}]\n"
    )
    result = gstorch("run", tmp_path / definition, "-q")
    assert result.code == 0, result.stderr
    step, sums = 5, Comparison(CONFIDENCE, IOU, far=20)
    for event, bgr in zip(events(out)[::step], bgr_frames(clip, step), strict=True):
        sums.add(detections_of(event["objects"]), reference.predict(bgr, CONFIDENCE, IOU))
    assert sums.paired > 0.9 * max(sums.ours, sums.theirs)
    shifts = sorted(sums.shifts)
    assert shifts[len(shifts) // 2] < 0.5

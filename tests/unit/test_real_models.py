"""Models that others trained, on real pictures."""

from pathlib import Path

import cv2

from elements.inference.config import ModelConfig
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel
from elements.metadata.rotated import rotated_iou


def frames_at(shared_data: Path, *seconds: float):
    """Frames of the one-by-one clip (768x432), as pictures."""
    video = cv2.VideoCapture(str(shared_data / "videos" / "one-by-one-person-detection.mp4"))
    frames = []
    for second in seconds:
        video.set(cv2.CAP_PROP_POS_MSEC, second * 1000)
        ok, bgr = video.read()
        assert ok
        frames.append(ArrayFrame(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)))
    return frames


def test_yolox_nano_is_read_without_help(shared_data):
    model = DetectionModel(ModelConfig(str(shared_data / "models" / "yolox_nano_416.onnx"), confidence=0.35))
    model.load()
    assert model._network.decoder.layout == "yolox"
    frames = frames_at(shared_data, 3.0, 10.0, 47.0, 60.0)  # nobody, the first person, nobody, the third
    assert model._plan(frames[:1], model._network)[0].size == (416, 416)
    empty, first, empty_again, third = model.infer(frames)
    assert len(empty) == len(empty_again) == 0
    for person in (first, third):
        assert model.names[person.class_ids[0]] == "person"  # best first
        x1, y1, x2, y2 = person.boxes[0]
        assert 0 <= x1 < x2 <= 768
        assert y2 - y1 > 150
    assert model.stats.nan == 0


def test_fastestdet_is_read_without_help(shared_data):
    """The same persons as YOLOX finds."""
    frames = frames_at(shared_data, 10.0, 60.0)
    found = []
    for name, layout in (("fastestdet_352", "fastestdet"), ("yolox_nano_416", "yolox")):
        model = DetectionModel(ModelConfig(str(shared_data / "models" / f"{name}.onnx"), classes=("person",)))
        model.load()
        assert model._network.decoder.layout == layout
        found.append([one.boxes[0] for one in model.infer(frames)])
    for box, other in zip(*found, strict=True):
        assert rotated_iou([box], [0], [other], [0])[0, 0] > 0.7

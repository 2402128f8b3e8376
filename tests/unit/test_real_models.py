"""Models that others trained, on real pictures."""

from pathlib import Path

import cv2
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel


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
    assert model._plan(frames[:1], model._network)[0].size == (416, 256)
    empty, first, empty_again, third = model.infer(frames)
    assert len(empty) == len(empty_again) == 0
    for person in (first, third):
        assert model.names[person.class_ids[0]] == "person"  # best first
        x1, y1, x2, y2 = person.boxes[0]
        assert 0 <= x1 < x2 <= 768
        assert y2 - y1 > 150
    assert model.stats.nan == 0


def test_fastestdet_is_refused_with_its_shape(shared_data):
    with pytest.raises(ModelError, match=r"758 \(1, 85, 22, 22\)"):
        DetectionModel(ModelConfig(str(shared_data / "models" / "fastestdet_352.onnx"))).load()

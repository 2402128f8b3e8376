"""Tracks of people in real clips, with a real detector and the default tracker configuration."""

import itertools
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel
from elements.metadata.detections import Detections
from elements.portable.meta import FrameMeta, ObjectMeta
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.objects import SourceObjects
from elements.portable.tracking.tracker import SourceTracker

LOWEST = 0.25
PRESENCE = [
    (6.1, 19.6),
    (22.8, 44.8),
    (50.2, 69.8),
    (74.5, 86.7),
    (92.2, 119.8),
    (123.5, 135.9),
]  # of the data's README

Clip = list[tuple[float, Detections]]


def people_in(data: Path, name: str, wanted: Callable[[int, float], bool] = lambda number, time_s: True) -> Clip:
    """(seconds, people) of the ``wanted`` frames."""
    model = DetectionModel(ModelConfig(str(data / "models" / "yolox_nano_416.onnx"), LOWEST, classes=("person",)))
    model.load()
    video = cv2.VideoCapture(str(data / "videos" / name))
    rate, clip = video.get(cv2.CAP_PROP_FPS), []
    for number in itertools.takewhile(lambda _: video.grab(), itertools.count()):
        if wanted(number, number / rate):
            frame = ArrayFrame(cv2.cvtColor(video.retrieve()[1], cv2.COLOR_BGR2RGB))
            clip.append((number / rate, model.infer([frame])[0]))
    model.close()
    return clip


@pytest.fixture(scope="module")
def aisle(shared_data: Path) -> Clip:
    return people_in(shared_data, "store-aisle_from_preview_gif.mp4")


@pytest.fixture(scope="module")
def one_by_one(shared_data: Path) -> Clip:
    """All frames near a coming or going, every fourth elsewhere: quicker, and a frame rate that changes."""
    edges = [edge for presence in PRESENCE for edge in presence]
    wanted = lambda number, time_s: number % 4 == 0 or min(abs(time_s - edge) for edge in edges) < 1.5  # noqa: E731
    return people_in(shared_data, "one-by-one-person-detection.mp4", wanted)


def track(clip: Clip, confidence: float, inferred=lambda number: True) -> list[tuple[float, dict[int, np.ndarray]]]:
    """(seconds, id -> xyxy) of each frame; frames that are not ``inferred`` get no detections."""
    objects = SourceObjects(SourceTracker(TrackerConfig()))
    result = []
    for number, (time_s, people) in enumerate(clip):
        frame = FrameMeta(pipeline_width=1920, pipeline_height=1080, infer_done=inferred(number))
        for box, score in zip(people.boxes, people.scores, strict=True):
            if frame.infer_done and score >= confidence:
                item = ObjectMeta(confidence=float(score))
                item.rect.left, item.rect.top = float(box[0]), float(box[1])
                item.rect.width, item.rect.height = float(box[2] - box[0]), float(box[3] - box[1])
                frame.objects.append(item)
        objects.process(frame, time_s)
        boxes = {o.object_id: np.array([o.rect.left, o.rect.top, o.rect.width, o.rect.height]) for o in frame.objects}
        result.append((time_s, boxes))
    return result


@pytest.mark.parametrize("confidence", [0.25, 0.35])
@pytest.mark.parametrize("interval", [0, 1, 2])
def test_store_aisle_has_three_people(aisle: Clip, confidence: float, interval: int) -> None:
    """The third person walks in front of the first; ``interval`` frames between two are not inferred."""
    tracks = track(aisle, confidence, lambda number: number % (interval + 1) == 0)
    assert {i for _, boxes in tracks for i in boxes} == {1, 2, 3}
    first, last = tracks[interval + 1][1], tracks[-1][1]
    # The person at the right (left edge near 340) stays there, the one at the left (near 265) too.
    for one in first:
        assert abs(first[one][0] - last[one][0]) < 40
    assert set(last) == {1, 2, 3}


@pytest.mark.parametrize("confidence", [0.25, 0.35])
def test_one_by_one_has_six_people_in_their_intervals(one_by_one: Clip, confidence: float) -> None:
    """The README says when, to half a second; a track begins up to half a second after the first detection."""
    seen: dict[int, list[float]] = {}
    for time_s, boxes in track(one_by_one, confidence):
        for one in boxes:
            seen.setdefault(one, []).append(time_s)
    assert 6 <= len(seen) <= 8
    for begin, end in PRESENCE:
        inside = [t for times in seen.values() for t in times if begin - 1.5 < t < end + 1.5]
        assert min(inside) == pytest.approx(begin, abs=1.0)
        assert max(inside) == pytest.approx(end, abs=1.0)

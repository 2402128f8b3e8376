"""Scores against the truth, on cases small enough to count by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from tools.scenes import CLASSES, Truth, TruthObject
from tools.scenes.average_precision import FrameResult, average_precision, mean_average_precision
from tools.scenes.matching import FALSE, IGNORED, iou, match
from tools.scenes.score import load_events, score


def boxes(*rows: tuple[float, float, float, float]) -> np.ndarray:
    return np.array(rows, float).reshape(-1, 4)


def test_iou_of_half_overlapping_boxes_is_a_third() -> None:
    assert iou(boxes((0, 0, 10, 10)), boxes((5, 0, 15, 10)))[0, 0] == pytest.approx(1 / 3)


def test_the_better_of_two_detections_takes_the_object() -> None:
    found = boxes((0, 0, 10, 10), (0, 0, 10, 9), (50, 50, 60, 60), (101, 100, 109, 110))
    truth = boxes((0, 0, 10, 10), (100, 100, 110, 110))
    result = match(found, np.array([0.6, 0.9, 0.8, 0.7]), truth, np.array([False, True]))
    assert result.tolist() == [FALSE, 0, FALSE, IGNORED]


def frame(found: np.ndarray, scores: list[float], truth: np.ndarray) -> FrameResult:
    ids, true_ids = np.zeros(len(found), int), np.zeros(len(truth), int)
    return FrameResult(found, np.array(scores), ids, truth, true_ids, np.zeros(len(truth), bool))


def test_average_precision_by_hand() -> None:
    # By score: right, false, right; three objects. Precision 1 up to recall 1/3 (34 of 101 points),
    # 2/3 up to recall 2/3 (33 points), 0 beyond.
    first = frame(boxes((0, 0, 10, 10), (80, 80, 90, 90)), [0.9, 0.8], boxes((0, 0, 10, 10)))
    second = frame(boxes((5, 5, 25, 25)), [0.7], boxes((5, 5, 25, 25), (60, 60, 70, 70)))
    expected = (34 + 33 * 2 / 3) / 101
    assert average_precision([first, second], 0) == pytest.approx(expected)
    assert np.isnan(average_precision([first, second], 1))
    assert mean_average_precision([first, second], ["person", "car"])["mean"] == pytest.approx(expected)


def test_perfect_detections_have_average_precision_one() -> None:
    truth = boxes((0, 0, 10, 10), (20, 20, 30, 30))
    assert average_precision([frame(truth, [0.9, 0.2], truth)], 0) == pytest.approx(1.0)


def true_object(track: int, label: str, box: tuple[float, float, float, float], ignore: bool = False) -> TruthObject:
    return TruthObject(track, label, box, 1.0, ignore)


def event(number: int, *objects: tuple[str, list[float], int | None]) -> dict[str, object]:
    found = [{"label": label, "bbox": box, "confidence": 0.8, "track_id": track} for label, box, track in objects]
    return {"source": "a", "frame": number, "objects": found}


def test_events_against_truth() -> None:
    car, person = true_object(1, "car", (0, 0, 100, 50)), true_object(2, "person", (200, 0, 220, 60))
    hidden = true_object(3, "car", (300, 0, 400, 50), ignore=True)
    truth = Truth("a.mp4", 640, 360, 25, CLASSES, ((car, person, hidden),) * 6)
    events = [
        event(0, ("car", [2, 0, 100, 50], 11), ("person", [200, 0, 220, 60], 12), ("car", [310, 0, 390, 50], 13)),
        event(1, ("car", [2, 0, 100, 50], 11), ("car", [200, 0, 220, 60], 14)),  # a person taken for a car
        event(2, ("dog", [0, 0, 10, 10], None)),
    ]
    result = score(events, truth)
    assert (result.frames, result.objects, result.tracks, result.truth_tracks) == (3, 6, 4, 2)
    cars, people = result.classes["car"], result.classes["person"]
    assert (cars.right, cars.false, cars.missed) == (2, 1, 4)
    assert (people.right, people.false, people.missed) == (1, 0, 5)
    assert result.classes["dog"].false == 1
    assert result.precision == pytest.approx(3 / 5)
    assert result.recall == pytest.approx(3 / 12)
    assert np.isnan(result.classes["truck"].recall)


def test_event_file_by_source(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = [event(0), {**event(0), "source": "b"}, event(1)]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    assert {name: len(events) for name, events in load_events(path).items()} == {"a": 2, "b": 1}
    path.write_text('{"source": "a"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"events\.jsonl:1: not an event line"):
        load_events(path)

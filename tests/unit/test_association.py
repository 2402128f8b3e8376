"""Which target is which detection: the pairs in a grid are those in a table, and the tracker is ByteTrack."""

import numpy as np
import pytest
from numpy.typing import NDArray
from supervision import Detections
from trackers import ByteTrackTracker

from elements.portable.tracking import association
from elements.portable.tracking.association import Boxes, assign, overlapping
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.tracker import SourceTracker


def crowd(count: int, seed: int, turned: bool = False) -> Boxes:
    """Boxes of all sizes, some of which lie over the whole picture, in three groups."""
    random = np.random.default_rng(seed)
    centre, half = random.uniform(-50, 900, (count, 2)), random.uniform(2, 20, (count, 2))
    half[:3] = 500
    angles = random.uniform(-4, 4, (count, 1)) * turned
    return Boxes(np.concatenate([centre - half, centre + half, angles], axis=1), random.integers(0, 3, count))


def pairs(first: Boxes, second: Boxes) -> dict[tuple[int, int], float]:
    rows, columns, overlap = overlapping(first, second)
    found = {(int(r), int(c)): float(o) for r, c, o in zip(rows, columns, overlap, strict=True)}
    assert len(found) == len(rows)  # each once
    return found


@pytest.mark.parametrize("turned", [False, True])
def test_the_grid_finds_each_pair_of_the_table_once(monkeypatch: pytest.MonkeyPatch, turned: bool) -> None:
    first, second = crowd(300, 1, turned), crowd(120, 2, turned)
    in_table = pairs(first, second)
    monkeypatch.setattr(association, "_TABLE", 0)
    in_grid = pairs(first, second)
    assert in_grid == in_table
    assert {first.groups[row] - second.groups[column] for row, column in in_grid} == {0}


def test_boxes_without_area_have_no_partner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of one's own, and boxes beyond the edge of the picture, give such."""
    first, second = crowd(300, 1), crowd(300, 2)
    first.boxes[10:200, 2:4] = first.boxes[10:200, :2] - np.linspace(0, 700, 190)[:, None]
    second.boxes[::2, 3] = second.boxes[::2, 1]
    in_table = pairs(first, second)
    monkeypatch.setattr(association, "_TABLE", 0)
    assert pairs(first, second) == in_table
    assert not {row for row, _ in in_table} & set(range(10, 200))


def test_the_best_pairs_of_many_are_those_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = crowd(400, 3), crowd(1500, 4)
    in_table = [part.tolist() for part in assign(first, second, 0.2)]
    monkeypatch.setattr(association, "_TABLE", 0)
    in_grid = [part.tolist() for part in assign(first, second, 0.2)]
    assert in_grid == in_table
    assert len(in_grid[0]) > 10


@pytest.mark.parametrize("table", [0, association._TABLE])
def test_the_sum_of_the_overlaps_counts(monkeypatch: pytest.MonkeyPatch, table: int) -> None:
    """The second target could have either detection, the first only the middle one: 0.43 + 0.25 beats 0.67."""
    monkeypatch.setattr(association, "_TABLE", table)
    targets = np.array([[0, 0, 10, 10, 0], [6, 0, 16, 10, 0.0]])
    found = np.array([[4, 0, 14, 10, 0], [12, 0, 22, 10, 0.0]])
    groups = np.zeros(2, int)
    rows, columns = assign(Boxes(targets, groups), Boxes(found, groups), 0.1)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [0, 1])
    rows, columns = assign(Boxes(targets, groups), Boxes(found, groups), 0.3)
    assert (rows.tolist(), columns.tolist()) == ([0], [0])
    rows, columns = assign(Boxes(targets, groups), Boxes(found + 100, groups), 0.0)
    assert (rows.tolist(), columns.tolist()) == ([], [])


def test_thousands_keep_their_ids() -> None:
    tracker = SourceTracker(TrackerConfig(max_targets_per_stream=5000))
    places = np.stack(np.meshgrid(np.arange(60) * 30.0, np.arange(50) * 20.0), axis=-1).reshape(-1, 2)
    for n in range(4):
        corner = places + 3 * n
        boxes = np.concatenate([corner, corner + 18, np.zeros((3000, 1))], axis=1).astype(np.float32)
        ids = tracker.update(boxes, np.full(3000, 0.9), np.arange(3000) % 7, n / 10).ids
    assert ids.tolist() == list(range(1, 3001))


def scene(seed: int, objects: int = 40, frames: int = 60) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Boxes (N, 4) and scores (N,) of objects that cross a small picture; a tenth of them is missing in each frame."""
    random = np.random.default_rng(seed)
    size = random.uniform(20, 60, (objects, 2))
    place, speed = random.uniform(0, 500, (objects, 2)), random.uniform(-4, 4, (objects, 2))
    result = []
    for n in range(frames):
        corner = place + n * speed
        seen = random.random(objects) > 0.1
        boxes = (np.concatenate([corner, corner + size], axis=1) + random.normal(0, 1, (objects, 4)))[seen]
        result.append((boxes.astype(np.float32), random.uniform(0.1, 1, objects)[seen].astype(np.float32)))
    return result


@pytest.mark.parametrize("seed", range(5))
def test_the_same_tracks_as_bytetrack_of_the_trackers_library(seed: int) -> None:
    """Ten frames per second, the rate that the library's filter is set to; its ids count from 0."""
    config = TrackerConfig(min_iou_diff_4_new_target=1.0, max_targets_per_stream=1000, probation_age=6)
    ours = SourceTracker(config)
    library = ByteTrackTracker(
        lost_track_buffer=config.max_shadow_tracking_age,
        frame_rate=10,
        track_activation_threshold=config.tentative_detector_confidence,
        high_conf_det_threshold=config.tentative_detector_confidence,
        minimum_iou_threshold=config.min_matching_score_4_iou,
        minimum_consecutive_frames=2,
    )
    same: dict[int, int] = {}
    for n, (boxes, scores) in enumerate(scene(seed)):
        turned = np.concatenate([boxes, np.zeros((len(boxes), 1), np.float32)], axis=1)
        found = ours.update(turned, scores, np.zeros(len(boxes), int), n / 10)
        theirs = library.update(Detections(boxes, confidence=scores, data={"row": np.arange(len(boxes))}), None, n / 10)
        expected = dict(zip(theirs.data["row"].tolist(), theirs.tracker_id.tolist(), strict=True))
        for row, own in enumerate(found.ids.tolist()):
            assert (own == 0) == (expected[row] == -1), (n, row)
            assert same.setdefault(own, expected[row]) == expected[row], (n, row)
    assert len(same) > 40

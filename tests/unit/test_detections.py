"""Detections as data: masks in all forms, picking and putting together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from elements.metadata.detections import Detections, mask_windows

BOXES = np.array([[2.3, 1.0, 6.0, 4.2], [-3, 5, 4, 30], [50, 50, 60, 60]], np.float32)


def found(boxes: Any = BOXES, **more: Any) -> Detections:
    count = len(boxes)
    return Detections(np.array(boxes), np.linspace(0.9, 0.5, count), np.arange(count), **more)


def discs(width: int, height: int, centres: list[tuple[float, float]], radius: float) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width] + 0.5
    return np.array([np.hypot(columns - x, rows - y) < radius for x, y in centres])


# --- masks ------------------------------------------------------------------------------------------------------------


def test_windows_are_whole_pixels_cut_at_the_edges() -> None:
    assert mask_windows(BOXES, None, 20, 10).tolist() == [[2, 1, 6, 5], [0, 5, 4, 10], [20, 10, 20, 10]]
    assert mask_windows(BOXES)[1].tolist() == [0, 5, 4, 30]


def test_windows_of_turned_boxes_hold_them() -> None:
    boxes = np.array([[10, 20, 30, 24]] * 3)
    angles = np.array([0, math.pi / 2, math.pi / 6])
    upright, quarter, tilted = mask_windows(boxes, angles).tolist()
    assert (upright, quarter) == ([10, 20, 30, 24], [18, 12, 22, 32])
    # 20 * cos 30 + 4 * sin 30 = 19.3 wide, 20 * sin 30 + 4 * cos 30 = 13.5 high, about (20, 22)
    assert tilted == [10, 15, 30, 29]


def test_windows_of_no_numbers_are_empty() -> None:
    ((x1, _, x2, _),) = mask_windows(np.array([[np.nan, 0, np.nan, 9]])).tolist()
    assert x1 == x2


def test_masks_of_whole_frames_are_cut_and_come_back() -> None:
    full = np.random.default_rng(1).random((3, 10, 20)) < 0.5
    cut = found(masks=full)
    assert [mask.shape for mask in cut.masks] == [(4, 4), (5, 4), (0, 0)]
    assert np.array_equal(cut.masks[0], full[0, 1:5, 2:6])
    again = cut.full_masks(20, 10)
    assert np.array_equal(again[0, 1:5, 2:6], full[0, 1:5, 2:6])
    assert again[0].sum() == full[0, 1:5, 2:6].sum()
    assert again[1].sum() == full[1, 5:10, :4].sum()
    assert not again[2].any()


def test_masks_that_are_cut_are_taken_as_they_are() -> None:
    masks = [np.ones((4, 4), bool), np.zeros((5, 4), np.uint8), np.empty((0, 0), bool)]
    kept = found(masks=masks)
    assert [mask.dtype for mask in kept.masks] == [bool] * 3
    assert kept[1:].masks[0].shape == (5, 4)
    assert kept[np.array([True, False, True])].masks[1].size == 0


def test_a_mask_of_a_turned_box_is_whole() -> None:
    disc = discs(40, 40, [(20, 20)], 8)
    turned = found([[10, 18, 30, 22]], masks=disc, angles=np.array([math.pi / 2], np.float32))
    assert turned.masks[0].shape == (20, 4)
    assert turned.full_masks(40, 40).sum() == disc[0, 10:30, 18:22].sum()


def test_masks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"masks\[1\] has shape \(10, 20\); its box covers 25 rows and 4 columns"):
        found(masks=[np.ones((4, 4)), np.ones((10, 20)), np.ones((1, 1))])
    with pytest.raises(ValueError, match="masks has 2 rows, boxes has 3"):
        found(masks=np.ones((2, 10, 20), bool))


def test_without_masks_whole_frames_are_empty() -> None:
    assert found().full_masks(8, 6).shape == (3, 6, 8)
    assert not found().full_masks(8, 6).any()


# --- putting together -------------------------------------------------------------------------------------------------


def test_objects_of_several_models() -> None:
    plain = found(BOXES[:1])
    rich = found(
        BOXES[:2],
        angles=np.array([0.1, 0.2], np.float32),
        masks=[np.ones((4, 4)), np.ones((5, 4))],
        keypoints=np.ones((2, 3, 3), np.float32),
        embeddings=np.ones((2, 8), np.float32),
        track_ids=np.array([4, 5]),
        attributes=[{"colour": "red"}, {}],
    )
    short = found(BOXES[:1], keypoints=np.ones((1, 2, 3), np.float32))
    both = Detections.concatenate([plain, Detections(), rich, short])
    assert len(both) == 4
    assert both.boxes[1:3].tolist() == rich.boxes.tolist()
    assert both.angles.tolist() == pytest.approx([0, 0.1, 0.2, 0])
    assert [mask.shape for mask in both.masks] == [(0, 0), (4, 4), (5, 4), (0, 0)]
    assert both.keypoints.shape == (4, 3, 3)
    assert np.isnan(both.keypoints).any(axis=2).tolist() == [[True] * 3, [False] * 3, [False] * 3, [False, False, True]]
    assert np.isnan(both.embeddings).all(axis=1).tolist() == [True, False, False, True]
    assert both.track_ids.tolist() == [-1, 4, 5, -1]
    assert both.attributes == [{}, {"colour": "red"}, {}, {}]


def test_absent_fields_stay_absent() -> None:
    both = Detections.concatenate([found(), found()])
    assert (len(both), both.angles, both.masks, both.keypoints, both.attributes) == (6, None, None, None, None)


def test_nothing_and_one() -> None:
    one = found()
    assert len(Detections.concatenate([])) == 0
    assert Detections.concatenate([Detections(), one]) is one


def test_embeddings_of_different_lengths_are_refused() -> None:
    parts = [found(embeddings=np.ones((3, size), np.float32)) for size in (4, 8)]
    with pytest.raises(ValueError, match=r"embeddings of different sizes .*\(4,\), \(8,\)"):
        Detections.concatenate(parts)

"""Masks from frames onto boxes and back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elements.metadata.detections import mask_windows
from elements.metadata.masks import THRESHOLD, mask_in_window, mask_over_box

SIZE = (160, 120)


def blob(width: int, height: int) -> np.ndarray:
    """An ellipse with a bay, so that neither a flip nor a shift goes unseen."""
    rows, columns = np.mgrid[:height, :width] + 0.5
    ellipse = ((columns - 80) / 42) ** 2 + ((rows - 60) / 25) ** 2 < 1
    return ellipse & ~((columns > 85) & (rows > 62))


def iou(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def there_and_back(mask: np.ndarray, box: tuple[float, float, float, float], angle: float = 0.0) -> np.ndarray:
    """A frame's mask through a grid over ``box``, and the frame again."""
    height, width = mask.shape
    (window,) = mask_windows(box, [angle], width, height).tolist()
    x1, y1, x2, y2 = window
    grid = mask_over_box(mask[y1:y2, x1:x2], (x1, y1), box, angle)
    back = np.zeros_like(mask)
    back[y1:y2, x1:x2] = mask_in_window(grid, THRESHOLD, box, window, angle)
    return back


def test_on_whole_pixels_the_grid_is_the_mask() -> None:
    mask = blob(*SIZE)
    grid = mask_over_box(mask[35:85, 38:122], (38, 35), (38, 35, 122, 85))
    assert grid.dtype == np.float32
    assert np.array_equal(grid, mask[35:85, 38:122])
    assert np.array_equal(there_and_back(mask, (38, 35, 122, 85)), mask)


@pytest.mark.parametrize("box", [(37.4, 34.7, 122.5, 85.2), (38.0, 35.5, 121.9, 84.9), (30.1, 20.2, 150.6, 119.8)])
def test_between_pixels_the_mask_stays_where_it_is(box: tuple[float, float, float, float]) -> None:
    assert iou(there_and_back(blob(*SIZE), box), blob(*SIZE)) > 0.985


@pytest.mark.parametrize("degrees", [-170, -90, -30, 0.5, 45, 90, 133])
def test_turned_boxes(degrees: float) -> None:
    mask = blob(*SIZE)
    assert iou(there_and_back(mask, (25, 5, 135, 115), math.radians(degrees)), mask) > 0.98


def test_the_grid_turns_with_the_box() -> None:
    """The left half of the frame; turned by a quarter clockwise, the box's top is on the right."""
    mask = np.zeros((40, 40), bool)
    mask[:, :20] = True
    grid = mask_over_box(mask[10:30, 15:25], (15, 10), (10, 15, 30, 25), math.pi / 2)
    assert grid.shape == (10, 20)
    assert grid[:4].max() == 0
    assert grid[6:].min() == 1


def test_a_turned_mask_ends_at_its_box() -> None:
    grid = np.ones((4, 20), np.float32)
    inside = mask_in_window(grid, 0.5, (10, 18, 30, 22), (0, 0, 40, 40), math.pi / 2)
    rows, columns = np.nonzero(inside)
    assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == (18, 10, 22, 30)


def test_a_mask_that_leaves_the_frame() -> None:
    mask = np.zeros((40, 40), bool)
    mask[5:15, :12] = True
    assert np.array_equal(there_and_back(mask, (-8, 5, 12, 15)), mask)


def test_a_mask_smaller_than_a_pixel() -> None:
    assert mask_over_box(np.ones((1, 1), bool), (3, 4), (3.2, 4.1, 3.4, 4.2)).tolist() == [[1.0]]

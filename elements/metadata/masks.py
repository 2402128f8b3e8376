"""Masks between frames and boxes.

`Detections` keeps a mask as pixels of the frame. In metadata, as DeepStream has it, a mask is a grid of its own that is
stretched over the object's box (and here turned with it), so that it follows a box that is scaled or moved.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from elements.metadata.detections import BoolArray, FloatArray

Box = tuple[float, float, float, float]
Point = tuple[float, float]

THRESHOLD = 0.5


def mask_over_box(mask: BoolArray, origin: Point, box: Box, angle: float = 0.0) -> FloatArray:
    """The grid for metadata: about one point per pixel, between 0 and 1 at the mask's edges (limit: `THRESHOLD`).

    Args:
        mask: (h, w), not empty, pixels of the frame.
        origin: (x, y) of the mask's first pixel in the frame.
        box: xyxy of the object in the same pixels, not empty.
        angle: radians, clockwise on the screen about the box's centre.

    Returns:
        (height, width) float32.
    """
    width, height = (max(1, math.ceil(box[i + 2] - box[i])) for i in (0, 1))
    to_frame = _grid_to_frame((width, height), box, angle)
    to_frame[:, 2] -= origin
    return _sampled(mask.astype(np.float32), to_frame, (width, height))


def mask_in_window(
    grid: FloatArray, threshold: float, box: Box, window: tuple[int, int, int, int], angle: float = 0.0
) -> BoolArray:
    """The pixels of a frame that a mask of the metadata covers.

    Args:
        grid: (height, width) float32, not empty, stretched over the box.
        threshold: points above it belong to the object.
        box: xyxy of the object in pixels of the frame, not empty.
        window: the box's whole pixels x1, y1, x2, y2 in the frame, or some of them, not empty (see `mask_windows`).
        angle: as in `mask_over_box`.

    Returns:
        (y2 - y1, x2 - x1) bool; False outside of a turned box.
    """
    x1, y1, x2, y2 = window
    to_grid = cv2.invertAffineTransform(_grid_to_frame(grid.shape[::-1], box, angle))
    to_grid[:, 2] += to_grid[:, :2] @ (x1, y1)
    inside: BoolArray = _sampled(grid, to_grid, (x2 - x1, y2 - y1)) > threshold
    if angle:
        inside &= _covered(to_grid, grid.shape, (x2 - x1, y2 - y1))
    return inside


def _grid_to_frame(size: tuple[int, ...], box: Box, angle: float) -> FloatArray:
    """(2, 3) affine map from indices of a (width, height) grid over the box to pixel indices of the frame.

    Index i is the pixel whose centre lies at i + 0.5.
    """
    x1, y1, x2, y2 = box
    step_x, step_y = (x2 - x1) / size[0], (y2 - y1) / size[1]
    cos, sin = math.cos(angle), math.sin(angle)
    linear = np.array([[cos * step_x, -sin * step_y], [sin * step_x, cos * step_y]])
    middle = np.array([(x1 + x2) / 2, (y1 + y2) / 2]) - 0.5
    return np.hstack([linear, (middle - linear @ np.subtract(size, 1) * 0.5)[:, None]])


def _sampled(values: FloatArray, to_values: FloatArray, size: tuple[int, int]) -> FloatArray:
    """A (height, width) picture of ``values``, bilinear; beyond their edge the outermost value."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(values, to_values, size, flags=flags, borderMode=cv2.BORDER_REPLICATE))


def _covered(to_grid: FloatArray, shape: tuple[int, ...], size: tuple[int, int]) -> BoolArray:
    """(height, width) bool: the pixels whose centres lie over the grid."""
    columns, rows = np.arange(size[0]), np.arange(size[1])[:, None]
    x, y = (to_grid[i, 0] * columns + to_grid[i, 1] * rows + to_grid[i, 2] for i in (0, 1))
    return np.asarray((x >= -0.5) & (x < shape[1] - 0.5) & (y >= -0.5) & (y < shape[0] - 0.5))

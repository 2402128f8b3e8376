"""Rotated boxes: their corners, their names, and how much they overlap.

A rotated box is an unrotated rectangle (xyxy) and the angle by which it is turned about its centre, in radians,
positive clockwise on the screen (y points down). Its outline does not change if the angle changes by pi.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_EDGES = 4
_ANGLE_SCALE, _SIZE_SCALE = 0.3, 0.2  # radians, and logarithm of size, that count the same in `same_outline`
_PIECES = 4  # an edge crosses the two vertical and the two horizontal lines of a rectangle at most once each


def corners(boxes: ArrayLike, angles: ArrayLike) -> NDArray[np.float64]:
    """Corner points of rotated boxes.

    >>> corners([[0, 0, 4, 2]], [np.pi / 2]).round(6).tolist()
    [[[3.0, -1.0], [3.0, 3.0], [1.0, 3.0], [1.0, -1.0]]]

    Args:
        boxes: (N, 4) xyxy, the unrotated rectangles.
        angles: (N,) radians, clockwise on the screen.

    Returns:
        (N, 4, 2) x, y: where the top left, top right, bottom right and bottom left corner have been turned to.
    """
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    angles = np.asarray(angles, np.float64).reshape(-1)
    center = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = (boxes[:, 2:] - boxes[:, :2]) / 2
    offset = half[:, None] * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], np.float64)
    return center[:, None] + _turned(offset, angles)


def bounds(boxes: ArrayLike, angles: ArrayLike) -> NDArray[np.float64]:
    """(N, 4) xyxy: the upright rectangles around rotated boxes (arguments as for `corners`)."""
    points = corners(boxes, angles)
    return np.concatenate([points.min(axis=1), points.max(axis=1)], axis=1)


def rotated_iou(
    boxes_a: ArrayLike, angles_a: ArrayLike, boxes_b: ArrayLike, angles_b: ArrayLike
) -> NDArray[np.float64]:
    """Exact intersection over union of every pair of rotated boxes.

    >>> rotated_iou([[0, 0, 4, 2]], [0], [[0, 0, 4, 2]], [np.pi / 2]).round(4).tolist()
    [[0.3333]]

    Args:
        boxes_a: (N, 4) xyxy, the unrotated rectangles.
        angles_a: (N,) radians, clockwise on the screen.
        boxes_b: (M, 4), as ``boxes_a``.
        angles_b: (M,), as ``angles_a``.

    Returns:
        (N, M) from 0 to 1; 0 where a box has no area.
    """
    boxes_a, boxes_b = (np.asarray(boxes, np.float64).reshape(-1, 4) for boxes in (boxes_a, boxes_b))
    angles_a, angles_b = (np.asarray(angles, np.float64).reshape(-1) for angles in (angles_a, angles_b))
    overlap = np.zeros((len(boxes_a), len(boxes_b)))
    near = np.nonzero(_bounds_touch(bounds(boxes_a, angles_a), bounds(boxes_b, angles_b)))
    overlap[near] = paired_rotated_iou(boxes_a[near[0]], angles_a[near[0]], boxes_b[near[1]], angles_b[near[1]])
    return overlap


def paired_rotated_iou(
    boxes_a: NDArray[np.float64],
    angles_a: NDArray[np.float64],
    boxes_b: NDArray[np.float64],
    angles_b: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(P,) as `rotated_iou`, of row ``i`` of ``boxes_a`` and row ``i`` of ``boxes_b``."""
    shared = _shared_area(boxes_a, angles_a, boxes_b, angles_b)
    union = _area(boxes_a) + _area(boxes_b) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def same_outline(box: ArrayLike, like: ArrayLike) -> NDArray[np.float64]:
    """The name of a rotated box that is nearest to ``like``.

    The same outline has many names: half a turn changes nothing, and a quarter turn with width and height exchanged
    neither. Detectors switch between them, for example where their range of angles ends. The sides decide for long
    boxes, the angle for those that are nearly square.

    >>> same_outline([0, 0, 4, 2, 0.1], [1, -1, 3, 3, 0.1 + np.pi / 2]).round(4).tolist()
    [1.0, -1.0, 3.0, 3.0, 1.6708]

    Args:
        box: (..., 5) x1, y1, x2, y2, angle.
        like: (..., 5), as ``box``; the angle may be any number of turns.

    Returns:
        (..., 5) another name of ``box``.
    """
    box, like = np.asarray(box, np.float64), np.asarray(like, np.float64)
    size, wanted_size = box[..., 2:4] - box[..., :2], like[..., 2:4] - like[..., :2]
    angle, wanted = box[..., 4], like[..., 4]
    as_is = angle + math.pi * np.round((wanted - angle) / math.pi)
    exchanged = angle + math.pi / 2 + math.pi * np.round((wanted - angle - math.pi / 2) / math.pi)
    keep = _distance(size, as_is, wanted_size, wanted) <= _distance(size[..., ::-1], exchanged, wanted_size, wanted)
    middle, half = (box[..., :2] + box[..., 2:4]) / 2, size[..., ::-1] / 2
    kept = np.concatenate([box[..., :4], as_is[..., None]], axis=-1)
    other = np.concatenate([middle - half, middle + half, exchanged[..., None]], axis=-1)
    return np.where(keep[..., None], kept, other)


def degrees(angle: float) -> float:
    """Radians, any number of turns, to degrees from -180 (included) to 180.

    >>> degrees(3 * np.pi)
    -180.0
    """
    return (math.degrees(angle) + 180) % 360 - 180


def rescaled(
    boxes: ArrayLike, angles: ArrayLike, scale: tuple[float, float], offset: tuple[float, float] = (0, 0)
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rotated boxes after ``point * scale + offset``.

    With one scale for both axes this is exact. Otherwise a rotated rectangle becomes a parallelogram: the result has
    its centre, its area and the direction and length of the side along ``angles``.

    >>> boxes, angles = rescaled([[0, 0, 4, 2]], [np.pi / 2], (1, 2))
    >>> boxes.round(6).tolist(), angles.round(4).tolist()
    ([[-2.0, 1.0, 6.0, 3.0]], [1.5708])

    Args:
        boxes: (N, 4) xyxy, the unrotated rectangles.
        angles: (N,) radians, clockwise on the screen.
        scale: factors of x and y.
        offset: what is added to x and y afterwards.

    Returns:
        boxes (N, 4) and angles (N,).
    """
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    angles = np.asarray(angles, np.float64).reshape(-1)
    factors = np.array(scale, np.float64)
    center = (boxes[:, :2] + boxes[:, 2:]) / 2 * factors + np.array(offset, np.float64)
    size = boxes[:, 2:] - boxes[:, :2]
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1) * factors
    stretch = np.hypot(along[:, 0], along[:, 1])
    half = size * np.stack([stretch, factors.prod() / stretch], axis=1) / 2
    turned = np.arctan2(along[:, 1], along[:, 0])
    return np.concatenate([center - half, center + half], axis=1), turned


def _shared_area(
    boxes: NDArray[np.float64],
    angles: NDArray[np.float64],
    others: NDArray[np.float64],
    other_angles: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(P,) area that row ``i`` of ``boxes`` and row ``i`` of ``others`` share.

    Seen from the box, which then is an upright rectangle about the origin, every point of the other's outline is moved
    to the nearest point of the rectangle. That takes no turn around a point inside the rectangle away and adds none,
    so the moved outline encloses the shared area. It is a polygon whose corners are the moved corners and the moved
    points where an edge crosses a line along a side of the rectangle; the shoelace formula gives its area.
    """
    center = (boxes[:, :2] + boxes[:, 2:]) / 2
    half = np.abs(boxes[:, 2:] - boxes[:, :2]) / 2
    points = _turned(corners(others, other_angles) - center[:, None], -angles)  # (P, 4, 2)
    step = np.roll(points, -1, axis=1) - points
    sides = np.stack([-half, half], axis=1)[:, None]  # (P, 1, 2 sides, 2 axes)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (sides - points[:, :, None]) / step[:, :, None]
    crossings = np.nan_to_num(crossings, nan=0.0, posinf=1.0, neginf=0.0)
    places = np.sort(crossings.reshape(-1, _EDGES, _PIECES).clip(0, 1), axis=2)
    places = np.concatenate([np.zeros_like(places[..., :1]), places], axis=2)  # the edge's start, then its crossings
    outline = points[:, :, None] + places[..., None] * step[:, :, None]
    outline = outline.reshape(-1, _EDGES * (_PIECES + 1), 2).clip(-half[:, None], half[:, None])
    following = np.roll(outline, -1, axis=1)
    cross = outline[..., 0] * following[..., 1] - outline[..., 1] * following[..., 0]
    area: NDArray[np.float64] = np.abs(cross.sum(axis=1)) / 2
    return area


def _turned(points: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N, K, 2) turned clockwise on the screen about the origin by ``angles`` (N,)."""
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    x, y = points[..., 0], points[..., 1]
    return np.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)


def _bounds_touch(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(N, M): whether upright rectangles (N, 4) and (M, 4) touch."""
    reach = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    touch: NDArray[np.bool_] = reach.min(axis=2) >= 0
    return touch


def _area(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    area: NDArray[np.float64] = np.abs((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))
    return area


def _distance(
    size: NDArray[np.float64], angle: NDArray[np.float64], wanted_size: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far a name of an outline is from another: (..., 2) sides and (...,) angles of both."""
    change = np.log(np.maximum(size, 1e-3) / np.maximum(wanted_size, 1e-3)) / _SIZE_SCALE
    distance: NDArray[np.float64] = np.hypot(np.hypot(change[..., 0], change[..., 1]), (angle - wanted) / _ANGLE_SCALE)
    return distance

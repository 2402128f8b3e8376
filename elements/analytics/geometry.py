"""Points, polygons and lines in the plane; x grows to the right, y down.

Membership is half-open, so a point on an edge that two zones share is in one of them, never in both.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elements.metadata.rotated import bounds

Point = tuple[float, float]
BOTTOM, CENTER = "bottom", "center"
_LARGEST_SHARE = 1 - 1e-6


def anchors(
    boxes: NDArray[np.floating], angles: NDArray[np.floating] | None, size: tuple[float, float], anchor: str = BOTTOM
) -> list[Point]:
    """The one point of each object that zones and lines look at, as shares of the picture.

    Args:
        boxes: (N, 4) xyxy pixels; of rotated objects the unrotated rectangle about the same centre.
        angles: (N,) radians, clockwise on the screen; ``None``: all upright.
        size: (width, height) of the picture, pixels.
        anchor: ``bottom``: middle of the lower side, of rotated objects that of the upright rectangle around them;
            ``center``: of the box, where a rotated one has it, too.

    Returns:
        N points (x, y). A point on or beyond an edge of the picture is moved just inside of it.
    """
    if angles is not None and anchor == BOTTOM and np.any(angles):
        boxes = bounds(boxes, angles)
    x = (boxes[:, 0] + boxes[:, 2]) / (2 * size[0])
    y = boxes[:, 3] / size[1] if anchor == BOTTOM else (boxes[:, 1] + boxes[:, 3]) / (2 * size[1])
    shares = np.stack([x, y], axis=1).astype(np.float64).clip(0.0, _LARGEST_SHARE)
    return [(x, y) for x, y in shares.tolist()]


def inside(polygon: Sequence[Point], point: Point) -> bool:
    """Whether a point lies in a polygon (even-odd rule). On its left or upper edge it does, on the others not.

    >>> left, right = [(0, 0), (1, 0), (1, 1), (0, 1)], [(1, 0), (2, 0), (2, 1), (1, 1)]
    >>> inside(left, (1, 0.5)), inside(right, (1, 0.5))
    (False, True)
    """
    y = point[1]
    found = False
    for upper, lower in itertools.pairwise((*polygon, polygon[0])):
        if upper[1] > lower[1]:  # neighbours go along a shared edge in opposite directions and must round alike
            upper, lower = lower, upper
        if upper[1] <= y < lower[1] and turn(upper, lower, point) > 0:
            found = not found
    return found


def turn(start: Point, end: Point, point: Point) -> float:
    """Which side of the line from ``start`` to ``end`` a point is on: its sign; 0 on the line.

    >>> turn((0, 0), (0, 1), (-1, 0.5))  # to the left of a line downwards on the screen
    1.0
    """
    return float((end[0] - start[0]) * (point[1] - start[1]) - (point[0] - start[0]) * (end[1] - start[1]))


def is_flat(points: Sequence[Point]) -> bool:
    """Whether all points lie on one line, so that nothing can be inside of them."""
    following = (*points[1:], points[0])
    return not any(abs(turn(a, b, c)) > 0 for a, b in zip(points, following, strict=True) for c in points)


def crossing_edges(points: Sequence[Point]) -> tuple[tuple[Point, Point], tuple[Point, Point]] | None:
    """Two edges of a polygon that cross, ``None`` if there are none. Edges that only touch do not.

    >>> crossing_edges([(0, 0), (1, 1), (1, 0), (0, 1)])
    (((0, 0), (1, 1)), ((1, 0), (0, 1)))
    """
    edges = list(zip(points, (*points[1:], points[0]), strict=True))
    for one, other in itertools.combinations(edges, 2):
        if turn(*one, other[0]) * turn(*one, other[1]) < 0 and turn(*other, one[0]) * turn(*other, one[1]) < 0:
            return one, other
    return None


def polygon_problem(points: Sequence[Point]) -> tuple[str, str] | None:
    """Why a polygon bounds no area, and what to do; ``None`` if it does."""
    if is_flat(points):
        return "the points of the polygon lie on one line", "no object can be inside"
    crossing = crossing_edges(points)
    if crossing is not None:
        edges = " and ".join(f"[{a:g}, {b:g}]-[{c:g}, {d:g}]" for (a, b), (c, d) in crossing)
        return f"the edges {edges} of the polygon cross", "list its corners in their order around the area"
    return None


def passes(path: tuple[Point, Point], line: tuple[Point, Point]) -> bool:
    """Whether a path that leads from one side of a line to the other does so between the line's ends.

    Half-open as well: through the end that two lines share, it passes one of them.
    """
    return (turn(*path, line[0]) > 0) != (turn(*path, line[1]) > 0)

"""Which detection belongs to which true object."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FALSE, IGNORED = -1, -2
"""Results of `match` for a detection without a true object, and for one that counts neither way."""


def intersections(a: Floats, b: Floats) -> Floats:
    """Areas (N, M) shared by boxes `a` (N, 4) and `b` (M, 4), xyxy."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides: Floats = np.maximum(high - low, 0.0)
    return sides[..., 0] * sides[..., 1]


def areas(boxes: Floats) -> Floats:
    """Areas (N,) of xyxy boxes (N, 4)."""
    sides: Floats = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
    return sides[:, 0] * sides[:, 1]


def iou(a: Floats, b: Floats) -> Floats:
    """Intersection over union (N, M) of xyxy boxes."""
    shared = intersections(a, b)
    union = areas(a)[:, None] + areas(b)[None, :] - shared
    return shared / np.maximum(union, 1e-9)


def match(
    boxes: Floats, scores: Floats, truth: Floats, ignore: NDArray[np.bool_], threshold: float = 0.5
) -> NDArray[np.intp]:
    """Matches the detections of one class in one frame, best score first, each true object at most once (as COCO does).

    Args:
        boxes: (N, 4) detected boxes, xyxy in pixels.
        scores: (N,) confidences.
        truth: (M, 4) true boxes.
        ignore: (M,) objects that need not be found. A detection without a match that has at least `threshold` of its
            area inside one of them is ignored.
        threshold: least intersection over union of a match.

    Returns:
        (N,) index into `truth`, or `FALSE`, or `IGNORED`.
    """
    result = np.full(len(boxes), FALSE, np.intp)
    if not len(boxes) or not len(truth):
        return result
    overlap = iou(boxes, truth)
    overlap[:, ignore] = 0.0
    inside = intersections(boxes, truth[ignore]) / np.maximum(areas(boxes), 1e-9)[:, None]
    ignorable: NDArray[np.bool_] = np.any(inside >= threshold, axis=1)
    for index in np.argsort(-scores, kind="stable"):
        best = int(np.argmax(overlap[index]))
        if overlap[index, best] >= threshold:
            result[index] = best
            overlap[:, best] = 0.0
        elif ignorable[index]:
            result[index] = IGNORED
    return result

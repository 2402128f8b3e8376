"""Functions on rows of network output: grids, boxes, the best class."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from elements.inference.letterbox import Size
from elements.metadata.detections import FloatArray, IntArray

STRIDE_SETS = ((8, 16, 32), (8, 16, 32, 64), (16, 32), (4, 8, 16, 32))
PROBABILITY = (-0.01, 1.01)  # range of a probability, with room for the rounding of half precision


def are_probabilities(values: FloatArray) -> bool:
    """Whether all finite ``values`` are from 0 to 1."""
    finite = values[np.isfinite(values)]
    return not finite.size or bool(finite.min() >= PROBABILITY[0] and finite.max() <= PROBABILITY[1])


def looks_normalized(boxes: FloatArray) -> bool | None:
    """Whether boxes are 0 to 1. ``None`` if all are zero, so nothing can be told.

    A dense head spreads its boxes over the whole input, so in pixels the largest number is near the input's size;
    in 0-1 it stays near 1 (a box may stick out a little, hence 2).
    """
    largest = np.abs(boxes, where=np.isfinite(boxes), out=np.zeros_like(boxes)).max(initial=0)
    return None if largest == 0 else bool(largest <= 2)


@lru_cache(maxsize=256)
def strides_of(anchors: int, size: Size) -> tuple[int, ...] | None:
    """The strides whose grids over ``size`` have ``anchors`` cells together, ``None`` if there are none."""
    width, height = size
    for strides in STRIDE_SETS:
        if sum(-(-width // s) * -(-height // s) for s in strides) == anchors:
            return strides
    return None


@lru_cache(maxsize=32)
def grid(size: Size, anchors: int) -> tuple[FloatArray, FloatArray]:
    """Cell (x, y) and stride of each anchor: (A, 2) and (A, 1), row by row, fine grid first.

    Raises:
        ValueError: if no known strides give ``anchors`` cells for ``size``.
    """
    strides = strides_of(anchors, size)
    if strides is None:
        raise ValueError(f"{anchors} anchors do not fit a {size[0]}x{size[1]} input")
    cells, steps = [], []
    for stride in strides:
        columns, rows = -(-size[0] // stride), -(-size[1] // stride)
        x, y = np.meshgrid(np.arange(columns), np.arange(rows))
        cells.append(np.stack([x, y], axis=2).reshape(-1, 2))
        steps.append(np.full((rows * columns, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(steps).astype(np.float32)


def corners(center_size: FloatArray) -> FloatArray:
    """(N, 4) cx, cy, w, h to x1, y1, x2, y2."""
    half = center_size[:, 2:] / 2
    return np.concatenate([center_size[:, :2] - half, center_size[:, :2] + half], axis=1)


def select_best(scores: FloatArray, confidence: float) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Rows of (N, C) ``scores`` whose best class reaches ``confidence``: indices, scores, class numbers.

    The last value counts rows without a number.
    """
    # Comparing first is twice as fast as max(axis=1) over rows this short.
    index = np.flatnonzero((scores >= confidence).any(axis=1))
    class_ids = scores[index].argmax(axis=1)
    invalid = int(np.isnan(scores).any(axis=1).sum()) if np.isnan(scores.sum()) else 0
    found = scores[index, class_ids]
    clean = ~np.isnan(found)
    return index[clean], found[clean], class_ids[clean], invalid


def select_by_objectness(rows: FloatArray, confidence: float) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Rows ``box, objectness, classes…`` that reach ``confidence``: indices, objectness x class, class numbers.

    Objectness alone is compared first: a class score is at most 1, so nothing is lost and few rows remain.
    The last value counts rows without a number in objectness or class.
    """
    objectness = rows[:, 4]
    invalid = int(np.count_nonzero(np.isnan(objectness)))
    index = np.flatnonzero(objectness >= confidence)
    classes = rows[index, 5:]
    class_ids = classes.argmax(axis=1)
    scores = objectness[index] * classes[np.arange(len(index)), class_ids]
    invalid += int(np.count_nonzero(np.isnan(scores)))
    keep = scores >= confidence
    return index[keep], scores[keep], class_ids[keep], invalid

"""How much predicted and true objects overlap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from elements.metadata.rotated import rotated_iou
from pipelines.evaluation.annotations import Floats, Mask, Objects

Overlap = Callable[[Objects, Objects], Floats]
"""(N, M) overlaps of N predicted and M true objects: intersection over union; for true objects that need not be found
(``ignore``) over the area of the predicted one, as COCO does for crowds."""


def box_overlap(predicted: Objects, truth: Objects) -> Floats:
    """`Overlap` of boxes, turned ones as well (exact)."""
    first, second = _areas(predicted.boxes), _areas(truth.boxes)
    if predicted.angles.any() or truth.angles.any():
        iou = rotated_iou(predicted.boxes, predicted.angles, truth.boxes, truth.angles)
        shared = iou * (first[:, None] + second[None]) / (1 + iou)
        return _shares(shared, first, second, truth)
    low = np.maximum(predicted.boxes[:, None, :2], truth.boxes[None, :, :2])
    high = np.minimum(predicted.boxes[:, None, 2:], truth.boxes[None, :, 2:])
    return _shares(np.maximum(high - low, 0).prod(axis=2), first, second, truth)


def mask_overlap(predicted: Objects, truth: Objects) -> Floats:
    """`Overlap` of masks; 0 where one has none."""
    shared = np.zeros((len(predicted), len(truth)))
    for i, mine in enumerate(predicted.masks):
        for j, theirs in enumerate(truth.masks):
            shared[i, j] = _shared_pixels(mine, theirs)
    return _shares(shared, _pixels(predicted), _pixels(truth), truth)


def _shares(shared: Floats, first: Floats, second: Floats, truth: Objects) -> Floats:
    whole = first[:, None] + second[None] - shared
    whole[:, truth.ignore] = first[:, None]
    return np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)


def _areas(boxes: Floats) -> Floats:
    areas: Floats = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1)
    return areas


def _pixels(objects: Objects) -> Floats:
    return np.array([0 if mask is None else np.count_nonzero(mask.pixels) for mask in objects.masks], np.float64)


def _shared_pixels(a: Mask | None, b: Mask | None) -> int:
    if a is None or b is None:
        return 0
    left, top = max(a.x, b.x), max(a.y, b.y)
    right = min(a.x + a.pixels.shape[1], b.x + b.pixels.shape[1])
    bottom = min(a.y + a.pixels.shape[0], b.y + b.pixels.shape[0])
    if right <= left or bottom <= top:
        return 0
    parts = (mask.pixels[top - mask.y : bottom - mask.y, left - mask.x : right - mask.x] for mask in (a, b))
    return int(np.count_nonzero(np.logical_and(*parts)))

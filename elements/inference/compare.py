"""How far two models, or two builds of one model, agree on the same pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from elements.metadata.detections import Detections
from elements.metadata.rotated import rotated_iou

SAME_OBJECT = 0.5
"""Overlap (IoU) from which two boxes of one class count as the same object."""


@dataclass(slots=True)
class Agreement:
    """What two sets of detections have in common, added up over frames.

    Attributes:
        frames: frames compared.
        first, second: objects found by each.
        matched: pairs of one class that overlap by `SAME_OBJECT` or more, each object in one pair at most.
        ious: overlap of each pair.
        shifts: largest difference of a coordinate of each pair, source pixels.
        score_shifts: difference of the confidences of each pair, absolute.
    """

    frames: int = 0
    first: int = 0
    second: int = 0
    matched: int = 0
    ious: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    score_shifts: list[float] = field(default_factory=list)

    def add(self, first: Sequence[Detections], second: Sequence[Detections]) -> None:
        """Compare the frames of one batch, in order."""
        for one, other in zip(first, second, strict=True):
            rows, columns, overlaps = matches(one, other)
            self.frames += 1
            self.first += len(one)
            self.second += len(other)
            self.matched += len(rows)
            self.ious += overlaps.tolist()
            self.shifts += np.abs(one.boxes[rows] - other.boxes[columns]).max(axis=1).tolist()
            self.score_shifts += np.abs(one.scores[rows] - other.scores[columns]).tolist()

    @property
    def agreement(self) -> float:
        """F1 of the pairs: 1 where each object has its twin; 1 too where neither found any."""
        total = self.first + self.second
        return 2 * self.matched / total if total else 1.0

    @property
    def mean_iou(self) -> float:
        """Mean overlap of the pairs; 1 where there are none."""
        return float(np.mean(self.ious)) if self.ious else 1.0

    def shift(self, percentile: float) -> float:
        """That percentile of the pairs' coordinate differences, source pixels; 0 where there are none."""
        return float(np.percentile(self.shifts, percentile)) if self.shifts else 0.0

    def score_shift(self, percentile: float) -> float:
        """That percentile of the pairs' confidence differences; 0 where there are none."""
        return float(np.percentile(self.score_shifts, percentile)) if self.score_shifts else 0.0


def matches(
    first: Detections, second: Detections, least: float = SAME_OBJECT
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Pairs of objects of one class, by the greatest sum of overlaps (Hungarian method).

    Returns:
        Rows of ``first``, rows of ``second``, and overlap (rotated IoU where boxes are turned) of each pair.
    """
    overlap = _overlaps(first, second)
    overlap[first.class_ids[:, None] != second.class_ids[None, :]] = 0
    overlap[overlap < least] = 0
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    kept = overlap[rows, columns] > 0
    return rows[kept], columns[kept], overlap[rows, columns][kept]


def _overlaps(first: Detections, second: Detections) -> NDArray[np.float32]:
    angles = [d.angles if d.angles is not None else np.zeros(len(d), np.float32) for d in (first, second)]
    if not (angles[0].any() or angles[1].any()):
        return _upright_iou(first.boxes, second.boxes)
    return np.asarray(rotated_iou(first.boxes, angles[0], second.boxes, angles[1]), np.float32)


def _upright_iou(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, M) overlap of xyxy boxes; 0 where both are empty."""
    corner = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    common = np.clip(corner, 0, None).prod(axis=2)
    area_a, area_b = (np.clip(box[:, 2:] - box[:, :2], 0, None).prod(axis=1) for box in (a, b))
    union = area_a[:, None] + area_b[None, :] - common
    result: NDArray[np.float32] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return result

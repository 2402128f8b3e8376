"""A new model compared with the one in force, on the same frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elements.inference.swap.options import SwapOptions
from elements.metadata.detections import Detections, FloatArray

SAME_OBJECT_IOU = 0.1  # boxes that overlap less are different objects, whose overlap says nothing


@dataclass(slots=True)
class Comparison:
    """What a shadow run has seen so far. Classes are not compared: the new model may have others.

    Attributes:
        options: the limits, and the number of batches.
        batches: compared so far.
        old: objects of the model in force.
        new: objects of the new one.
        matched: pairs of boxes of the same object.
        overlap: sum of their IoU.
    """

    options: SwapOptions
    batches: int = 0
    old: int = 0
    new: int = 0
    matched: int = 0
    overlap: float = 0.0

    def add(self, frames: list[tuple[Detections, Detections]]) -> None:
        """Count one batch: for each frame what the old and the new model found."""
        self.batches += 1
        for old, new in frames:
            overlaps = matched_ious(old.boxes, new.boxes)
            self.old += len(old)
            self.new += len(new)
            self.matched += len(overlaps)
            self.overlap += float(overlaps.sum())

    @property
    def complete(self) -> bool:
        """Whether as many batches were compared as the options ask for."""
        return self.batches >= self.options.shadow

    @property
    def mean_iou(self) -> float | None:
        """Mean IoU of matched boxes; 0 if both models found objects and none are the same; ``None`` without objects."""
        if self.matched:
            return self.overlap / self.matched
        return 0.0 if self.old and self.new else None

    def problem(self) -> str:
        """Which limit does not hold, in words; empty if all hold."""
        change = abs(self.new - self.old) / max(self.old, 1)
        if change > self.options.max_count_change:
            return (
                f"in {self.batches} batches it found {self.new} objects where the model in force found {self.old} "
                f"(swap.max_count_change: {self.options.max_count_change:g})"
            )
        if self.mean_iou is not None and self.mean_iou < self.options.min_iou:
            return (
                f"its boxes overlap those of the model in force by {self.mean_iou:.2f} (mean IoU) in {self.batches} "
                f"batches (swap.min_iou: {self.options.min_iou:g})"
            )
        return ""


def matched_ious(old: FloatArray, new: FloatArray) -> FloatArray:
    """IoU of each pair of boxes that show the same object: greedy, best first, each box once.

    Args:
        old: (N, 4) xyxy.
        new: (M, 4) xyxy.

    Returns:
        (K,) at least `SAME_OBJECT_IOU` each, K at most min(N, M).
    """
    if not len(old) or not len(new):
        return np.empty(0, np.float32)
    corner = np.maximum(old[:, None, :2], new[None, :, :2])
    sides = np.clip(np.minimum(old[:, None, 2:], new[None, :, 2:]) - corner, 0, None)
    shared = sides[..., 0] * sides[..., 1]
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (old, new)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    ious = np.where(union > 0, shared / np.where(union > 0, union, 1), 0).astype(np.float32)
    found = []
    for _ in range(min(ious.shape)):
        row, column = np.unravel_index(int(ious.argmax()), ious.shape)
        if ious[row, column] < SAME_OBJECT_IOU:
            break
        found.append(ious[row, column])
        ious[row, :] = ious[:, column] = -1
    return np.array(found, np.float32)

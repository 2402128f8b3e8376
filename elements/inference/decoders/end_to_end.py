"""Heads that suppress overlaps themselves: YOLOv10, YOLO26 and ultralytics exports with ``nms=True``.

Layout after ultralytics/nn/modules/head.py (postprocess of the end-to-end heads): box, score, class, then what the task
adds, best first. The box is x1, y1, x2, y2; for rotated objects cx, cy, w, h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities, corners, strides_of
from elements.inference.decoders.sample import CONFIRMED, NO_FIT, Reading, Sample, task_columns
from elements.inference.letterbox import Size
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

MOST_ROWS = 1000
COLUMNS = 6


class EndToEnd(Decoder):
    """(B, 300, 6): one finished object per row, unused rows with score 0.

    Attributes:
        centered: whether upright boxes are cx, cy, w, h from 0 to 1.
    """

    layout = "end2end"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "(B, 300, 6)",
        "obb": "(B, 300, 7)",
        "segment": "(B, 300, 6+M) and (B, M, h, w)",
        "pose": "(B, 300, 6+3K)",
    }
    suppress = False
    has_grid = False
    centered: ClassVar[bool] = False

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = sample.first(3)
        if name is None or sample.outputs[name].shape[2] < COLUMNS:
            return None
        output = sample.outputs[name]
        extras = output.shape[2] - COLUMNS
        added = (extras, ()) if task == "pose" and not sample.keypoints else task_columns(sample, task, extras + 1)
        if added is None or added[0] != extras or (task == "pose" and (extras == 0 or extras % 3)):
            return None
        finished = output.shape[1] <= MOST_ROWS and not any(strides_of(n, sample.size) for n in output.shape[1:])
        fits = finished and _are_class_numbers(output[..., 5]) and cls.centered == _are_centered(output[..., :4])
        return Reading(task, (name, *added[1]), None, extras, CONFIRMED if fits else NO_FIT)

    @classmethod
    def largest_stride(cls, shape: tuple[int, ...], size: Size) -> int:
        return 32

    @classmethod
    def fits_size(cls, shape: tuple[int, ...], size: Size) -> bool:
        return shape[1] <= MOST_ROWS

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., :4]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., 4]

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        scores = outputs[0][:, 4]
        rows = outputs[0][np.flatnonzero(scores >= confidence)]
        invalid = int(np.count_nonzero(np.isnan(scores)))
        finite = np.isfinite(rows[:, 5])
        invalid += len(rows) - int(np.count_nonzero(finite))
        rows = rows[finite]
        boxes = corners(rows[:, :4]) if self.centered or self.task == "obb" else rows[:, :4]
        extras = rows[:, COLUMNS:] if self.reading.extras else None
        return Candidates(boxes, rows[:, 4], rows[:, 5].astype(np.int64), invalid, extras)


def _are_class_numbers(column: FloatArray) -> bool:
    finite = column[np.isfinite(column)]
    return bool((finite == np.round(finite)).all() and (finite >= 0).all())


def _are_centered(boxes: FloatArray) -> bool:
    """Whether boxes are from 0 to 1 and their last two numbers cannot be a second corner."""
    return are_probabilities(boxes) and bool((boxes[..., 2:] < boxes[..., :2]).any())

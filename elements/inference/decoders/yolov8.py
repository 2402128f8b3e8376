"""Ultralytics YOLOv8, YOLOv9, YOLO11, YOLO12 and YOLOv5u heads: box and class scores, no objectness.

Layout after the export of ultralytics/nn/modules/head.py (Detect, OBB, Segment, Pose): cx, cy, w, h in input pixels, C
sigmoid scores, then the angle in radians, or mask coefficients, or key points (x, y in input pixels, sigmoid score).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates
from elements.inference.decoders.dense import Dense
from elements.inference.decoders.rows import corners, select_best
from elements.inference.decoders.sample import CONFIRMED, FITS, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray


class YoloV8(Dense):
    """(B, columns, A), the order in which ultralytics exports."""

    layout = "yolov8"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "(B, 4+C, A)",
        "obb": "(B, 4+C+1, A)",
        "segment": "(B, 4+C+M, A) and (B, M, h, w)",
        "pose": "(B, 4+C+3K, A)",
    }

    @staticmethod
    def rows(output: FloatArray) -> FloatArray:
        return output.swapaxes(-1, -2)

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        return shape[2]

    @classmethod
    def trust(cls, sample: Sample, reading: Reading) -> int:
        return CONFIRMED

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        columns = outputs[0]
        classes = len(columns) - self.reading.extras
        scores = columns[4:classes]
        best = scores.max(axis=0)
        index = np.flatnonzero(best >= confidence)
        invalid = int(np.count_nonzero(np.isnan(best)))
        extras = columns[classes:, index].T if self.reading.extras else None
        return Candidates(corners(columns[:4, index].T), best[index], scores[:, index].argmax(axis=0), invalid, extras)


class YoloV8Transposed(Dense):
    """(B, A, columns): the same with one row per anchor."""

    layout = "yolov8-transposed"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "(B, A, 4+C)",
        "obb": "(B, A, 4+C+1)",
        "segment": "(B, A, 4+C+M) and (B, M, h, w)",
        "pose": "(B, A, 4+C+3K)",
    }

    @classmethod
    def trust(cls, sample: Sample, reading: Reading) -> int:
        expected = reading.classes == (sample.label_count or 80)
        return CONFIRMED if sample.ultralytics or expected else FITS

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows, extras = self.split(outputs[0])
        index, scores, class_ids, invalid = select_best(rows[:, 4:], confidence)
        return Candidates(
            corners(rows[index, :4]), scores, class_ids, invalid, None if extras is None else extras[index]
        )

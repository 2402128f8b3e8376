"""Anchor-based YOLOv5 heads (also YOLOv7): three boxes per grid cell, objectness and classes.

Layout after ultralytics/yolov5 models/yolo.py (Detect, Segment, export): cx, cy, w, h in input pixels, objectness,
C scores, mask coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from elements.inference.decoders.base import Arrays, Candidates
from elements.inference.decoders.dense import Dense
from elements.inference.decoders.rows import corners, select_by_objectness
from elements.inference.decoders.sample import CONFIRMED, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.tasks import Task


class YoloV5(Dense):
    """(B, A, 5+C) with A three times the grid cells."""

    layout = "yolov5"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "(B, 3A, 5+C)",
        "segment": "(B, 3A, 5+C+M) and (B, M, h, w)",
    }
    box_columns = 5

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        return shape[1] // 3 if shape[1] % 3 == 0 else 0

    @classmethod
    def trust(cls, sample: Sample, reading: Reading) -> int:
        return CONFIRMED

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows, extras = self.split(outputs[0])
        index, scores, class_ids, invalid = select_by_objectness(rows, confidence)
        return Candidates(
            corners(rows[index, :4]), scores, class_ids, invalid, None if extras is None else extras[index]
        )

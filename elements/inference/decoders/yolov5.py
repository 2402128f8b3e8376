"""Anchor-based YOLOv5 heads (also YOLOv7): three boxes per grid cell, objectness and classes.

Layout after ultralytics/yolov5 models/yolo.py (Detect, export): cx, cy, w, h in input pixels, objectness, C scores.
"""

from __future__ import annotations

from elements.inference.decoders.base import (
    CONFIRMED,
    NO_FIT,
    Candidates,
    Decoder,
    Sample,
    corners,
    select_by_objectness,
)
from elements.inference.letterbox import Size
from elements.metadata.detections import FloatArray


class YoloV5(Decoder):
    """(B, A, 5+C) with A three times the grid cells."""

    layout = "yolov5"
    shape = "(B, 3A, 5+C)"
    box_columns = 5

    @classmethod
    def match(cls, sample: Sample) -> int:
        return CONFIRMED if sample.output.shape[2] > 5 and cls.fits_size(sample.output.shape, sample.size) else NO_FIT

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        return shape[1] // 3 if shape[1] % 3 == 0 else 0

    @staticmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        return output[..., :4]

    @staticmethod
    def scores_of(output: FloatArray) -> FloatArray:
        return output[..., 4:]

    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        index, scores, class_ids, invalid = select_by_objectness(output, confidence)
        return Candidates(corners(output[index, :4]), scores, class_ids, invalid)

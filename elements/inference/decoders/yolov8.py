"""Ultralytics YOLOv8, YOLO11 and YOLOv5u heads: box and class scores, no objectness.

Layout after ultralytics/nn/modules/head.py (Detect, export): cx, cy, w, h in input pixels, then C sigmoid scores.
"""

from __future__ import annotations

import numpy as np

from elements.inference.decoders.base import CONFIRMED, FITS, NO_FIT, Candidates, Decoder, Sample, corners, strides_of
from elements.inference.letterbox import Size
from elements.metadata.detections import FloatArray


class YoloV8(Decoder):
    """(B, 4+C, A), the order in which ultralytics exports."""

    layout = "yolov8"
    shape = "(B, 4+C, A)"

    @classmethod
    def match(cls, sample: Sample) -> int:
        columns, anchors = sample.output.shape[1:]
        return CONFIRMED if columns > 4 and strides_of(anchors, sample.size) else NO_FIT

    @classmethod
    def num_classes(cls, shape: tuple[int, ...]) -> int:
        return shape[1] - 4

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        return shape[2]

    @staticmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        return output[:, :4]

    @staticmethod
    def scores_of(output: FloatArray) -> FloatArray:
        return output[:, 4:]

    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        scores = output[4:]
        best = scores.max(axis=0)
        index = np.flatnonzero(best >= confidence)
        invalid = int(np.count_nonzero(np.isnan(best)))
        return Candidates(corners(output[:4, index].T), best[index], scores[:, index].argmax(axis=0), invalid)


class YoloV8Transposed(Decoder):
    """(B, A, 4+C): the same with one row per anchor."""

    layout = "yolov8-transposed"
    shape = "(B, A, 4+C)"

    @classmethod
    def match(cls, sample: Sample) -> int:
        anchors, columns = sample.output.shape[1:]
        if columns <= 4 or not strides_of(anchors, sample.size):
            return NO_FIT
        expected = columns - 4 == (sample.label_count or 80)
        return CONFIRMED if sample.ultralytics or expected else FITS

    @staticmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        return output[..., :4]

    @staticmethod
    def scores_of(output: FloatArray) -> FloatArray:
        return output[..., 4:]

    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        scores = output[:, 4:]
        # Comparing first is twice as fast as max(axis=1) over rows this short.
        index = np.flatnonzero((scores >= confidence).any(axis=1))
        class_ids = scores[index].argmax(axis=1)
        invalid = int(np.isnan(scores).any(axis=1).sum()) if np.isnan(scores.sum()) else 0
        found = scores[index, class_ids]
        clean = ~np.isnan(found)
        index = index[clean]
        return Candidates(corners(output[index, :4]), found[clean], class_ids[clean], invalid)

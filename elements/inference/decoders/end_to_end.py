"""Heads that suppress overlaps themselves: YOLOv10, YOLO26 and ultralytics exports with ``nms=True``.

Layout after ultralytics/nn/modules/head.py (v10Detect.postprocess): x1, y1, x2, y2, score, class, best first.
"""

from __future__ import annotations

import numpy as np

from elements.inference.decoders.base import CONFIRMED, NO_FIT, Candidates, Decoder, Sample, strides_of
from elements.inference.letterbox import Size
from elements.metadata.detections import FloatArray

MOST_ROWS = 1000


class EndToEnd(Decoder):
    """(B, 300, 6): one finished object per row, unused rows with score 0."""

    layout = "end2end"
    shape = "(B, 300, 6)"
    suppress = False
    has_grid = False

    @classmethod
    def match(cls, sample: Sample) -> int:
        rows, columns = sample.output.shape[1:]
        finished = columns == 6 and rows <= MOST_ROWS and not strides_of(rows, sample.size)
        return CONFIRMED if finished else NO_FIT

    @classmethod
    def num_classes(cls, shape: tuple[int, ...]) -> None:
        return None

    @classmethod
    def largest_stride(cls, shape: tuple[int, ...], size: Size) -> int:
        return 32

    @classmethod
    def fits_size(cls, shape: tuple[int, ...], size: Size) -> bool:
        return shape[2] == 6

    @staticmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        return output[..., :4]

    @staticmethod
    def scores_of(output: FloatArray) -> FloatArray:
        return output[..., 4]

    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        scores = output[:, 4]
        index = np.flatnonzero(scores >= confidence)
        rows = output[index]
        invalid = int(np.count_nonzero(np.isnan(scores)))
        finite = np.isfinite(rows[:, 5])
        invalid += len(rows) - int(np.count_nonzero(finite))
        rows = rows[finite]
        return Candidates(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64), invalid)

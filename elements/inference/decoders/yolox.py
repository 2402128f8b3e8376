"""YOLOX heads: one box per grid cell, objectness and classes (sigmoid already applied).

Layout after Megvii-BaseDetection/YOLOX yolox/models/yolo_head.py (decode_outputs):
``center = (raw + cell) * stride``, ``size = exp(raw) * stride``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates
from elements.inference.decoders.dense import Dense
from elements.inference.decoders.rows import corners, grid, select_by_objectness, strides_of
from elements.inference.decoders.sample import CONFIRMED, FITS, NO_FIT, Reading, Sample
from elements.inference.errors import ModelError
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task


class _YoloxRows(Dense):
    preprocess = Preprocess(letterbox="top-left", color="bgr", scale="0-255", pad=114)
    box_columns = 5
    decoded: ClassVar[bool]

    @classmethod
    def trust(cls, sample: Sample, reading: Reading) -> int:
        if sample.ultralytics or _in_pixels(sample, reading) != cls.decoded:
            return NO_FIT
        return CONFIRMED if reading.classes == (sample.label_count or 80) else FITS


class Yolox(_YoloxRows):
    """(B, A, 5+C) as the network gives it: boxes relative to their grid cell."""

    layout = "yolox"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, A, 5+C), raw grid"}
    decoded = False

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        shape = sample.outputs[reading.outputs[0]].shape
        if strides_of(shape[1], sample.size) is None:
            raise ModelError(
                f"layout yolox needs one row per grid cell of strides 8, 16, 32, but the output {shape} "
                f"does not have that many for a {sample.size[0]}x{sample.size[1]} input: declare another layout"
            )
        self.normalized = False

    def set_coordinates(self, normalized: bool) -> None:
        if normalized:
            raise ModelError("coordinates: layout yolox has boxes relative to its grid: leave 'coordinates' out")

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows = outputs[0]
        index, scores, class_ids, invalid = select_by_objectness(rows, confidence)
        cells, strides = grid(size, len(rows))
        raw, stride = rows[index, :4], strides[index]
        boxes = np.concatenate([(raw[:, :2] + cells[index]) * stride, np.exp(raw[:, 2:]) * stride], axis=1)
        return Candidates(corners(boxes), scores, class_ids, invalid)


class YoloxDecoded(_YoloxRows):
    """(B, A, 5+C) exported with ``--decode_in_inference``: boxes already in input pixels."""

    layout = "yolox-decoded"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, A, 5+C), boxes in pixels"}
    decoded = True

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows = outputs[0]
        index, scores, class_ids, invalid = select_by_objectness(rows, confidence)
        return Candidates(corners(rows[index, :4]), scores, class_ids, invalid)


def _in_pixels(sample: Sample, reading: Reading) -> bool:
    """Whether box centres span the input. Raw ones are offsets within a cell, a few units at most."""
    centers = sample.outputs[reading.outputs[0]][..., :2]
    return bool(np.nanmax(centers, initial=0) > max(sample.size) / 4)

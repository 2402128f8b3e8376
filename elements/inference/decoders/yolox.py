"""YOLOX heads: one box per grid cell, objectness and classes (sigmoid already applied).

Layout after Megvii-BaseDetection/YOLOX yolox/models/yolo_head.py (decode_outputs):
``center = (raw + cell) * stride``, ``size = exp(raw) * stride``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from elements.inference.decoders.base import (
    CONFIRMED,
    FITS,
    NO_FIT,
    Candidates,
    Decoder,
    Sample,
    corners,
    select_by_objectness,
    strides_of,
)
from elements.inference.decoders.yolov5 import YoloV5
from elements.inference.errors import ModelError
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.metadata.detections import FloatArray

YOLOX_PREPROCESS = Preprocess(letterbox="top-left", color="bgr", scale="0-255", pad=114)


class Yolox(Decoder):
    """(B, A, 5+C) as the network gives it: boxes relative to their grid cell."""

    layout = "yolox"
    shape = "(B, A, 5+C), raw grid"
    preprocess = YOLOX_PREPROCESS
    box_columns = 5

    def __init__(self, sample: Sample) -> None:
        if strides_of(sample.output.shape[1], sample.size) is None:
            raise ModelError(
                f"layout yolox needs one row per grid cell of strides 8, 16, 32, but the output {sample.output.shape} "
                f"does not have that many for a {sample.size[0]}x{sample.size[1]} input: declare another layout"
            )
        self.normalized = False

    def set_coordinates(self, normalized: bool) -> None:
        if normalized:
            raise ModelError("coordinates: layout yolox has boxes relative to its grid: leave 'coordinates' out")

    @classmethod
    def match(cls, sample: Sample) -> int:
        return _match(sample) if not _in_pixels(sample) else NO_FIT

    @staticmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        return output[..., :4]

    @staticmethod
    def scores_of(output: FloatArray) -> FloatArray:
        return output[..., 4:]

    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        index, scores, class_ids, invalid = select_by_objectness(output, confidence)
        cells, strides = grid(size, len(output))
        raw, stride = output[index, :4], strides[index]
        boxes = np.concatenate([(raw[:, :2] + cells[index]) * stride, np.exp(raw[:, 2:]) * stride], axis=1)
        return Candidates(corners(boxes), scores, class_ids, invalid)


class YoloxDecoded(YoloV5):
    """(B, A, 5+C) exported with ``--decode_in_inference``: boxes already in input pixels."""

    layout = "yolox-decoded"
    shape = "(B, A, 5+C), boxes in pixels"
    preprocess = YOLOX_PREPROCESS

    @classmethod
    def match(cls, sample: Sample) -> int:
        return _match(sample) if _in_pixels(sample) else NO_FIT

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        return shape[1]


def _match(sample: Sample) -> int:
    anchors, columns = sample.output.shape[1:]
    if columns <= 5 or sample.ultralytics or not strides_of(anchors, sample.size):
        return NO_FIT
    return CONFIRMED if columns - 5 == (sample.label_count or 80) else FITS


def _in_pixels(sample: Sample) -> bool:
    """Whether box centres span the input. Raw ones are offsets within a cell, a few units at most."""
    centers = sample.output[..., :2]
    return bool(np.nanmax(centers, initial=0) > max(sample.size) / 4)


@lru_cache(maxsize=32)
def grid(size: Size, anchors: int) -> tuple[FloatArray, FloatArray]:
    """Cell (x, y) and stride of each anchor: (A, 2) and (A, 1), row by row, fine grid first.

    Raises:
        ValueError: if no known strides give ``anchors`` cells for ``size``.
    """
    strides = strides_of(anchors, size)
    if strides is None:
        raise ValueError(f"{anchors} anchors do not fit a {size[0]}x{size[1]} input")
    cells, steps = [], []
    for stride in strides:
        columns, rows = -(-size[0] // stride), -(-size[1] // stride)
        x, y = np.meshgrid(np.arange(columns), np.arange(rows))
        cells.append(np.stack([x, y], axis=2).reshape(-1, 2))
        steps.append(np.full((rows * columns, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(steps).astype(np.float32)

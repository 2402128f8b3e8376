"""NanoDet heads: class scores, and for each side of the box a distribution over distances.

Layout after RangiLyu/nanodet: nanodet/model/head/nanodet_plus_head.py (_forward_onnx, get_bboxes): sigmoid scores, then
left, top, right, bottom with 8 logits each. A distance is the expected bin (softmax) times the stride, counted from the
cell's corner in NanoDet-Plus (strides 8 to 64) and from its centre in NanoDet (strides 8 to 32).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import grid, select_best, strides_of
from elements.inference.decoders.sample import CONFIRMED, NO_FIT, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

BINS = 8
REGRESSION = 4 * BINS


class NanoDet(Decoder):
    """(B, A, C+32): a row per grid cell."""

    layout = "nanodet"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, A, C+32)"}
    preprocess = Preprocess(letterbox="stretch", color="bgr", scale="imagenet")

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = sample.first(3)
        if name is None or sample.outputs[name].shape[2] <= REGRESSION:
            return None
        rows, classes = sample.outputs[name].shape[1], sample.outputs[name].shape[2] - REGRESSION
        if strides_of(rows, sample.size) is None:
            return None
        return Reading(task, (name,), classes, 0, CONFIRMED if classes == (sample.label_count or 80) else NO_FIT)

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        self.normalized = False

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., -REGRESSION:]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., :-REGRESSION]

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows = outputs[0]
        index, scores, class_ids, invalid = select_best(rows[:, :-REGRESSION], confidence)
        cells, strides = grid(size, len(rows))
        plus = len(strides_of(len(rows), size) or ()) == 4
        logits = rows[index, -REGRESSION:].reshape(-1, 4, BINS)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        bins = (weights * np.arange(BINS, dtype=np.float32)).sum(axis=2) / weights.sum(axis=2)
        distance = bins * strides[index]
        origin = (cells[index] + (0 if plus else 0.5)) * strides[index]
        boxes = np.concatenate([origin - distance[:, :2], origin + distance[:, 2:]], axis=1)
        return Candidates(boxes.astype(np.float32), scores, class_ids, invalid)

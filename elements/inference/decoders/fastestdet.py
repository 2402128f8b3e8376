"""FastestDet heads: one grid, one box per cell.

Layout after dog-qiuqiu/FastestDet utils/tool.py (handle_preds): objectness and class scores already squashed;
``score = objectness^0.6 * class^0.4``, ``center = (tanh(raw) + cell) / cells``, ``size = sigmoid(raw)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities, corners
from elements.inference.decoders.sample import CONFIRMED, FITS, NO_FIT, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

OBJECTNESS_POWER, CLASS_POWER = 0.6, 0.4


class FastestDet(Decoder):
    """(B, 5+C, h, w): objectness, box, classes."""

    layout = "fastestdet"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, 5+C, h, w)"}
    preprocess = Preprocess(letterbox="stretch", color="bgr")
    has_grid = False

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        self.normalized = True

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = sample.only(4)
        if name is None or sample.outputs[name].shape[1] <= 5:
            return None
        _, columns, height, width = sample.outputs[name].shape
        whole_cells = sample.size[0] % width == 0 and sample.size[0] * height == sample.size[1] * width
        certainty = NO_FIT
        if whole_cells and sample.only(3) is None and are_probabilities(cls._scores(sample.outputs[name])):
            certainty = CONFIRMED if columns - 5 == (sample.label_count or 80) else FITS
        return Reading(task, (name,), columns - 5, 0, certainty)

    @staticmethod
    def _scores(output: FloatArray) -> FloatArray:
        return np.concatenate([output[:, :1], output[:, 5:]], axis=1)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][:, 1:5]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return self._scores(outputs[0])

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        columns, height, width = outputs[0].shape
        cells = outputs[0].reshape(columns, -1)
        objectness = cells[0]
        # A class score is at most 1, so a cell needs this much objectness.
        index = np.flatnonzero(objectness**OBJECTNESS_POWER >= confidence)
        class_ids = cells[5:, index].argmax(axis=0)
        scores = objectness[index] ** OBJECTNESS_POWER * cells[5:, index].max(axis=0) ** CLASS_POWER
        invalid = int(np.count_nonzero(np.isnan(objectness))) + int(np.count_nonzero(np.isnan(scores)))
        keep = scores >= confidence
        index, scores, class_ids = index[keep], scores[keep], class_ids[keep]
        x = (np.tanh(cells[1, index]) + index % width) / width
        y = (np.tanh(cells[2, index]) + index // width) / height
        size01 = 1 / (1 + np.exp(-cells[3:5, index].T))
        boxes = corners(np.concatenate([np.stack([x, y], axis=1), size01], axis=1).astype(np.float32))
        return Candidates(boxes, scores.astype(np.float32), class_ids, invalid)

"""SSD-style heads: boxes and class scores as two outputs, one row per anchor, already decoded.

As Ultra-Light-Fast-Generic-Face-Detector exports it (vision/ssd/ssd.py, is_test): x1, y1, x2, y2 from 0 to 1, and
softmax scores whose first class is the background.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities, select_best
from elements.inference.decoders.sample import CONFIRMED, FITS, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray


class Ssd(Decoder):
    """(B, N, 4) boxes and (B, N, C) scores, the first of them the background if each row sums to 1.

    Attributes:
        background: number of leading score columns that are no class, 0 or 1.
    """

    layout = "ssd"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "boxes (B, N, 4) and scores (B, N, C) or (B, N, 1+C)"}
    preprocess = Preprocess(letterbox="stretch")
    has_grid = False

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        self.background = int(sums_to_one(sample.outputs[reading.outputs[1]]))

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        pair = boxes_and_scores(sample)
        if pair is None:
            return None
        scores = sample.outputs[pair[1]]
        if not are_probabilities(scores):
            return None
        classes = scores.shape[2] - int(sums_to_one(scores))
        return Reading(task, pair, classes, 0, CONFIRMED if sample.label_count in (None, classes) else FITS)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return outputs[1]

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        boxes, scores = outputs
        index, best, class_ids, invalid = select_best(scores[:, self.background :], confidence)
        return Candidates(boxes[index], best, class_ids, invalid)


def boxes_and_scores(sample: Sample) -> tuple[str, str] | None:
    """The names of a (B, N, 4) and a (B, N, C) output, by name where both have 4 columns."""
    rows = [name for name, output in sample.outputs.items() if output.ndim == 3]
    if len(rows) != 2 or len({sample.outputs[name].shape[1] for name in rows}) != 1:
        return None
    boxes = [name for name in rows if sample.outputs[name].shape[2] == 4]
    if len(boxes) == 2:
        boxes = [name for name in rows if any(word in name.lower() for word in ("box", "det", "loc"))]
    if len(boxes) != 1:
        return None
    return boxes[0], next(name for name in rows if name != boxes[0])


def sums_to_one(scores: FloatArray) -> bool:
    """Whether each row of (…, C > 1) is a softmax."""
    return scores.shape[-1] > 1 and bool(np.allclose(scores.sum(axis=-1), 1, atol=1e-2))

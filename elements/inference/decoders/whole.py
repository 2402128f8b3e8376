"""Models that say one thing of the whole picture: its class, or a vector that tells it from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities
from elements.inference.decoders.sample import CONFIRMED, FITS, Reading, Sample
from elements.inference.decoders.ssd import sums_to_one
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

NO_BOX = np.zeros((1, 4), np.float32)  # takes the frame's place later


class WholePicture(Decoder):
    """One row of numbers per picture: (B, D), also with trailing dimensions of 1."""

    suppress = False
    has_grid = False
    whole_picture = True

    @staticmethod
    def vectors(output: FloatArray) -> FloatArray:
        """(B, D)."""
        return output.reshape(output.shape[0], -1)

    @staticmethod
    def vector_output(sample: Sample) -> str | None:
        """The first output that is one row of several numbers per picture."""
        return next((n for n, o in sample.outputs.items() if o.ndim >= 2 and 1 < o.shape[1] == o[0].size), None)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return NO_BOX

    def decode(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        """See `Decoder.decode`; `select` sees to numbers that are none, and there are no boxes to look at."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.select(outputs, size, confidence)


class Classify(WholePicture):
    """(B, C) probabilities, or logits, which are told by not summing to 1."""

    layout = "classify"
    shapes: ClassVar[Mapping[Task, str]] = {"classify": "(B, C)"}
    preprocess = Preprocess(letterbox="crop")

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        self.are_logits = not _are_softmax(self.vectors(sample.outputs[reading.outputs[0]]))

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = cls.vector_output(sample)
        if name is None:
            return None
        vectors = cls.vectors(sample.outputs[name])
        classes = vectors.shape[1]
        told = sample.task == task or sample.label_count == classes or _are_softmax(vectors)
        return Reading(task, (name,), classes, 0, CONFIRMED if told else FITS)

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return NO_BOX if self.are_logits else self.vectors(outputs[0])

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        scores = outputs[0].reshape(-1)
        if not np.isfinite(scores).all():
            return _nothing(invalid=1)
        if self.are_logits:
            scores = np.exp(scores - scores.max())
            scores = scores / scores.sum()
        best = int(scores.argmax())
        if scores[best] < confidence:
            return _nothing()
        return Candidates(NO_BOX.copy(), np.array([scores[best]], np.float32), np.array([best], np.int64))


class Embed(WholePicture):
    """(B, D): a vector that is made one long."""

    layout = "embed"
    shapes: ClassVar[Mapping[Task, str]] = {"embed": "(B, D)"}
    preprocess = Preprocess(letterbox="stretch", scale="imagenet")

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = cls.vector_output(sample)
        if name is None:
            return None
        size = cls.vectors(sample.outputs[name]).shape[1]
        return Reading(task, (name,), None, size, CONFIRMED if sample.task == task else FITS)

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return NO_BOX

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        vector = outputs[0].reshape(1, -1)
        length = np.linalg.norm(vector)
        if not np.isfinite(length) or length == 0:
            return _nothing(invalid=1)
        return Candidates(
            NO_BOX.copy(), np.ones(1, np.float32), np.zeros(1, np.int64), 0, (vector / length).astype(np.float32)
        )


def _are_softmax(vectors: FloatArray) -> bool:
    return are_probabilities(vectors) and sums_to_one(vectors)


def _nothing(invalid: int = 0) -> Candidates:
    return Candidates(np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty(0, np.int64), invalid)

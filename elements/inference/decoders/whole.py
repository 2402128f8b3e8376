"""Models that say one thing of the whole picture: its class, or a vector that tells it from others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities
from elements.inference.decoders.sample import CONFIRMED, FITS, Reading, Sample
from elements.inference.decoders.ssd import sums_to_one
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import BoolArray, FloatArray, IntArray

NO_BOX = np.zeros((1, 4), np.float32)  # takes the frame's place later


@dataclass(frozen=True, slots=True)
class Answers:
    """What is said of each of B pictures.

    Attributes:
        scores: (B,) float32.
        class_ids: (B,) int64.
        broken: (B,) bool: the output is no number, so there is no answer.
        vectors: (B, D) float32, one long; ``None`` if it is about classes.
    """

    scores: FloatArray
    class_ids: IntArray
    broken: BoolArray
    vectors: FloatArray | None = None


class WholePicture(Decoder):
    """One row of numbers per picture: (B, D), also with trailing dimensions of 1."""

    suppress = False
    has_grid = False

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

    @abstractmethod
    def answers(self, vectors: FloatArray) -> Answers:
        """What (B, D) ``vectors`` say of B pictures."""

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        said = self.said(outputs[0][None])
        rows = np.flatnonzero(~said.broken & (said.scores >= confidence))
        vectors = None if said.vectors is None else said.vectors[rows]
        return Candidates(NO_BOX[rows], said.scores[rows], said.class_ids[rows], int(said.broken.sum()), vectors)

    def decode(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        """See `Decoder.decode`; `answers` sees to numbers that are none, and there are no boxes to look at."""
        return self.select(outputs, size, confidence)

    def said(self, output: FloatArray) -> Answers:
        """`answers` of a whole output, batch first."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.answers(self.vectors(output))


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

    def answers(self, vectors: FloatArray) -> Answers:
        scores = vectors
        if self.are_logits:
            scores = np.exp(vectors - vectors.max(axis=1, keepdims=True))
            scores = scores / scores.sum(axis=1, keepdims=True)
        best = scores.argmax(axis=1)
        return Answers(scores[np.arange(len(best)), best], best, np.logical_not(np.isfinite(vectors).all(axis=1)))


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

    def answers(self, vectors: FloatArray) -> Answers:
        count = len(vectors)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        broken = np.logical_not(np.isfinite(lengths[:, 0]) & (lengths[:, 0] != 0))
        return Answers(np.ones(count, np.float32), np.zeros(count, np.int64), broken, vectors / lengths)


def _are_softmax(vectors: FloatArray) -> bool:
    return are_probabilities(vectors) and sums_to_one(vectors)

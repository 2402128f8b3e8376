"""What every decoder shares: the registry, coordinates in pixels, and the removal of broken rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.metadata.detections import FloatArray, IntArray

STRIDE_SETS = ((8, 16, 32), (8, 16, 32, 64), (16, 32), (4, 8, 16, 32))
NO_FIT, FITS, CONFIRMED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Sample:
    """One trial run of a model, from which its layout is told.

    Attributes:
        output: (B, D1, D2) float32, what the model gave for noise.
        size: (width, height) of the network's input in that run.
        label_count: number of class names known, from the model or the user; ``None`` if none.
        ultralytics: whether the model's metadata says that ultralytics exported it.
    """

    output: FloatArray
    size: Size
    label_count: int | None
    ultralytics: bool


@dataclass(slots=True)
class Candidates:
    """Decoded rows of one frame before suppression.

    Attributes:
        boxes: (N, 4) float32 xyxy in network pixels.
        scores: (N,) float32.
        class_ids: (N,) int64.
        invalid: rows left out because a score or box was not a finite number.
    """

    boxes: FloatArray
    scores: FloatArray
    class_ids: IntArray
    invalid: int = 0


class Decoder(ABC):
    """Reads one output layout. A subclass with a ``layout`` name is registered by being defined.

    Attributes:
        layout: the name used in ``layout:``.
        shape: the output's shape in words; B batch, A anchors, C classes.
        preprocess: what models of this layout expect unless told otherwise.
        suppress: whether overlapping boxes still have to be suppressed.
        box_columns: columns that are not classes.
        has_grid: whether the number of rows follows from the input's size.
        normalized: whether boxes are 0 to 1 (``None``: not known before the first box).
    """

    registry: ClassVar[dict[str, type[Decoder]]] = {}
    layout: ClassVar[str]
    shape: ClassVar[str]
    preprocess: ClassVar[Preprocess] = Preprocess()
    suppress: ClassVar[bool] = True
    box_columns: ClassVar[int] = 4
    has_grid: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if "layout" in cls.__dict__:
            Decoder.registry[cls.layout] = cls

    def __init__(self, sample: Sample) -> None:
        self.normalized = looks_normalized(self.boxes_of(sample.output))

    @classmethod
    @abstractmethod
    def match(cls, sample: Sample) -> int:
        """`NO_FIT`, `FITS` by shape alone, or `CONFIRMED` by shape and other evidence."""

    @classmethod
    def num_classes(cls, shape: tuple[int, ...]) -> int | None:
        """Number of classes that an output of ``shape`` (B, D1, D2) has, ``None`` where it does not tell."""
        return shape[2] - cls.box_columns

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        """Number of rows (A) of an output of ``shape``."""
        return shape[1]

    @classmethod
    def largest_stride(cls, shape: tuple[int, ...], size: Size) -> int:
        """The coarsest grid's stride, for an output of ``shape`` at ``size``; 0 if it has no known grid."""
        return max(strides_of(cls.anchors(shape), size) or (0,))

    @classmethod
    def fits_size(cls, shape: tuple[int, ...], size: Size) -> bool:
        """Whether an output of ``shape`` is what a network input of ``size`` must give."""
        return strides_of(cls.anchors(shape), size) is not None

    def set_coordinates(self, normalized: bool) -> None:
        """Declare the unit of the boxes instead of telling it from their values."""
        self.normalized = normalized

    @staticmethod
    @abstractmethod
    def boxes_of(output: FloatArray) -> FloatArray:
        """The box columns of a whole (B, D1, D2) output, any order: used to tell 0-1 from pixels."""

    @staticmethod
    @abstractmethod
    def scores_of(output: FloatArray) -> FloatArray:
        """The score columns of a whole (B, D1, D2) output: used to check that they are probabilities."""

    @abstractmethod
    def select(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        """Rows of one frame's (D1, D2) output that reach ``confidence``, boxes xyxy in the model's own unit."""

    def decode(self, output: FloatArray, size: Size, confidence: float) -> Candidates:
        """Candidates of one frame.

        Args:
            output: (D1, D2) float32.
            size: (width, height) of the network's input.
            confidence: lowest score, 0 to 1.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.select(output, size, confidence)
        if not len(found.scores):
            return found
        finite = np.isfinite(found.scores) & np.isfinite(found.boxes).all(axis=1)
        if not finite.all():
            broken = len(finite) - int(np.count_nonzero(finite))
            found = Candidates(
                found.boxes[finite], found.scores[finite], found.class_ids[finite], found.invalid + broken
            )
        if self.normalized is None:
            self.normalized = looks_normalized(found.boxes)
        if self.normalized:
            found.boxes = found.boxes * np.array(size * 2, np.float32)
        return found


def looks_normalized(boxes: FloatArray) -> bool | None:
    """Whether boxes are 0 to 1. ``None`` if all are zero, so nothing can be told.

    A dense head spreads its boxes over the whole input, so in pixels the largest number is near the input's size;
    in 0-1 it stays near 1 (a box may stick out a little, hence 2).
    """
    largest = np.abs(boxes, where=np.isfinite(boxes), out=np.zeros_like(boxes)).max(initial=0)
    return None if largest == 0 else bool(largest <= 2)


@lru_cache(maxsize=256)
def strides_of(anchors: int, size: Size) -> tuple[int, ...] | None:
    """The strides whose grids over ``size`` have ``anchors`` cells together, ``None`` if there are none."""
    width, height = size
    for strides in STRIDE_SETS:
        if sum(-(-width // s) * -(-height // s) for s in strides) == anchors:
            return strides
    return None


def corners(center_size: FloatArray) -> FloatArray:
    """(N, 4) cx, cy, w, h to x1, y1, x2, y2."""
    half = center_size[:, 2:] / 2
    return np.concatenate([center_size[:, :2] - half, center_size[:, :2] + half], axis=1)


def select_by_objectness(rows: FloatArray, confidence: float) -> tuple[IntArray, FloatArray, IntArray, int]:
    """Rows ``box, objectness, classes…`` that reach ``confidence``: indices, objectness x class, class numbers.

    Objectness alone is compared first: a class score is at most 1, so nothing is lost and few rows remain.
    The last value counts rows without a number in objectness or class.
    """
    objectness = rows[:, 4]
    invalid = int(np.count_nonzero(np.isnan(objectness)))
    index = np.flatnonzero(objectness >= confidence)
    classes = rows[index, 5:]
    class_ids = classes.argmax(axis=1)
    scores = objectness[index] * classes[np.arange(len(index)), class_ids]
    invalid += int(np.count_nonzero(np.isnan(scores)))
    keep = scores >= confidence
    return index[keep], scores[keep], class_ids[keep], invalid

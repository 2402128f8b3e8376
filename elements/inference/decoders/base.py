"""What every decoder shares: the registry, the choice of outputs, coordinates in pixels, removal of broken rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from elements.inference.decoders.rows import looks_normalized, strides_of
from elements.inference.decoders.sample import Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray, IntArray

Arrays = Sequence[FloatArray]


@dataclass(slots=True)
class Candidates:
    """Decoded rows of one frame before suppression.

    Attributes:
        boxes: (N, 4) float32 xyxy in network pixels; for rotated objects the unrotated rectangles.
        scores: (N,) float32.
        class_ids: (N,) int64.
        invalid: rows left out because a score or box was not a finite number.
        extras: (N, E) float32, what the task adds. obb: the angle, radians, clockwise on the screen; pose: x, y
            (, score) of each key point in network pixels; segment: what `Decoder.mask_logits` needs; embed: the vector.
    """

    boxes: FloatArray
    scores: FloatArray
    class_ids: IntArray
    invalid: int = 0
    extras: FloatArray | None = None

    def __getitem__(self, rows: Any) -> Candidates:
        """Rows picked by a boolean mask or an index array."""
        extras = None if self.extras is None else self.extras[rows]
        return Candidates(self.boxes[rows], self.scores[rows], self.class_ids[rows], self.invalid, extras)


class Decoder(ABC):
    """Reads one output layout. A subclass with a ``layout`` name is registered by being defined.

    Attributes:
        layout: the name used in ``layout:``.
        shapes: for each task that the layout knows, the outputs in words; B batch, A anchors, C classes, M masks,
            K key points, N objects.
        preprocess: what models of this layout expect unless told otherwise.
        suppress: whether overlapping boxes still have to be suppressed.
        has_grid: whether the number of rows follows from the input's size.
        by_name: whether the outputs are found by their names, so that others beside them do not matter.
        reading: how this model's outputs are read.
        values_per_point: 3 if key points have scores, 2 if not.
        normalized: whether boxes are 0 to 1 (``None``: not known before the first box).
    """

    registry: ClassVar[dict[str, type[Decoder]]] = {}
    layout: ClassVar[str]
    shapes: ClassVar[Mapping[Task, str]]
    preprocess: ClassVar[Preprocess] = Preprocess()
    suppress: ClassVar[bool] = True
    has_grid: ClassVar[bool] = True
    by_name: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "layout" in cls.__dict__:
            Decoder.registry[cls.layout] = cls

    def __init__(self, sample: Sample, reading: Reading) -> None:
        self.reading = reading
        self.values_per_point = sample.keypoints[1] if sample.keypoints else 3
        self.normalized: bool | None = looks_normalized(self.boxes_of(self.picked(sample.outputs)))

    @property
    def task(self) -> Task:
        """What the model does."""
        return self.reading.task

    @classmethod
    @abstractmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        """How the outputs would be read for ``task`` (one of ``shapes``), ``None`` if they cannot be."""

    @classmethod
    def anchors(cls, shape: tuple[int, ...]) -> int:
        """Number of rows (A) of a first output of ``shape``."""
        return shape[1]

    @classmethod
    def largest_stride(cls, shape: tuple[int, ...], size: Size) -> int:
        """The coarsest grid's stride, for a first output of ``shape`` at ``size``; 0 if it has no known grid."""
        return max(strides_of(cls.anchors(shape), size) or (0,))

    @classmethod
    def fits_size(cls, shape: tuple[int, ...], size: Size) -> bool:
        """Whether a first output of ``shape`` is what a network input of ``size`` must give."""
        return strides_of(cls.anchors(shape), size) is not None

    def picked(self, outputs: Mapping[str, FloatArray]) -> list[FloatArray]:
        """Those of a model's outputs that this decoder reads, in its order."""
        return [outputs[name] for name in self.reading.outputs]

    def set_coordinates(self, normalized: bool) -> None:
        """Declare the unit of the boxes instead of telling it from their values."""
        self.normalized = normalized

    @abstractmethod
    def boxes_of(self, outputs: Arrays) -> FloatArray:
        """The box columns of whole outputs (batch first), any order: used to tell 0-1 from pixels."""

    @abstractmethod
    def scores_of(self, outputs: Arrays) -> FloatArray:
        """The scores in whole outputs (batch first): used to check that they are probabilities."""

    @abstractmethod
    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        """Rows of one frame's outputs that reach ``confidence``, boxes xyxy in the model's own unit."""

    def mask_logits(self, extras: FloatArray, outputs: Arrays) -> FloatArray:
        """(N, h, w) masks of objects over the whole input, above 0 inside: coefficients (N, M) times prototypes.

        Source of the formula: D. Bolya et al., YOLACT (2019), M = sigmoid(P C^T).
        """
        prototypes = outputs[1]
        logits: FloatArray = extras @ prototypes.reshape(len(prototypes), -1)
        return logits.reshape(-1, *prototypes.shape[1:])

    def decode(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        """Candidates of one frame.

        Args:
            outputs: the outputs that `reading` names without their batch dimension, float32.
            size: (width, height) of the network's input.
            confidence: lowest score, 0 to 1.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.select(outputs, size, confidence)
        if not len(found.scores):
            return found
        finite = np.isfinite(found.scores) & np.isfinite(found.boxes).all(axis=1)
        if found.extras is not None:
            finite &= np.isfinite(found.extras).all(axis=1)
        if not finite.all():
            broken = len(finite) - int(np.count_nonzero(finite))
            found = found[finite]
            found.invalid += broken
        return self.in_pixels(found, size)

    def decode_batch(self, outputs: Arrays, size: Size, confidence: float) -> list[Candidates]:
        """`decode` for each frame of whole outputs (batch first)."""
        return [self.decode(own, size, confidence) for own in zip(*outputs, strict=True)]

    def in_pixels(self, found: Candidates, size: Size) -> Candidates:
        """``found`` in network pixels if it is 0 to 1, which is told here at the latest."""
        if self.normalized is None:
            self.normalized = looks_normalized(found.boxes)
        if self.normalized:
            found.boxes = found.boxes * np.array(size * 2, np.float32)
            if self.task == "pose" and found.extras is not None:
                unit = np.array((*size, 1)[: self.values_per_point], np.float32)
                rows, columns = found.extras.shape
                points = found.extras.reshape(rows, columns // len(unit), len(unit)) * unit
                found.extras = points.reshape(found.extras.shape)
        return found

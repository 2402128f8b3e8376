"""Frames to the network's input tensor: letterbox, colour order, value range, layout and number type."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.inference.frame import Frame, Image
from elements.inference.letterbox import LetterboxMode, Size, place
from elements.metadata.placement import Placement

Tensor = NDArray[Any]

ColorOrder = Literal["rgb", "bgr"]
ValueRange = Literal["0-1", "0-255"]


@dataclass(frozen=True, slots=True)
class Preprocess:
    """What a family of models expects. ``pad`` is the grey of the padding, 0 to 255."""

    letterbox: LetterboxMode = "center"
    color: ColorOrder = "rgb"
    scale: ValueRange = "0-1"
    pad: int = 114


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The model's input as it is declared.

    ``batch`` is ``None`` if it may change, then from ``min_batch`` to ``max_batch`` (``None``: any number); ``size`` is
    (width, height), each ``None`` if it may change.
    """

    name: str
    dtype: np.dtype
    channels_last: bool
    batch: int | None
    size: tuple[int | None, int | None]
    min_batch: int = 1
    max_batch: int | None = None

    def shape(self, batch: int, size: Size) -> tuple[int, int, int, int]:
        """Tensor shape for ``batch`` frames of ``size`` (width, height)."""
        width, height = size
        return (batch, height, width, 3) if self.channels_last else (batch, 3, height, width)


@dataclass(slots=True)
class Preprocessor:
    """Fills input tensors. Tensors and canvases are kept per thread and reused, so threads may share one object."""

    spec: InputSpec
    options: Preprocess
    _local: threading.local = field(default_factory=threading.local)

    def tensor(self, batch: int, size: Size) -> Tensor:
        """This thread's input tensor for ``batch`` frames of ``size``; its old content is undefined."""
        tensors: dict[tuple[int, ...], Tensor] = self._local.__dict__.setdefault("tensors", {})
        shape = self.spec.shape(batch, size)
        if shape not in tensors:
            tensors[shape] = np.zeros(shape, self.spec.dtype)
        return tensors[shape]

    def fill(self, frame: Frame, slot: Tensor, size: Size) -> Placement:
        """Write ``frame`` into ``slot``, one row of `tensor`. Returns where the picture lies in it."""
        placement = place((frame.width, frame.height), size, self.options.letterbox)
        canvas = self._canvas(placement, size)
        left, top, width, height = (int(v) for v in (placement.left, placement.top, placement.width, placement.height))
        frame.resized(width, height, out=canvas[top : top + height, left : left + width])
        self._convert(canvas, slot)
        return placement

    def _canvas(self, placement: Placement, size: Size) -> Image:
        """A padded canvas for this placement. Only the picture's area is ever written again, so padding stays."""
        canvases: dict[tuple[object, ...], Image] = self._local.__dict__.setdefault("canvases", {})
        key = (size, placement.left, placement.top, placement.width, placement.height)
        if key not in canvases:
            canvases[key] = np.full((size[1], size[0], 3), self.options.pad, np.uint8)
        return canvases[key]

    def _convert(self, canvas: Image, slot: Tensor) -> None:
        if self.spec.channels_last:
            source = canvas[:, :, ::-1] if self.options.color == "bgr" else canvas
            self._write(source, slot)
            return
        planes = cv2.split(canvas)  # contiguous planes convert about 3 times faster than a strided view
        for row, plane in enumerate(reversed(planes) if self.options.color == "bgr" else planes):
            self._write(plane, slot[row])

    def _write(self, pixels: Tensor, out: Tensor) -> None:
        if self.options.scale == "0-255":
            np.copyto(out, pixels)
        else:
            np.multiply(pixels, np.float32(1 / 255), out=out, casting="unsafe")

"""Frames to the network's input tensor: letterbox, colour order, value range, layout and number type."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.inference.crops import CropBatch
from elements.inference.errors import blaming
from elements.inference.frame import Frame, Image, Region
from elements.inference.letterbox import PADDED, LetterboxMode, Size, place, place_all
from elements.metadata.placement import Placement, Placements

Tensor = NDArray[Any]

ColorOrder = Literal["rgb", "bgr"]
ValueRange = Literal["0-1", "0-255", "-1-1", "imagenet"]

# Mean and standard deviation of ImageNet's pictures, red, green, blue, of values from 0 to 1.
_MEAN = (0.485, 0.456, 0.406)
_DEVIATION = (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True)
class Preprocess:
    """What a family of models expects.

    Attributes:
        letterbox: how the picture is laid into the input.
        color: channel order.
        scale: value range; ``imagenet``: 0-1, less ImageNet's mean, divided by its standard deviation.
        pad: grey of the padding, 0 to 255.
    """

    letterbox: LetterboxMode = "center"
    color: ColorOrder = "rgb"
    scale: ValueRange = "0-1"
    pad: int = 114

    def affine(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Gain and offset that turn 0 to 255 into the value range, for each of the 3 channels in the input's order."""
        if self.scale != "imagenet":
            gain, offset = {"0-1": (1 / 255, 0.0), "0-255": (1.0, 0.0), "-1-1": (2 / 255, -1.0)}[self.scale]
            return (gain,) * 3, (offset,) * 3
        gains = tuple(1 / 255 / deviation for deviation in _DEVIATION)
        offsets = tuple(-mean / deviation for mean, deviation in zip(_MEAN, _DEVIATION, strict=True))
        return (gains[::-1], offsets[::-1]) if self.color == "bgr" else (gains, offsets)


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
    _affine: tuple[Tensor, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        gains, offsets = self.options.affine()
        self._affine = np.array(gains, np.float32), np.array(offsets, np.float32)

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
        if self.options.letterbox == "crop":  # only what stays is scaled: an object may be very long
            frame.resized(*size, out=canvas, region=_to_source((0, 0, *size), placement))
        else:
            frame.resized(width, height, out=canvas[top : top + height, left : left + width])
        self._convert(canvas[None], slot[None])
        return placement

    def fill_all(self, frames: Sequence[Frame], tensor: Tensor, size: Size) -> Placements:
        """`fill` of the first rows of ``tensor``; crops that fill the whole input are done together.

        Raises:
            FrameError: if a frame's picture cannot be had.
        """
        if isinstance(frames, CropBatch) and self.options.letterbox not in PADDED:
            return self._fill_crops(frames, tensor[: len(frames)], size)
        placements = []
        for frame, slot in zip(frames, tensor, strict=False):
            with blaming(frame):
                placements.append(self.fill(frame, slot, size))
        return Placements.of(placements)

    def _fill_crops(self, crops: CropBatch, tensor: Tensor, size: Size) -> Placements:
        """Scaled into one canvas and converted at once: for small inputs calls take longer than pixels."""
        placements = place_all(crops.sizes, size, self.options.letterbox)
        visible = crops.regions.astype(np.float64)
        if self.options.letterbox == "crop":
            scale = placements.areas[:, 2:] / placements.sources
            starts = visible[:, :2] - placements.areas[:, :2] / scale
            visible = np.concatenate([starts, starts + np.array(size) / scale], axis=1)
        canvas = self._canvas_for_many(len(crops), size)
        for frame, part in crops.by_frame():
            with blaming(frame):
                resized_parts(frame, visible[part], canvas[part])
        self._convert(canvas, tensor)
        return placements

    def _canvas_for_many(self, count: int, size: Size) -> Image:
        """(count, height, width, 3), of any content."""
        canvases: dict[Size, Image] = self._local.__dict__.setdefault("many", {})
        canvas = canvases.get(size)
        if canvas is None or len(canvas) < count:
            canvas = canvases[size] = np.empty((count, size[1], size[0], 3), np.uint8)
        return canvas[:count]

    def _canvas(self, placement: Placement, size: Size) -> Image:
        """A canvas of ``size``, padded around this placement.

        Only the picture's area is ever written, so padding stays as long as pictures of one shape follow each other.
        """
        canvases: dict[Size, tuple[Image, Placement]] = self._local.__dict__.setdefault("canvases", {})
        canvas, last = canvases.get(size) or (np.empty((size[1], size[0], 3), np.uint8), None)
        if last is None or _area(last) != _area(placement):
            if self.options.letterbox in PADDED:
                canvas[:] = self.options.pad
            canvases[size] = (canvas, placement)
        return canvas

    def _convert(self, pictures: Image, slots: Tensor) -> None:
        """(N, height, width, 3) RGB to rows of the input tensor."""
        gains, offsets = self._affine
        bgr = self.options.color == "bgr"
        if self.spec.channels_last:
            self._write(pictures[..., ::-1] if bgr else pictures, slots, gains, offsets)
            return
        count, height, width, _ = pictures.shape
        planes = cv2.split(pictures.reshape(-1, width, 3))  # contiguous planes convert 3 times faster than strided ones
        for row, plane in enumerate(reversed(planes) if bgr else planes):
            self._write(plane.reshape(count, height, width), slots[:, row], gains[row], offsets[row])

    def _write(self, pixels: Tensor, out: Tensor, gain: Any, offset: Any) -> None:
        if self.options.scale == "0-255":
            np.copyto(out, pixels)
            return
        np.multiply(pixels, gain, out=out, casting="unsafe")
        if self.options.scale != "0-1":
            np.add(out, offset, out=out, casting="unsafe")


def resized_parts(frame: Frame, regions: NDArray[np.float64], out: Image) -> None:
    """``resized_parts`` of `Frame`, one by one where it has none."""
    if hasattr(frame, "resized_parts"):
        frame.resized_parts(regions, out)
        return
    for region, slot in zip(regions.tolist(), out, strict=True):
        frame.resized(out.shape[2], out.shape[1], slot, tuple(region))


def _area(placement: Placement) -> tuple[float, float, float, float]:
    return placement.left, placement.top, placement.width, placement.height


def _to_source(box: Region, placement: Placement) -> Region:
    """A rectangle of the network's input, inside of the picture, in pixels of the picture."""
    (sx, sy), left, top = placement.scale, placement.left, placement.top
    return (box[0] - left) / sx, (box[1] - top) / sy, (box[2] - left) / sx, (box[3] - top) / sy

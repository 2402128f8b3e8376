"""The arithmetic of `cv2.resize` for 8 bit pixels, ``INTER_LINEAR``, as integers: what the CPU path makes of a plane.

A target sample is made of two source samples per axis, whose weights are in units of 1/2048. Across a row the products
are summed exactly; down a column they are cut to 16 bit, as OpenCV does everywhere. tests/unit/test_resampling.py
compares with the OpenCV that is installed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from elements.inference.frame import DevicePlanes

Numbers = NDArray[np.int64]
ONE = 2048
GEOMETRIES = 1024  # that are kept: a size of sources by a size that a model sees


class Taps(NamedTuple):
    """For each target sample of one axis: the two source samples it is made of and their weights."""

    first: Numbers
    second: Numbers
    first_weight: Numbers
    second_weight: Numbers

    @classmethod
    def across(cls, source: int, target: int, extent: float) -> Taps:
        """Of a row: ``extent`` of its ``source`` samples are shown by ``target`` ones."""
        first, part = _places(target, extent)
        part[(first < 0) | (first >= source - 1)] = 0
        return cls._of(np.clip(first, 0, source - 1), part, source)

    @classmethod
    def down(cls, source: int, target: int, extent: float) -> Taps:
        """Of a column; beyond the edges both samples are the edge's, each with its weight."""
        return cls._of(*_places(target, extent), source)

    @classmethod
    def _of(cls, first: Numbers, part: NDArray[np.float32], source: int) -> Taps:
        weights = (np.rint((np.float32(1) - part) * ONE), np.rint(part * ONE))
        samples = (np.clip(first, 0, source - 1), np.clip(first + 1, 0, source - 1))
        return cls(*samples, *(weight.astype(np.int64) for weight in weights))

    @property
    def packed(self) -> Numbers:
        """One number per target sample, for the kernel: first << 32 | (second - first) << 24 | weights, 12 bit each."""
        step = self.second - self.first
        packed: Numbers = self.first << 32 | step << 24 | self.first_weight << 12 | self.second_weight
        return packed


def _places(target: int, extent: float) -> tuple[Numbers, NDArray[np.float32]]:
    """Number of the source sample before each target sample's centre, and how far behind it that is (0 to 1)."""
    scale = 1 / (target / extent)  # OpenCV inverts twice, too
    centres = ((np.arange(target) + 0.5) * scale - 0.5).astype(np.float32)
    first = np.floor(centres)
    return first.astype(np.int64), centres - first


def chroma_size(width: int, height: int) -> tuple[int, int]:
    """Samples of a 4:2:0 picture's chroma planes."""
    return (width + 1) // 2, (height + 1) // 2


class Geometry(NamedTuple):
    """How a 4:2:0 picture is resampled: its luma across and down, its chroma across and down."""

    luma_x: Taps
    luma_y: Taps
    chroma_x: Taps
    chroma_y: Taps

    @classmethod
    def of(cls, source: tuple[int, int], target: tuple[int, int]) -> Geometry:
        """From a picture of (width, height) ``source`` to one of ``target``."""
        (width, height), (across, down) = source, target
        chroma_width, chroma_height = chroma_size(width, height)
        return cls(
            Taps.across(width, across, width),
            Taps.down(height, down, height),
            Taps.across(chroma_width, across, width / 2),
            Taps.down(chroma_height, down, height / 2),
        )


@lru_cache(GEOMETRIES)
def uploaded(source: tuple[int, int], target: tuple[int, int], device: torch.device) -> tuple[torch.Tensor, ...]:
    """`Geometry.of`, packed, on the device: four int64 tensors."""
    return tuple(torch.from_numpy(taps.packed).to(device) for taps in Geometry.of(source, target))


@lru_cache
def uploaded_matrix(fixed: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """`ColorSpace.to_rgb_fixed` on the device: (12,) int32."""
    return torch.tensor(fixed, dtype=torch.int32, device=device)


def resample(plane: torch.Tensor, across: Taps, down: Taps) -> torch.Tensor:
    """An (h, w) uint8 plane resampled, int32, in plain torch."""
    columns, rows = (_on(taps, plane.device) for taps in (across, down))
    samples = plane.to(torch.int32)
    lines = (samples[:, columns[0]] * columns[2] + samples[:, columns[1]] * columns[3]) >> 4
    over = (lines[rows[0]] * rows[2][:, None]) >> 16
    under = (lines[rows[1]] * rows[3][:, None]) >> 16
    return ((over + under + 2) >> 2).clamp(max=255)


def _on(taps: Taps, device: torch.device) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(values.astype(np.int32)).to(device) for values in taps)


class _Memory:
    """Device memory for torch, which keeps it as long as the tensor."""

    def __init__(self, planes: DevicePlanes, address: int, shape: tuple[int, int], strides: tuple[int, int]) -> None:
        self.planes = planes
        self.__cuda_array_interface__ = {
            "shape": shape,
            "strides": strides,
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "stream": None,  # the pixels are complete
        }


def tensors_of(planes: DevicePlanes) -> tuple[torch.Tensor, ...]:
    """Y, Cb and Cr as (h, w) uint8 tensors, over the picture's own memory where torch can."""
    across, down = chroma_size(planes.width, planes.height)
    luma = _tensor(planes, planes.luma, (planes.height, planes.width), (planes.luma_pitch, planes.luma_step))
    chroma = (
        _tensor(planes, address, (down, across), (planes.chroma_pitch, planes.chroma_step))
        for address in (planes.blue, planes.red)
    )
    return luma, *chroma


def _tensor(planes: DevicePlanes, address: int, shape: tuple[int, int], strides: tuple[int, int]) -> torch.Tensor:
    """One plane; copied if it is read backwards, which torch does not do."""
    backwards = [axis for axis, stride in enumerate(strides) if stride < 0]
    first = address + sum(strides[axis] * (shape[axis] - 1) for axis in backwards)
    memory = _Memory(planes, first, shape, (abs(strides[0]), abs(strides[1])))
    tensor = torch.as_tensor(memory, device=f"cuda:{planes.device}")
    return tensor.flip(backwards) if backwards else tensor


def to_rgb(planes: tuple[torch.Tensor, ...], fixed: tuple[int, ...], target: tuple[int, int]) -> torch.Tensor:
    """A 4:2:0 picture as RGB of (width, height) ``target``, in plain torch.

    Args:
        planes: uint8: Y (h, w), Cb and Cr, ((h+1)//2, (w+1)//2) each.
        fixed: `ColorSpace.to_rgb_fixed`.
        target: (width, height).

    Returns:
        (height, width, 3) uint8, on the device of the planes: bit for bit what `Picture.rgb` gives on the CPU.
    """
    luma, *chroma = planes
    geometry = Geometry.of((luma.shape[1], luma.shape[0]), target)
    y = resample(luma, geometry.luma_x, geometry.luma_y)
    cb, cr = (resample(plane, geometry.chroma_x, geometry.chroma_y) for plane in chroma)
    colours = [
        (of_y * y + of_cb * cb + of_cr * cr + offset + 512) >> 10
        for of_y, of_cb, of_cr, offset in (fixed[row : row + 4] for row in (0, 4, 8))
    ]
    return torch.stack(colours, -1).clamp(0, 255).to(torch.uint8)

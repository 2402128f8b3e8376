"""Y'CbCr to R'G'B' and back: one 3x4 matrix per colour space, for `cv2.transform`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ColorSpace:
    """Luma weights of red and blue, and whether 8-bit values use 0..255 (full range) or 16..235/240."""

    kr: float
    kb: float
    full_range: bool = False

    @property
    def to_rgb(self) -> Matrix:
        """(3, 4): ``rgb = matrix @ (y, cb, cr, 1)``, all 0..255: `to_rgb_fixed` as floats."""
        return _to_rgb(self)

    @property
    def to_rgb_fixed(self) -> tuple[int, ...]:
        """The 12 values of `to_rgb` in units of 1/1024, row by row: ``(row @ (y, cb, cr, 1) + 512) >> 10`` is a colour.

        All but the last of a row are even and that one is odd, so that no sum lies half way between two grey levels.
        Whatever way of rounding, vector width and number of fraction bits (from 10) cv2.transform uses, in fixed or
        floating point, it gives these colours, and so does every other implementation.
        """
        return _to_rgb_fixed(self)

    @property
    def from_rgb(self) -> Matrix:
        """(3, 4): ``(y, cb, cr) = matrix @ (r, g, b, 1)``, all 0..255."""
        return _from_rgb(self)

    @property
    def black(self) -> tuple[int, int, int]:
        """Black as (y, cb, cr)."""
        return (0 if self.full_range else 16, 128, 128)


BT601 = ColorSpace(0.299, 0.114)
BT709 = ColorSpace(0.2126, 0.0722)
BT2020 = ColorSpace(0.2627, 0.0593)


@functools.cache
def _from_rgb(space: ColorSpace) -> Matrix:
    # ITU-R BT.601/709/2020: Y = kr R + kg G + kb B, Cb = (B - Y) / (2 (1 - kb)), Cr = (R - Y) / (2 (1 - kr))
    luma = np.array([space.kr, 1 - space.kr - space.kb, space.kb])
    cb = (np.array([0, 0, 1]) - luma) / (2 * (1 - space.kb))
    cr = (np.array([1, 0, 0]) - luma) / (2 * (1 - space.kr))
    y_scale, c_scale = (1.0, 1.0) if space.full_range else (219 / 255, 224 / 255)
    rows = np.stack([luma * y_scale, cb * c_scale, cr * c_scale])
    return np.column_stack([rows, space.black]).astype(np.float32)


@functools.cache
def _to_rgb_fixed(space: ColorSpace) -> tuple[int, ...]:
    inverse = np.linalg.inv(_from_rgb(space)[:, :3].astype(np.float64))
    weights = 2 * np.rint(inverse * 512).astype(int)
    offsets = 1 - weights @ space.black  # greys stay grey
    return tuple(np.column_stack([weights, offsets]).ravel().tolist())


@functools.cache
def _to_rgb(space: ColorSpace) -> Matrix:
    return np.array(_to_rgb_fixed(space), np.float32).reshape(3, 4) / np.float32(1024)

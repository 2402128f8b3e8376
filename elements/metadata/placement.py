"""Where a source's picture lies inside the stream mux's frame."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import FloatArray


@dataclass(frozen=True, slots=True)
class Placement:
    """Affine map between source-frame pixels and mux-frame pixels: ``mux = source * scale + offset``.

    Built with `Placement.stretched` or `Placement.padded`, the two ways nvstreammux scales a frame.
    """

    source_width: int
    source_height: int
    left: float
    top: float
    width: float
    height: float

    @classmethod
    def stretched(cls, source: tuple[int, int], mux: tuple[int, int]) -> Placement:
        """The source fills the whole mux frame (``enable-padding=0``). Sizes are (width, height)."""
        return cls(*source, 0, 0, *mux)

    @classmethod
    def padded(cls, source: tuple[int, int], mux: tuple[int, int]) -> Placement:
        """Aspect kept, even-sized and centred, rest black (``enable-padding=1``). Sizes are (width, height)."""
        scale = min(mux[0] / source[0], mux[1] / source[1])
        width, height = (min(m, max(2, round(s * scale / 2) * 2)) for s, m in zip(source, mux, strict=True))
        return cls(*source, (mux[0] - width) // 2, (mux[1] - height) // 2, width, height)

    @classmethod
    def of(cls, source: tuple[int, int], mux: tuple[int, int], padding: bool) -> Placement:
        """`padded` or `stretched`."""
        return (cls.padded if padding else cls.stretched)(source, mux)

    @property
    def scale(self) -> tuple[float, float]:
        """Mux pixels per source pixel, (x, y)."""
        return self.width / self.source_width, self.height / self.source_height

    def to_mux(self, boxes: FloatArray) -> FloatArray:
        """(N, 4) xyxy boxes from source-frame to mux-frame pixels."""
        scale, offset = _affine(self)
        return (boxes * scale + offset).astype(np.float32, copy=False)

    def to_source(self, boxes: FloatArray) -> FloatArray:
        """(N, 4) xyxy boxes from mux-frame to source-frame pixels."""
        scale, offset = _affine(self)
        return ((boxes - offset) / scale).astype(np.float32, copy=False)

    def points_to_mux(self, points: FloatArray) -> FloatArray:
        """(..., 2) x, y from source-frame to mux-frame pixels."""
        scale, offset = _affine(self)
        return (points * scale[:2] + offset[:2]).astype(np.float32, copy=False)

    def points_to_source(self, points: FloatArray) -> FloatArray:
        """(..., 2) x, y from mux-frame to source-frame pixels."""
        scale, offset = _affine(self)
        return ((points - offset[:2]) / scale[:2]).astype(np.float32, copy=False)


@functools.lru_cache(256)  # a source's frames all have the same
def _affine(placement: Placement) -> tuple[FloatArray, FloatArray]:
    """(4,) scale and offset of boxes, not to be written."""
    scale = np.array(placement.scale * 2, np.float32)
    offset = np.array([placement.left, placement.top] * 2, np.float32)
    return scale, offset


class Placements(Sequence[Placement]):
    """Many in one array, for those that take all at once; single ones are made on demand.

    Attributes:
        table: (N, 6) float64, the columns in the order of `Placement`'s attributes.
    """

    __slots__ = ("table",)

    def __init__(self, table: NDArray[np.float64]) -> None:
        self.table = table

    @classmethod
    def of(cls, placements: Sequence[Placement]) -> Placements:
        """From single ones."""
        rows = [(p.source_width, p.source_height, p.left, p.top, p.width, p.height) for p in placements]
        return cls(np.array(rows, np.float64).reshape(-1, 6))

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, index: int) -> Placement: ...
    @overload
    def __getitem__(self, index: slice) -> Placements: ...
    def __getitem__(self, index: int | slice) -> Placement | Placements:
        if isinstance(index, slice):
            return Placements(self.table[index])
        width, height, *area = self.table[index].tolist()
        return Placement(int(width), int(height), *area)

    @property
    def sources(self) -> NDArray[np.float64]:
        """(N, 2) width and height of the sources' pictures."""
        return self.table[:, :2]

    @property
    def areas(self) -> NDArray[np.float64]:
        """(N, 4) left, top, width and height of where they lie."""
        return self.table[:, 2:]


def all_to_source(boxes: FloatArray, placements: Sequence[Placement], counts: Sequence[int]) -> FloatArray:
    """`Placement.to_source` of several frames at once: ``counts[0]`` boxes of the first, then those of the next."""
    affine = np.array([(p.left, p.top) * 2 + p.scale * 2 for p in placements], np.float32).reshape(-1, 8)
    affine = affine.repeat(counts, axis=0)
    return np.asarray((boxes - affine[:, :4]) / affine[:, 4:], np.float32)

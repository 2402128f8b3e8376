"""Where a source's picture lies inside the stream mux's frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        return (boxes * self._scale4() + self._offset4()).astype(np.float32)

    def to_source(self, boxes: FloatArray) -> FloatArray:
        """(N, 4) xyxy boxes from mux-frame to source-frame pixels."""
        return ((boxes - self._offset4()) / self._scale4()).astype(np.float32)

    def points_to_mux(self, points: FloatArray) -> FloatArray:
        """(..., 2) x, y from source-frame to mux-frame pixels."""
        return (points * self._scale4()[:2] + self._offset4()[:2]).astype(np.float32)

    def points_to_source(self, points: FloatArray) -> FloatArray:
        """(..., 2) x, y from mux-frame to source-frame pixels."""
        return ((points - self._offset4()[:2]) / self._scale4()[:2]).astype(np.float32)

    def _scale4(self) -> FloatArray:
        return np.array(self.scale * 2, np.float32)

    def _offset4(self) -> FloatArray:
        return np.array([self.left, self.top] * 2, np.float32)

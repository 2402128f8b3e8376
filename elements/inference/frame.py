"""What a model sees of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]


class Frame(Protocol):
    """One upright picture of one source. Pixels are made on request, at the size the model wants.

    Attributes:
        width: width of the source picture in pixels.
        height: height of the source picture in pixels.
        source_id: which source it comes from.
        frame_number: 0-based, per source.
        pts: presentation time in nanoseconds.

    A frame whose pixels are on a GPU also has ``tensor``: the picture as a (h, w, 3) uint8 RGB torch tensor on that
    GPU, whose rows may be padded and whose size may differ from ``width`` x ``height`` if it was scaled on the way.
    It is valid until the model's ``infer`` returns. Engines that run elsewhere call `resized`.
    """

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def source_id(self) -> int: ...
    @property
    def frame_number(self) -> int: ...
    @property
    def pts(self) -> int: ...

    def resized(self, width: int, height: int, out: Image | None = None) -> Image:
        """The whole picture scaled to ``width`` x ``height``: (height, width, 3) uint8 RGB, bilinear.

        Edges map to edges (pixel ``i`` covers ``[i, i + 1)``), so a box scales by the plain ratio of the sizes.
        ``out`` may be a view with padded rows; where it is given, it is filled and returned.
        """
        ...


@dataclass(slots=True)
class ArrayFrame:
    """A frame whose picture is a NumPy array: (height, width, 3) uint8 RGB.

    >>> ArrayFrame(np.zeros((480, 640, 3), np.uint8)).resized(320, 240).shape
    (240, 320, 3)
    """

    pixels: Image
    source_id: int = 0
    frame_number: int = 0
    pts: int = 0

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    def resized(self, width: int, height: int, out: Image | None = None) -> Image:
        """See `Frame.resized`."""
        if out is None:
            out = np.empty((height, width, 3), np.uint8)
        cv2.resize(self.pixels, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)
        return out

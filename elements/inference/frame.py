"""What a model sees of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Region = tuple[float, float, float, float]


class DevicePlanes(NamedTuple):
    """A 4:2:0 picture of 8 bit in GPU memory, planar (I420) or with Cb and Cr side by side (NV12); nothing is copied.

    Attributes:
        luma, blue, red: addresses of Y, Cb and Cr.
        luma_pitch, chroma_pitch: bytes from row to row.
        luma_step, chroma_step: bytes from one Y, one Cb to the next: 1, and 1 or 2; twice that in a picture of 10 bit.
            One that is stored in another orientation is read as it stands upright, with other and negative ones.
        width, height: of the picture, pixels; chroma has half as many samples, rounded up.
        matrix: to RGB, as `elements.portable.color.ColorSpace.to_rgb_fixed`.
        device: number of the GPU.
        owner: keeps the memory.
    """

    luma: int
    blue: int
    red: int
    luma_pitch: int
    chroma_pitch: int
    luma_step: int
    chroma_step: int
    width: int
    height: int
    matrix: tuple[int, ...]
    device: int = 0
    owner: Any = None


class Frame(Protocol):
    """One upright picture of one source. Pixels are made on request, at the size the model wants.

    Attributes:
        width: width of the source picture in pixels.
        height: height of the source picture in pixels.
        source_id: which source it comes from.
        frame_number: 0-based, per source.
        pts: presentation time in nanoseconds.

    A frame of a pipeline also has ``source``, the source's name (empty if it has none), and ``utc_ns``, when it was
    taken (nanoseconds since 1970, 0 if nobody knows).

    A frame whose pixels are on a GPU also has ``tensor``: the picture as a (h, w, 3) uint8 RGB torch tensor on that
    GPU, whose rows may be padded and whose size may differ from ``width`` x ``height`` if it was scaled on the way.
    ``device_picture``, where there is one, is the same without torch: ``pointer``, ``shape``, ``strides`` in bytes,
    ``dtype``, ``device`` (number of the GPU); its pixels are complete.
    ``device_planes``, where it is not ``None``, is the picture as it was decoded, `DevicePlanes`: the others are made
    of it when they are asked for.
    All are valid until the model's ``infer`` returns. Engines that run elsewhere call `resized`.

    ``resized_parts(regions, out)``, where there is one, does what `resized` does for (N, 4) regions at once, whose
    pictures, all of one size, go to ``out``, (N, height, width, 3), contiguous.
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

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """The picture scaled to ``width`` x ``height``: (height, width, 3) uint8 RGB, bilinear.

        Edges map to edges (pixel ``i`` covers ``[i, i + 1)``), so a box scales by the plain ratio of the sizes.
        ``out`` may be a view with padded rows; where it is given, it is filled and returned. Without it the result may
        be a read-only view of the picture. ``region`` is a part of the picture, (x1, y1, x2, y2) in its pixels and
        inside of it; default: all.
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
    source: str = ""
    utc_ns: int = 0

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `Frame.resized`."""
        if out is None:
            out = np.empty((height, width, 3), np.uint8)
        x1, y1, x2, y2 = region or (0, 0, self.width, self.height)
        if all(float(edge).is_integer() for edge in (x1, y1, x2, y2)):
            part = self.pixels[int(y1) : int(y2), int(x1) : int(x2)]
            cv2.resize(part, (width, height), dst=out, interpolation=cv2.INTER_LINEAR)
        else:
            sx, sy = (x2 - x1) / width, (y2 - y1) / height
            matrix = np.array([[sx, 0, x1 + sx / 2 - 0.5], [0, sy, y1 + sy / 2 - 0.5]])  # between pixel centres
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            cv2.warpAffine(self.pixels, matrix, (width, height), out, flags, cv2.BORDER_REPLICATE)
        return out

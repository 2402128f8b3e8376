"""A decoded picture: NumPy views of its planes, resampled and converted by OpenCV (which frees the GIL)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.portable.color import BT709, ColorSpace

Image = NDArray[np.uint8]
Rect = tuple[float, float, float, float]  # x1, y1, x2, y2 in pixels; x2 and y2 are the first beyond

_TO_RGB = {
    "BGR": cv2.COLOR_BGR2RGB,
    "RGBA": cv2.COLOR_RGBA2RGB,
    "RGBx": cv2.COLOR_RGBA2RGB,
    "BGRA": cv2.COLOR_BGRA2RGB,
    "BGRx": cv2.COLOR_BGRA2RGB,
    "GRAY8": cv2.COLOR_GRAY2RGB,
}
_FROM_RGB = {
    "BGR": cv2.COLOR_RGB2BGR,
    "RGBA": cv2.COLOR_RGB2RGBA,
    "RGBx": cv2.COLOR_RGB2RGBA,
    "BGRA": cv2.COLOR_RGB2BGRA,
    "BGRx": cv2.COLOR_RGB2BGRA,
    "GRAY8": cv2.COLOR_RGB2GRAY,
}
CHANNELS = {"RGB": 3, "BGR": 3, "RGBA": 4, "RGBx": 4, "BGRA": 4, "BGRx": 4, "GRAY8": 1}  # the packed formats
PLANAR = ("I420", "NV12")
FORMATS = (*PLANAR, *CHANNELS)


def plane_shapes(format: str, width: int, height: int) -> tuple[tuple[int, ...], ...]:
    """Shape of each plane of a picture: as `Picture.planes` describes."""
    half = ((height + 1) // 2, (width + 1) // 2)
    if format == "I420":
        return ((height, width), half, half)
    if format == "NV12":
        return ((height, width), (*half, 2))
    channels = CHANNELS[format]
    return ((height, width),) if channels == 1 else ((height, width, channels),)


class Planes(Protocol):
    """Anything with the planes of a picture."""

    @property
    def planes(self) -> tuple[Image, ...]:
        """As of `Picture`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Pixels in one of `FORMATS` (GStreamer's names).

    ``planes``: I420 (H, W), then two of ((H+1)//2, (W+1)//2); NV12 (H, W) and ((H+1)//2, (W+1)//2, 2); packed formats
    (H, W, C), GRAY8 (H, W). ``source`` is whatever must live as long as the planes.
    """

    format: str
    planes: tuple[Image, ...]
    color: ColorSpace = BT709
    source: Any = None

    @property
    def width(self) -> int:
        return int(self.planes[0].shape[1])

    @property
    def height(self) -> int:
        return int(self.planes[0].shape[0])

    @property
    def whole(self) -> Rect:
        return (0, 0, self.width, self.height)

    @property
    def tensor(self) -> None:
        """No pixels on a GPU."""
        return None

    @property
    def device_planes(self) -> None:
        """No pixels on a GPU."""
        return None

    def rgb(self, region: Rect, width: int, height: int, out: Image | None = None) -> Image:
        """Resample ``region`` to ``(height, width, 3)`` RGB, bilinear.

        Planes are resampled first and converted then, so the cost follows the target size. Without ``out`` the result
        may be a read-only view of the picture (RGB, not scaled).
        """
        if self.format in PLANAR:
            yuv = self._yuv(region, width, height)
            return _same(cv2.transform(yuv, self.color.to_rgb, dst=out), out)
        if self.format == "RGB":
            sampled = sample(self.planes[0], region, width, height, out)
            if out is None or sampled is out:
                return sampled
            np.copyto(out, sampled)
            return out
        return _same(cv2.cvtColor(sample(self.planes[0], region, width, height), _TO_RGB[self.format], dst=out), out)

    def rgb_parts(self, regions: NDArray[np.float64], out: Image) -> None:
        """`rgb` of (N, 4) regions into ``out``, (N, height, width, 3), contiguous: colours are converted at once."""
        count, height, width, _ = out.shape
        if self.format not in PLANAR:
            for region, slot in zip(regions.tolist(), out, strict=True):
                self.rgb(tuple(region), width, height, slot)
            return
        parts = []
        for plane, own in zip(self.planes, (regions, regions / 2, regions / 2), strict=False):
            sampled = np.empty((count, height, width, *plane.shape[2:]), np.uint8)
            sample_parts(plane, own, sampled)
            parts.append(sampled.reshape(count * height, width, *plane.shape[2:]))
        cv2.transform(cv2.merge(parts), self.color.to_rgb, dst=out.reshape(count * height, width, 3))

    def write_rgb(self, rgb: Image) -> None:
        """Fill the planes from an ``(H, W, 3)`` RGB picture of the same size."""
        if self.format == "RGB":
            np.copyto(self.planes[0], rgb)
        elif self.format in _FROM_RGB:
            _same(cv2.cvtColor(rgb, _FROM_RGB[self.format], dst=self.planes[0]), self.planes[0])
        else:
            yuv = cv2.transform(rgb, self.color.from_rgb)
            cv2.extractChannel(yuv, 0, dst=self.planes[0])
            even = cv2.copyMakeBorder(yuv, 0, self.height % 2, 0, self.width % 2, cv2.BORDER_REPLICATE)
            half = cv2.resize(even, (even.shape[1] // 2, even.shape[0] // 2), interpolation=cv2.INTER_AREA)
            self._write_chroma(half, 1, slice(None), slice(None))

    def write_planes(self, picture: Planes, region: Rect, x: int, y: int, width: int, height: int) -> None:
        """Resample ``region`` of another Y'CbCr picture of the same colour space into a rectangle; the rest is black.

        ``x`` and ``y`` must be even, and ``width`` and ``height`` even or reaching to the edge.
        """
        luma, (cw, ch) = self.planes[0], ((width + 1) // 2, (height + 1) // 2)
        if (width, height) != (self.width, self.height):
            for plane, value in zip(self.planes, self.color.black[: len(self.planes)], strict=True):
                plane[:] = value
        rows, columns = slice(y, y + height), slice(x, x + width)
        np.copyto(luma[rows, columns], sample(picture.planes[0], region, width, height))
        # an odd picture's last chroma column stands for one luma column only
        scale = (2 * cw / width, 2 * ch / height)
        x1, y1, x2, y2 = region
        half = (x1 / 2, y1 / 2, (x1 + (x2 - x1) * scale[0]) / 2, (y1 + (y2 - y1) * scale[1]) / 2)
        chroma = [sample(plane, half, cw, ch) for plane in picture.planes[1:]]
        target = (slice(y // 2, y // 2 + ch), slice(x // 2, x // 2 + cw))
        self._write_chroma(chroma[0] if len(chroma) == 1 else cv2.merge(chroma), 0, *target)

    def _write_chroma(self, pixels: Image, first: int, rows: slice, columns: slice) -> None:
        """Write channels ``first`` and ``first + 1`` as Cb and Cr."""
        if self.format == "NV12":
            cv2.mixChannels([pixels], [self.planes[1][rows, columns]], [first, 0, first + 1, 1])
        else:
            for channel, plane in enumerate(self.planes[1:], first):
                cv2.extractChannel(pixels, channel, dst=plane[rows, columns])

    def _yuv(self, region: Rect, width: int, height: int) -> Image:
        """(height, width, 3) Y, Cb, Cr. Chroma samples are taken to lie at the centre of their 2x2 pixels."""
        half = tuple(edge / 2 for edge in region)
        parts = [sample(self.planes[0], region, width, height)]
        parts += [sample(plane, half, width, height) for plane in self.planes[1:]]  # type: ignore[arg-type]
        return cv2.merge(parts)  # type: ignore[no-any-return]


def sample(plane: Image, region: Rect, width: int, height: int, out: Image | None = None) -> Image:
    """Bilinear resampling of a region of one plane with pixel-centre geometry; the border pixels repeat outside.

    Returns a view of ``plane`` where nothing has to be scaled (``out`` is left alone then), else ``out`` or an array.
    """
    x1, y1 = round(region[0]), round(region[1])
    x2, y2 = round(2 * region[2]) / 2, round(2 * region[3]) / 2
    simple = max(abs(a - b) for a, b in zip(region, (x1, y1, x2, y2), strict=True)) < 1e-3
    if simple and x1 >= 0 and y1 >= 0 and y2 <= plane.shape[0] and x2 <= plane.shape[1]:
        part = plane[y1 : math.ceil(y2), x1 : math.ceil(x2)]
        if (x2 - x1, y2 - y1) == (width, height):
            return part
        return _same(_resized(part, (x2 - x1, y2 - y1), width, height, out), out)
    sx, sy = (region[2] - region[0]) / width, (region[3] - region[1]) / height
    matrix = np.array([[sx, 0, region[0] + sx / 2 - 0.5], [0, sy, region[1] + sy / 2 - 0.5]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warped = cv2.warpAffine(plane, matrix, (width, height), dst=out, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return _same(warped, out)


def _resized(part: Image, extent: tuple[float, float], width: int, height: int, out: Image | None) -> Image:
    """cv2.resize of a part of a plane; ``extent`` (width, height) may lack half of the last sample.

    A chroma plane of a picture of odd size does. The arithmetic is the same for every size and layout; for frames on a
    GPU `elements.inference.gpu.resampling` repeats it.
    """
    linear, size = cv2.INTER_LINEAR, (width, height)
    if part.ndim == 3 and part.shape[2] == 2 and extent == (2 * width, 2 * height):
        # of two channels side by side OpenCV rounds the mean of four pixels to even, of one channel up
        halves = [cv2.resize(channel, size, interpolation=linear) for channel in cv2.split(part)]
        scaled: Image = cv2.merge(halves, dst=out)
    elif extent == (part.shape[1], part.shape[0]):
        scaled = cv2.resize(part, size, dst=out, interpolation=linear)
    else:  # the size follows from the scale, rounded, and may be one more
        scaled = cv2.resize(part, None, fx=width / extent[0], fy=height / extent[1], interpolation=linear)
        scaled = scaled[:height, :width]
        if out is not None:
            np.copyto(out, scaled)
            return out
    return scaled


def sample_parts(plane: Image, regions: NDArray[np.float64], out: Image) -> None:
    """`sample` of (N, 4) regions into ``out``, (N, height, width) or (N, height, width, channels).

    The two common cases, between whole samples and from a place between samples, are told apart for all at once: for
    small pictures that takes as long as scaling one.
    """
    height, width = out.shape[1:3]
    edges = np.rint(regions)
    near = np.abs(regions - edges) < 1e-3
    inside = (edges[:, :2] >= 0).all(axis=1) & (edges[:, 2:] <= plane.shape[1::-1]).all(axis=1)
    whole = np.logical_and(inside, near.all(axis=1) & (plane.ndim == 2))
    between = np.logical_not(near[:, :2].all(axis=1))
    scale = (regions[:, 2:] - regions[:, :2]) / (width, height)
    matrices = np.zeros((len(regions), 2, 3))
    matrices[:, (0, 1), (0, 1)], matrices[:, :, 2] = scale, regions[:, :2] + scale / 2 - 0.5
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    kinds = zip(edges.astype(int).tolist(), whole.tolist(), between.tolist(), strict=True)
    for row, ((x1, y1, x2, y2), is_whole, is_between) in enumerate(kinds):
        if is_whole:
            cv2.resize(plane[y1:y2, x1:x2], (width, height), dst=out[row], interpolation=cv2.INTER_LINEAR)
        elif is_between:
            cv2.warpAffine(plane, matrices[row], (width, height), out[row], flags, cv2.BORDER_REPLICATE)
        else:
            np.copyto(out[row], sample(plane, tuple(regions[row].tolist()), width, height, out[row]))


def _same(result: Image, out: Image | None) -> Image:
    """OpenCV ignores a ``dst`` of another shape or type in silence; a caller who gave one counts on it."""
    if out is None:
        return result
    if not np.may_share_memory(result, out):
        raise ValueError(f"out must be {result.shape} {result.dtype}, is {out.shape} {out.dtype}")
    return out

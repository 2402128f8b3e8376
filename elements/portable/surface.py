"""Lazy pictures: a frame of the batch keeps what the decoder made; its size and format are only declared.

nvstreammux and nvvideoconvert change the declaration and the geometry. Pixels are made when somebody asks, straight
from the decoder's planes and at the size that is asked for, so a pipeline that only infers never converts or scales a
whole frame. A frame that was decoded in GPU memory stays there until somebody wants its pixels on the host.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elements.base import Gst
from elements.inference.frame import DevicePlanes
from elements.metadata.placement import Placement
from elements.portable.color import ColorSpace
from elements.portable.device_array import DeviceArray
from elements.portable.device_scaling import scaled
from elements.portable.nvmm import NvmmPicture, holds_nvmm, nvmm_picture
from elements.portable.picture import PLANAR, Image, Picture, Rect
from elements.portable.video_buffer import VideoLayout, is_standard, new_video_buffer, picture_of, twin_of


@dataclass(frozen=True, slots=True)
class _View:
    """``window`` of the picture (its pixels) fills ``target`` of the surface (surface pixels); the rest is black."""

    picture: Picture | NvmmPicture
    window: Rect
    target: Rect


_Decoded = tuple[Gst.Buffer, VideoLayout]
"""A frame of the stream mux that nobody has looked at: not all are."""


class Surface:
    """One frame of a batch, of a declared ``width``, ``height`` and ``format``.

    Several threads may read surfaces, the same one too. Whoever paints or sets ``format`` must own the batch
    (`writable_batch`).

    Attributes:
        width, height: declared size in pixels.
        format: declared GStreamer format name; `rgb` and `resample` give RGB whatever it says.
        placement: where the source's frame lies on this surface.
    """

    __slots__ = ("_lock", "_owned", "_rgb", "_shown", "format", "height", "placement", "width")

    def __init__(self, shown: _View | _Decoded, width: int, height: int, format: str, placement: Placement) -> None:
        self.width, self.height, self.format, self.placement = width, height, format, placement
        self._shown: _View | NvmmPicture | _Decoded = shown  # without a view: the whole picture, at the placement
        self._rgb: Image | None = None  # the picture at declared size, once somebody asked for it
        self._owned = False  # nobody else reads _rgb
        self._lock = threading.Lock()

    @classmethod
    def of_buffer(cls, buffer: Gst.Buffer, layout: VideoLayout) -> Surface:
        """A decoded frame at its own size, in system or GPU memory; the pixels are not copied.

        Raises:
            ElementError: if the buffer is smaller than its layout says, or an NVMM buffer of a kind that is not read.
        """
        return cls._of_picture(_picture_of((buffer, layout)))

    @classmethod
    def placed(
        cls, buffer: Gst.Buffer, layout: VideoLayout, size: tuple[int, int], format: str, placement: Placement
    ) -> Surface:
        """A decoded frame where ``placement`` says, on a black surface of (width, height) ``size``.

        The same as `of_buffer` and `mapped`, but the buffer is looked at when somebody asks for the picture, who then
        gets the errors, too.
        """
        return cls((buffer, layout), *size, format, placement)

    @classmethod
    def of_array(cls, rgb: Image) -> Surface:
        """A surface over an (H, W, 3) RGB picture. The array is not copied and must not be written any more."""
        return cls._of_picture(_rgb_picture(rgb))

    @classmethod
    def _of_picture(cls, picture: Picture | NvmmPicture) -> Surface:
        size = (picture.width, picture.height)
        view = _View(picture, picture.whole, picture.whole)
        return cls(view, *size, picture.format, Placement.stretched(size, size))

    @property
    def _view(self) -> _View:
        """What is shown; with the lock held."""
        shown = self._shown
        if not isinstance(shown, _View):
            picture = shown if isinstance(shown, NvmmPicture) else _picture_of(shown)
            self._shown = shown = _View(picture, picture.whole, _box(self.placement))
        return shown

    def _untouched(self) -> NvmmPicture | None:
        """A picture in GPU memory as it was decoded; with the lock held, and only where there is no view yet.

        ``None`` for one in host memory, which need not be mapped to tell that.
        """
        shown = self._shown
        if isinstance(shown, tuple):
            if not holds_nvmm(shown[0]):
                return None
            self._shown = shown = nvmm_picture(*shown)
        assert isinstance(shown, NvmmPicture)
        return shown

    # --- geometry: declarations only ----------------------------------------------------------------------------------

    def resized(self, width: int, height: int, format: str | None = None) -> Surface:
        """The same picture stretched to a declared size, and optionally of another declared format."""
        return self.mapped(width, height, format)

    def cropped(self, left: float, top: float, width: int, height: int) -> Surface:
        """The part of this surface that begins at (left, top), not scaled."""
        return self.mapped(width, height, region=(left, top, left + width, top + height))

    def mapped(
        self, width: int, height: int, format: str | None = None, region: Rect | None = None, target: Rect | None = None
    ) -> Surface:
        """A surface of the given size whose ``target`` shows this surface's ``region``; the rest is black.

        ``region`` is in this surface's pixels, ``target`` in the new one's; each is the whole by default.
        """
        with self._lock:
            view = self._view
            self._owned = False  # after painting, the view shows _rgb itself
        if region is target is None and (width, height) == (self.width, self.height):
            return Surface(view, width, height, format or self.format, self.placement)
        region = region or (0, 0, self.width, self.height)
        target = target or (0, 0, width, height)
        visible = _intersection(region, view.target)
        new_view = _View(
            view.picture, _mapped_rect(visible, view.target, view.window), _mapped_rect(visible, region, target)
        )
        old = self.placement
        left, top, right, bottom = _mapped_rect(
            (old.left, old.top, old.left + old.width, old.top + old.height), region, target
        )
        placement = Placement(old.source_width, old.source_height, left, top, right - left, bottom - top)
        return Surface(new_view, width, height, format or self.format, placement)

    def share(self) -> Surface:
        """A twin over the same pixels; whichever paints first gets pixels of its own."""
        with self._lock:
            self._owned = False
            twin = Surface(self._view, self.width, self.height, self.format, self.placement)
            twin._rgb = self._rgb
        return twin

    # --- pixels on the GPU --------------------------------------------------------------------------------------------

    @property
    def source_planes(self) -> DevicePlanes | None:
        """The source's whole 4:2:0 picture in GPU memory, at its own size whatever this surface declares, not copied.

        ``None`` for a picture that lies in host memory, is packed, was cut or was painted on.
        """
        picture = self._whole_source()
        return None if picture is None else picture.device_planes

    @property
    def source_tensor(self) -> DeviceArray | None:
        """The source's whole picture in GPU memory as (H, W, 3) uint8 RGB, at its own size; see `NvmmPicture.tensor`.

        ``None`` for a picture that lies in host memory, is neither RGB nor 4:2:0, was cut or was painted on.

        Raises:
            ElementError: as of `NvmmPicture.tensor`.
        """
        picture = self._whole_source()
        return None if picture is None else picture.tensor

    def _whole_source(self) -> Picture | NvmmPicture | None:
        with self._lock:
            view = self._shown
            if not isinstance(view, _View):
                return self._untouched()
        place, picture = self.placement, view.picture
        complete = (picture.width, picture.height) == (place.source_width, place.source_height)
        shown = _near(view.window, picture.whole) and _near(view.target, _box(place))
        return picture if complete and shown else None

    def device_rgb(self) -> DeviceArray | None:
        """As `rgb`, but in GPU memory, for a picture that lies there; ``None`` for others.

        As `NvmmPicture.tensor` where the declared size is the picture's own; else torch scales it.

        Raises:
            ElementError: if torch is needed and not installed.
        """
        with self._lock:
            if not isinstance(self._shown, _View) and self._untouched() is None:
                return None
            view = self._view
        tensor = view.picture.tensor
        if tensor is None or view.picture.whole == view.window == view.target == (0, 0, self.width, self.height):
            return tensor
        return scaled(tensor, view.window, (self.width, self.height), view.target)

    # --- pixels -------------------------------------------------------------------------------------------------------

    def rgb(self, write: bool = False) -> Image:
        """The picture at declared size, (height, width, 3) uint8 RGB; kept, so asking again costs nothing.

        With ``write`` the array becomes the picture: whoever asks this surface later sees what was painted.
        Without it the array must not be written.
        """
        with self._lock:
            if self._rgb is None:
                self._rgb = self._sample(self._view, self.width, self.height)
                self._owned = self._rgb.flags.writeable  # else it is a view of the decoder's frame
            if write:
                if not self._owned:
                    self._rgb = self._rgb.copy()
                    self._owned = True
                picture = _rgb_picture(self._rgb)
                self._shown = _View(picture, picture.whole, picture.whole)
            return self._rgb

    def resample(self, width: int, height: int, region: Rect | None = None, out: Image | None = None) -> Image:
        """``region`` of this surface (default all, in its pixels) scaled to (height, width, 3) uint8 RGB, bilinear.

        Taken straight from the decoder's planes when nothing was painted. ``out`` may be a view into a larger array;
        without it the result may be a read-only view of the frame.

        Raises:
            ValueError: if ``out`` has another shape or type.
        """
        with self._lock:
            view = self._view
        return self._sample(view, width, height, region, out)

    def resample_parts(self, regions: NDArray[np.float64], out: Image) -> None:
        """`resample` of (N, 4) regions into ``out``, (N, height, width, 3), contiguous."""
        with self._lock:
            view = self._view
        left, top, right, bottom = view.target
        inside = (regions >= (left, top, left, top)).all() and (regions <= (right, bottom, right, bottom)).all()
        if not inside or not isinstance(view.picture, Picture):
            for region, slot in zip(regions.tolist(), out, strict=True):
                self._sample(view, out.shape[2], out.shape[1], tuple(region), slot)
            return
        window = np.array(view.window)
        scale = (window[2:] - window[:2]) / (right - left, bottom - top)
        view.picture.rgb_parts((regions - np.tile((left, top), 2)) * np.tile(scale, 2) + np.tile(window[:2], 2), out)

    def to_buffer(self, format: str, color: ColorSpace | None = None, any_layout: bool = True) -> Gst.Buffer:
        """A system-memory frame of the declared size in ``format``, without times.

        Shares the decoder's memory when that has the format, size and colours already. ``color`` is the colour space
        for Y'CbCr formats; by default the one that GStreamer assumes for caps without colorimetry. Without
        ``any_layout`` the planes lie where the caps say, for receivers that do not read a buffer's GstVideoMeta.

        Raises:
            ElementError: for a format that is not one of `elements.portable.picture.FORMATS`.
        """
        layout = VideoLayout.of(format, self.width, self.height)
        color = color or layout.color
        with self._lock:
            view = self._view
        picture, whole = view.picture, (0, 0, self.width, self.height)
        same_color = picture.format not in PLANAR or picture.color == color
        untouched = picture.source and view.window == view.target == whole == picture.whole
        as_wanted = untouched and picture.format == format and same_color
        if as_wanted and (any_layout or is_standard(picture.source, layout)):
            return twin_of(picture.source)
        buffer, target = new_video_buffer(layout)
        target = Picture(target.format, target.planes, color)
        if format in PLANAR and picture.format in PLANAR and same_color and _even(view.target, whole):
            x1, y1, x2, y2 = (round(edge) for edge in view.target)
            target.write_planes(picture, view.window, x1, y1, x2 - x1, y2 - y1)
        else:
            target.write_rgb(self.rgb())
        return buffer

    def _sample(
        self, view: _View, width: int, height: int, region: Rect | None = None, out: Image | None = None
    ) -> Image:
        """`resample` of a given view; the lock is not needed."""
        whole = (0.0, 0.0, float(width), float(height))
        if out is not None and out.shape != (height, width, 3):
            raise ValueError(f"out must be {(height, width, 3)}, is {out.shape}")
        target = _mapped_rect(view.target, region or (0, 0, self.width, self.height), whole)
        x1, y1, x2, y2 = (round(edge) for edge in _intersection(target, whole))
        if (x1, y1, x2, y2) == whole:
            return view.picture.rgb(_mapped_rect(whole, target, view.window), width, height, out)
        canvas = np.empty((height, width, 3), np.uint8) if out is None else out
        canvas[:] = 0
        if x2 > x1 and y2 > y1:
            window = _mapped_rect((x1, y1, x2, y2), target, view.window)
            view.picture.rgb(window, x2 - x1, y2 - y1, canvas[y1:y2, x1:x2])
        return canvas


def _picture_of(decoded: _Decoded) -> Picture | NvmmPicture:
    return (nvmm_picture if holds_nvmm(decoded[0]) else picture_of)(*decoded)


def _rgb_picture(rgb: Image) -> Picture:
    """A picture over an RGB array. Read-only, so that a surface that gets a view of it copies before painting."""
    plane = rgb.view()
    plane.flags.writeable = False
    return Picture("RGB", (plane,))


def _mapped_rect(rect: Rect, source: Rect, target: Rect) -> Rect:
    """``rect`` moved by the map that takes ``source`` to ``target``; a source of no extent goes to one point."""
    sx = (target[2] - target[0]) / (source[2] - source[0] or np.inf)
    sy = (target[3] - target[1]) / (source[3] - source[1] or np.inf)
    x, y = target[0] - source[0] * sx, target[1] - source[1] * sy
    return (rect[0] * sx + x, rect[1] * sy + y, rect[2] * sx + x, rect[3] * sy + y)


def _intersection(a: Rect, b: Rect) -> Rect:
    """The common part; of no extent if there is none."""
    x1, y1 = max(a[0], b[0]), max(a[1], b[1])
    return (x1, y1, max(x1, min(a[2], b[2])), max(y1, min(a[3], b[3])))


def _box(placement: Placement) -> Rect:
    return (placement.left, placement.top, placement.left + placement.width, placement.top + placement.height)


def _near(a: Rect, b: Rect) -> bool:
    """Whether they differ by rounding errors only."""
    return a == b or all(abs(p - q) < 1e-3 for p, q in zip(a, b, strict=True))


def _even(rect: Rect, whole: Rect) -> bool:
    """Whether chroma samples need not be divided at the rectangle's edges."""
    starts = all(edge % 2 == 0 for edge in rect[:2])
    return starts and all(edge % 2 == 0 or edge == end for edge, end in zip(rect[2:], whole[2:], strict=True))

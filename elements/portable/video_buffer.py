"""Raw video in system-memory Gst.Buffers as `Picture`, and the other way round."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from elements.base import ElementError, Gst, GstVideo
from elements.portable.color import BT601, BT709, BT2020, ColorSpace
from elements.portable.orientation import ORIENTATIONS, UPRIGHT, Orientation
from elements.portable.picture import FORMATS, Image, Picture, plane_shapes

_gst = ctypes.PyDLL("libgstreamer-1.0.so.0")  # mapping system memory does not block


class _MapInfo(ctypes.Structure):
    """GstMapInfo of gstmemory.h."""

    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("maxsize", ctypes.c_size_t),
        ("user_data", ctypes.c_void_p * 4),
        ("reserved", ctypes.c_void_p * 4),
    )


class _VideoMeta(ctypes.Structure):
    """GstVideoMeta of gstvideometa.h on 64-bit machines, as far as the strides."""

    _fields_ = (
        ("meta", ctypes.c_void_p * 2),
        ("buffer", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("format", ctypes.c_int),
        ("id", ctypes.c_int),
        ("width", ctypes.c_uint),
        ("height", ctypes.c_uint),
        ("n_planes", ctypes.c_uint),
        ("offset", ctypes.c_size_t * 4),
        ("stride", ctypes.c_int * 4),
    )


_gst.gst_buffer_map.argtypes = [ctypes.c_void_p, ctypes.POINTER(_MapInfo), ctypes.c_int]
_gst.gst_buffer_unmap.argtypes = [ctypes.c_void_p, ctypes.POINTER(_MapInfo)]
_gst.gst_buffer_n_memory.argtypes = [ctypes.c_void_p]
_video = ctypes.PyDLL("libgstvideo-1.0.so.0")
_video.gst_buffer_get_video_meta.argtypes = [ctypes.c_void_p]
_video.gst_buffer_get_video_meta.restype = ctypes.POINTER(_VideoMeta)

ORIENTATION_FIELD = "orientation"  # of our caps; the value is one of `ORIENTATIONS`

_READ, _WRITE = int(Gst.MapFlags.READ), int(Gst.MapFlags.WRITE)
_FULL_RANGE = 1  # GST_VIDEO_COLOR_RANGE_0_255, a name that is no Python identifier
_MATRICES = {
    GstVideo.VideoColorMatrix.BT601: (BT601.kr, BT601.kb),
    GstVideo.VideoColorMatrix.BT709: (BT709.kr, BT709.kb),
    GstVideo.VideoColorMatrix.BT2020: (BT2020.kr, BT2020.kb),
    GstVideo.VideoColorMatrix.FCC: (0.30, 0.11),
    GstVideo.VideoColorMatrix.SMPTE240M: (0.212, 0.087),
}


@dataclass(frozen=True, slots=True)
class VideoLayout:
    """What caps say about a frame. ``offsets`` and ``strides`` in bytes, per plane, where a buffer has no own.

    ``width`` and ``height`` are those of the upright picture. Frames in GPU memory may be stored in another
    ``orientation``, which only our own caps say (`elements.portable.nvidia_copy`).
    """

    format: str
    width: int
    height: int
    offsets: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    color: ColorSpace
    orientation: Orientation = UPRIGHT

    @classmethod
    def of_caps(cls, caps: Gst.Caps) -> VideoLayout:
        """Layout of fixed ``video/x-raw`` caps, whatever memory feature they name.

        Raises:
            ElementError: if they are not raw video in one of `FORMATS`.
        """
        plain = Gst.Caps.from_string(caps[0].to_string())
        name = plain[0].get_string("format")
        if plain[0].get_name() != "video/x-raw" or name not in FORMATS:
            raise ElementError(f"frames must be raw video in one of {', '.join(FORMATS)}; these are {caps.to_string()}")
        try:
            info = GstVideo.VideoInfo.new_from_caps(plain)
        except TypeError:  # PyGObject's for NULL
            raise ElementError(f"not the caps of a video frame, or of one too large: {caps.to_string()}") from None
        planes = info.finfo.n_planes
        weights = _MATRICES.get(info.colorimetry.matrix, (BT601.kr, BT601.kb))
        color = ColorSpace(*weights, int(info.colorimetry.range) == _FULL_RANGE)
        offsets, strides = tuple(info.offset[:planes]), tuple(info.stride[:planes])
        orientation = ORIENTATIONS[plain[0].get_string(ORIENTATION_FIELD) or "rotate-0"]
        return cls(name, info.width, info.height, offsets, strides, info.size, color, orientation)

    @classmethod
    @functools.lru_cache(64)
    def of(cls, name: str, width: int, height: int) -> VideoLayout:
        """GStreamer's standard layout and colours of a frame of that format and size."""
        return cls.of_caps(Gst.Caps.from_string(f"video/x-raw,format={name},width={width},height={height}"))


class _Memory:
    """Gives NumPy a buffer's bytes and keeps the buffer alive as long as an array looks at them."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Gst.Buffer, address: int, size: int, read_only: bool) -> None:
        self.buffer = buffer
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, read_only), "version": 3}


def picture_of(buffer: Gst.Buffer, layout: VideoLayout) -> Picture:
    """The buffer's pixels, not copied, read-only. The buffer's own GstVideoMeta goes before the layout.

    Raises:
        ElementError: if the buffer is smaller than its layout says.
    """
    offsets, strides = _offsets_and_strides(buffer, layout)
    views = _views(_bytes_of(buffer, _READ), layout, offsets, strides)
    return Picture(layout.format, views, layout.color, source=buffer)


def is_standard(buffer: Gst.Buffer, layout: VideoLayout) -> bool:
    """Whether the buffer's planes lie where the layout says, so that its GstVideoMeta need not be read."""
    return _offsets_and_strides(buffer, layout) == (layout.offsets, layout.strides)


def new_video_buffer(layout: VideoLayout) -> tuple[Gst.Buffer, Picture]:
    """A buffer in the layout, and its pixels to be written."""
    buffer = Gst.Buffer.new_allocate(None, layout.size, None)
    data = _bytes_of(buffer, _WRITE)
    return buffer, Picture(layout.format, _views(data, layout, layout.offsets, layout.strides), layout.color)


def twin_of(buffer: Gst.Buffer) -> Gst.Buffer:
    """A buffer of its own (times, flags, metas) over the same memory."""
    flags = Gst.BufferCopyFlags
    everything = flags.FLAGS | flags.TIMESTAMPS | flags.META | flags.MEMORY
    return buffer.copy_region(everything, 0, buffer.get_size())


def _offsets_and_strides(buffer: Gst.Buffer, layout: VideoLayout) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where the buffer's planes lie. Read with ctypes: through PyGObject it takes longer than all else of a frame."""
    meta = _video.gst_buffer_get_video_meta(hash(buffer))
    if not meta:
        return layout.offsets, layout.strides
    planes, found = len(layout.offsets), meta.contents
    return tuple(found.offset[:planes]), tuple(found.stride[:planes])


def _bytes_of(buffer: Gst.Buffer, access: int) -> Image:
    address, info = hash(buffer), _MapInfo()
    if not _gst.gst_buffer_map(address, ctypes.byref(info), access):
        raise ElementError("GStreamer could not map a frame's memory")
    # System memory stays where it is after unmapping; only a buffer of several memories is merged into a passing one.
    data: Any = np.asarray(_Memory(buffer, info.data, info.size, access == _READ))
    if _gst.gst_buffer_n_memory(address) > 1:
        data = data.copy()
    _gst.gst_buffer_unmap(address, ctypes.byref(info))
    return data  # type: ignore[no-any-return]


def _views(data: Image, layout: VideoLayout, offsets: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Image, ...]:
    places, end = _places(layout.format, layout.width, layout.height, offsets, strides)
    if end > data.size:
        raise ElementError(f"a frame of {data.size} bytes is too small for {layout}")
    return tuple(np.ndarray(shape, np.uint8, data, offset, steps) for shape, offset, steps in places)  # type: ignore[arg-type]


@functools.lru_cache(64)
def _places(
    format: str, width: int, height: int, offsets: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[list[tuple[tuple[int, ...], int, tuple[int, ...]]], int]:
    """Shape, offset and strides of each plane, and how many bytes a frame has at least."""
    shapes = plane_shapes(format, width, height)
    inner = [(shape[2], 1) if len(shape) == 3 else (1,) for shape in shapes]
    places = [(s, offset, (stride, *i)) for s, offset, stride, i in zip(shapes, offsets, strides, inner, strict=True)]
    return places, max(offset + (s[0] - 1) * steps[0] + math.prod(s[1:]) for s, offset, steps in places)

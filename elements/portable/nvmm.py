"""Frames in GPU memory: what NVIDIA's decoder and converter put into ``memory:NVMM`` buffers, as pictures.

Such a buffer's bytes are an ``NvBufSurface`` of 72 bytes, whose ``surfaceList`` describes the frames (layout of
nvbufsurface.h, DeepStream 9, on 64-bit machines). Our stand-ins' own NVMM buffers are ordinary system memory.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import NamedTuple

import numpy as np

from elements.base import ElementError, Gst
from elements.inference.frame import DevicePlanes
from elements.portable import cuda
from elements.portable.device_array import DeviceArray
from elements.portable.device_color import rgb_of
from elements.portable.orientation import UPRIGHT
from elements.portable.picture import PLANAR, Image, Picture, Rect, plane_shapes
from elements.portable.video_buffer import VideoLayout

SURFACE_SIZE = 72

_gst = ctypes.PyDLL("libgstreamer-1.0.so.0")  # for each frame: PyGObject's calls free the GIL, which takes longer
_gst.gst_buffer_get_size.argtypes, _gst.gst_buffer_get_size.restype = [ctypes.c_void_p], ctypes.c_size_t
_gst.gst_buffer_peek_memory.argtypes = [ctypes.c_void_p, ctypes.c_uint]
_gst.gst_buffer_peek_memory.restype = ctypes.c_void_p
_gst.gst_buffer_extract.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
_gst.gst_buffer_extract.restype = ctypes.c_size_t
_gst.gst_memory_is_type.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

_PITCH_LINEAR = 0
_CUDA_MEMORY = (0, 1, 2, 3)  # NvBufSurfaceMemType: default, pinned, device, unified
_SYSTEM_MEMORY = 6

_TEN_BIT = (29, 37, 38, 39, 40)  # P010, in any colour space

# NvBufSurfaceColorFormat -> our format. The colour space is that of the caps, which say what the stream says.
_FORMATS = {
    1: "GRAY8",
    2: "I420",
    4: "I420",  # full range
    6: "NV12",
    7: "NV12",  # full range
    19: "RGBA",
    20: "BGRA",
    23: "RGBx",
    24: "BGRx",
    27: "RGB",
    28: "BGR",
    **dict.fromkeys(_TEN_BIT, "NV12"),  # of which the upper bytes are read
    31: "I420",  # BT.709
    32: "I420",  # BT.709, full range
    33: "NV12",  # BT.709
    34: "NV12",  # BT.709, full range
    35: "I420",  # BT.2020
    36: "NV12",  # BT.2020
}

# NV12 in other colour spaces -> in BT.709: of 8 bit, and of 10 bit
_AS_BT709 = {6: 33, 7: 33, 34: 33, 36: 33, 29: 38, 37: 38, 39: 38, 40: 38}


class _Planes(ctypes.Structure):
    """NvBufSurfacePlaneParams."""

    _fields_ = (
        ("count", ctypes.c_uint32),
        ("width", ctypes.c_uint32 * 4),
        ("height", ctypes.c_uint32 * 4),
        ("pitch", ctypes.c_uint32 * 4),
        ("offset", ctypes.c_uint32 * 4),
        ("size", ctypes.c_uint32 * 4),
        ("bytes_per_pixel", ctypes.c_uint32 * 4),
        ("reserved", ctypes.c_uint64 * 16),
    )


class _Frame(ctypes.Structure):
    """NvBufSurfaceParams: one frame."""

    _fields_ = (
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("pitch", ctypes.c_uint32),
        ("color_format", ctypes.c_int32),
        ("layout", ctypes.c_int32),
        ("descriptor", ctypes.c_uint64),
        ("size", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("planes", _Planes),
        ("mapped", ctypes.c_uint64 * 11),
        ("extra", ctypes.c_void_p),
        ("cuda_buffer", ctypes.c_void_p),
        ("reserved", ctypes.c_uint64 * 4),
    )


_FRAME_BYTES = ctypes.sizeof(_Frame)


class _Surface(ctypes.Structure):
    """NvBufSurface: a batch of frames."""

    _fields_ = (
        ("gpu", ctypes.c_uint32),
        ("capacity", ctypes.c_uint32),
        ("filled", ctypes.c_uint32),
        ("contiguous", ctypes.c_bool),
        ("memory_type", ctypes.c_int32),
        ("frames", ctypes.POINTER(_Frame)),
        ("imported", ctypes.c_bool),
        ("reserved", ctypes.c_void_p * 4),
    )


_Places = tuple[int, int, int, int, int, int, int]  # the first of `DevicePlanes`


class _Stored(NamedTuple):
    """What we need of a `_Frame`.

    Attributes:
        memory: address of the first byte that counts, and pitch, of each plane.
        sample: bytes from one sample to the next; of two the upper one counts.
        places: of a 4:2:0 picture, as it is stored.
    """

    format: str
    width: int
    height: int
    memory: tuple[tuple[int, int], ...]
    sample: int
    places: _Places | None


@functools.lru_cache(1024)  # decoders have few dozens of frames each, which come again and again
def _stored(frame_bytes: bytes) -> _Stored:
    frame = _Frame.from_buffer_copy(frame_bytes)
    name = _FORMATS.get(frame.color_format)
    if name is None or frame.layout != _PITCH_LINEAR:
        raise ElementError(
            f"an NVMM frame of NvBufSurface colour format {frame.color_format}, layout {frame.layout}, cannot be "
            "read; put NVIDIA's nvvideoconvert and video/x-raw(memory:NVMM),format=RGB before the stream mux"
        )
    sample = 2 if frame.color_format in _TEN_BIT else 1
    base, planes = int(frame.data or 0) + sample - 1, frame.planes
    memory = tuple((base + planes.offset[i], int(planes.pitch[i])) for i in range(planes.count))
    places = _places(memory, sample) if name in PLANAR else None
    return _Stored(name, frame.width, frame.height, memory, sample, places)


def _places(memory: tuple[tuple[int, int], ...], sample: int) -> _Places:
    (luma, pitch), (blue, chroma_pitch), *rest = memory
    red, step = (rest[0][0], sample) if rest else (blue + sample, 2 * sample)
    return luma, blue, red, pitch, chroma_pitch, sample, step


class NvmmPicture:
    """One frame in GPU memory: as `elements.portable.picture.Picture`, but the planes are downloaded when asked for.

    Attributes:
        format: as decoded.
        width, height: of the upright picture.
        color: what the caps say, or mean by saying nothing.
    """

    source = None  # no system memory that an output could share

    def __init__(self, stored: _Stored, surface: _Surface, buffer: Gst.Buffer, layout: VideoLayout) -> None:
        memory_type = surface.memory_type
        if memory_type not in (*_CUDA_MEMORY, _SYSTEM_MEMORY):
            raise ElementError(f"an NVMM frame lies in memory of type {memory_type}, which only DeepStream reads")
        self.format, self.color = stored.format, layout.color
        self.width, self.height = layout.width, layout.height
        self._orientation = layout.orientation
        self._buffer = buffer  # the pixels live as long as it does
        self._device: int = surface.gpu
        self._on_host = memory_type == _SYSTEM_MEMORY
        self._memory, self._sample, self._places = stored.memory, stored.sample, stored.places
        self._lock = threading.Lock()
        self._downloaded: Picture | None = None
        self._made: DeviceArray | None = None

    @property
    def whole(self) -> Rect:
        return (0, 0, self.width, self.height)

    @property
    def device_planes(self) -> DevicePlanes | None:
        """A 4:2:0 picture as it lies in GPU memory, not copied; ``None`` for other formats and for host memory."""
        if self._places is None or self._on_host:
            return None
        places = self._places if self._orientation is UPRIGHT else self._upright(*self._places)
        return DevicePlanes(*places, self.width, self.height, self.color.to_rgb_fixed, self._device, self._buffer)

    def _upright(
        self, luma: int, blue: int, red: int, pitch: int, chroma_pitch: int, luma_step: int, step: int
    ) -> _Places:
        """The places of the planes as they are read upright."""
        walk, chroma = self._orientation.walk, ((self.width + 1) // 2, (self.height + 1) // 2)
        luma, pitch, luma_step = walk(luma, pitch, luma_step, self.width, self.height)
        red, _, _ = walk(red, chroma_pitch, step, *chroma)
        blue, chroma_pitch, step = walk(blue, chroma_pitch, step, *chroma)
        return luma, blue, red, pitch, chroma_pitch, luma_step, step

    @property
    def tensor(self) -> DeviceArray | None:
        """The pixels as an (H, W, 3) uint8 RGB array on the GPU.

        RGB is not copied, and its rows lie a pitch apart. Of 4:2:0 it is made when it is first asked for. ``None`` for
        other formats and for host memory.

        Raises:
            ElementError: if RGB has to be made and torch is not installed or sees no GPU.
        """
        if self.format == "RGB" and not self._on_host and self._orientation is UPRIGHT:
            address, pitch = self._memory[0]
            return DeviceArray(address, (self.height, self.width, 3), (pitch, 3, 1), self._device, self._buffer)
        with self._lock:
            if self._made is None and (planes := self.device_planes) is not None:
                self._made = rgb_of(planes)
            return self._made

    @property
    def planes(self) -> tuple[Image, ...]:
        """In host memory."""
        return self._on_the_host().planes

    def rgb(self, region: Rect, width: int, height: int, out: Image | None = None) -> Image:
        """See `Picture.rgb`."""
        return self._on_the_host().rgb(region, width, height, out)

    def _on_the_host(self) -> Picture:
        """The whole frame, downloaded once."""
        with self._lock:
            if self._downloaded is None:
                shapes = plane_shapes(self.format, *self._orientation.size(self.width, self.height))
                places = zip(self._memory, shapes, strict=True)
                stored = [self._plane(address, pitch, shape) for (address, pitch), shape in places]
                planes = [np.ascontiguousarray(self._orientation.upright(plane)) for plane in stored]
                for plane in planes:
                    plane.flags.writeable = False
                self._downloaded = Picture(self.format, tuple(planes), self.color)
            return self._downloaded

    def _plane(self, address: int, pitch: int, shape: tuple[int, ...]) -> Image:
        """One plane, as it is stored."""
        last = self._sample - 1
        samples: Image = np.empty((*shape, self._sample), np.uint8)
        self._copy(address - last, pitch, samples)
        return samples[..., last]

    def _copy(self, address: int, pitch: int, plane: Image) -> None:
        if not self._on_host:
            cuda.download(address, pitch, plane, self._device)
            return
        for row, target in enumerate(plane):
            ctypes.memmove(target.ctypes.data, address + row * pitch, target.nbytes)


def holds_nvmm(buffer: Gst.Buffer) -> bool:
    """Whether the buffer is NVIDIA's, not a stand-in's system memory under the same caps."""
    address = hash(buffer)
    return bool(
        _gst.gst_buffer_get_size(address) == SURFACE_SIZE
        and not _gst.gst_memory_is_type(_gst.gst_buffer_peek_memory(address, 0), b"SystemMemory")
    )


def surface_in(buffer: Gst.Buffer) -> _Surface:
    """A copy of the buffer's ``NvBufSurface``, which points to the frames of the buffer itself."""
    surface = _Surface()
    _gst.gst_buffer_extract(hash(buffer), 0, ctypes.byref(surface), SURFACE_SIZE)
    return surface


def nvmm_picture(buffer: Gst.Buffer, layout: VideoLayout) -> NvmmPicture:
    """The one frame of an NVMM buffer; the buffer is kept as long as the picture.

    Raises:
        ElementError: if the buffer holds no frame or several, or one of a kind that cannot be read.
    """
    surface = surface_in(buffer)
    if surface.filled != 1 or not surface.frames:
        raise ElementError(f"an NVMM buffer holds {surface.filled} frames; the stream mux takes one frame a buffer")
    stored = _stored(ctypes.string_at(surface.frames, _FRAME_BYTES))
    width, height = layout.orientation.size(stored.width, stored.height)
    if (width, height) != (layout.width, layout.height):
        raise ElementError(f"an NVMM frame is {width}x{height}, its caps say {layout.width}x{layout.height}")
    return NvmmPicture(stored, surface, buffer, layout)


def mark_as_bt709(buffer: Gst.Buffer) -> bool:
    """Declare an NV12 frame, of 8 or 10 bit, to be in BT.709 whatever it is in. Whether it was declared otherwise."""
    frame = surface_in(buffer).frames[0]
    marked = _AS_BT709.get(frame.color_format)
    if marked is None:
        return False
    frame.color_format = marked
    return True

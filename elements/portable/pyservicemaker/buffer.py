"""pyservicemaker's Buffer: a Gst.Buffer with its batch metadata and pictures."""

from __future__ import annotations

from typing import Any

from elements.base import ElementError, Gst
from elements.portable.carrier import batch_of, own_batch_at
from elements.portable.pyservicemaker.metadata import BatchMetadata
from elements.portable.pyservicemaker.tensor import Tensor

CLOCK_TIME_NONE = 2**64 - 1


class Buffer:
    """A media buffer.

    Args:
        source: nothing for an empty buffer (end of stream for a `Feeder`); a Gst.Buffer, which is referenced; or a
            list, tuple, bytearray or memoryview of ints from 0 to 255.

    Raises:
        TypeError: for anything else. NVIDIA's module makes an empty buffer of it, which ends a stream without a word.
    """

    __slots__ = ("_buffer",)

    def __init__(self, source: Any = None, /) -> None:
        if source is None or isinstance(source, Gst.Buffer):
            self._buffer: Gst.Buffer | None = source
        else:
            data = _bytes(source)
            self._buffer = Gst.Buffer.new_wrapped(data) if data else Gst.Buffer.new()  # wrapping no bytes crashes

    @property
    def batch_size(self) -> int:
        """Frames that the batch can hold; 1 without batch metadata; 0 if empty."""
        if self._buffer is None:
            return 0
        batch = batch_of(self._buffer)
        return 1 if batch is None else max(batch.max_frames, len(batch.frames))

    @property
    def batch_meta(self) -> BatchMetadata:
        """The batch's metadata, a null handle if there is none."""
        return BatchMetadata(None if self._buffer is None else own_batch_at(hash(self._buffer)))

    @property
    def timestamp(self) -> int:
        """PTS in nanoseconds, 2^64 - 1 if there is none."""
        return CLOCK_TIME_NONE if self._buffer is None else int(self._buffer.pts)

    def get_chunk_id(self, index: int) -> int:
        """0: only nvdsdynamicsrcbin numbers its files."""
        return 0

    def extract(self, batch_id: int) -> Tensor:
        """The picture of one frame: (height, width, 3) uint8 RGB, strides (row stride, 3, 1).

        It lies in GPU memory if the frame was decoded there and nobody painted on it since, else in host memory.

        As in NVIDIA's module only RGB pictures can be had (put nvvideoconvert and an RGB capsfilter in front), and a
        failure gives a void tensor. The tensor keeps the picture alive; it must not be written to.
        """
        batch = None if self._buffer is None else batch_of(self._buffer)
        if batch is None:
            return Tensor._void("the buffer holds no batch of pictures")
        if not 0 <= batch_id < len(batch.surfaces):
            return Tensor._void(f"batch_id {batch_id} is out of range: the batch has {len(batch.surfaces)} pictures")
        surface = batch.surfaces[batch_id]
        if surface.format != "RGB":
            return Tensor._void(f"the picture is {surface.format}; extract needs nvvideoconvert and RGB in front")
        try:
            on_gpu = surface.device_rgb()
        except (ElementError, RuntimeError) as error:  # as every failure of this method
            return Tensor._void(str(error))
        return Tensor._of(surface.rgb() if on_gpu is None else on_gpu)

    def __repr__(self) -> str:
        return f"Buffer(batch_size={self.batch_size}, timestamp={self.timestamp})"


def _bytes(source: Any) -> bytes:
    if isinstance(source, bytearray | memoryview):
        return bytes(source)
    if isinstance(source, list | tuple) and all(type(value) is int and 0 <= value <= 255 for value in source):
        return bytes(source)
    raise TypeError(
        f"Buffer({type(source).__name__}): a Gst.Buffer, or a list, tuple, bytearray or memoryview of ints "
        "from 0 to 255 is needed"
    )

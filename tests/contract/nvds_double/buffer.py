"""pyservicemaker's Buffer and Tensor over a Gst.Buffer that holds an NvBufSurface in system memory."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from elements.base import Gst
from tests.contract.nvds_double.metadata import BatchMetadata, batch_handle
from tests.contract.nvds_double.native import Crash, lib

RGB = 27  # NVBUF_COLOR_FORMAT_RGB
SYSTEM = 6  # NVBUF_MEM_SYSTEM; the real `extract` takes GPU memory only
SURFACE_SIZE, PARAMS_SIZE = 72, 416


class Tensor:
    """A tensor, or a void one, whose attributes the native module does not survive."""

    def __init__(self) -> None:
        raise TypeError("Tensor: No constructor defined!")

    @classmethod
    def _of(cls, array: np.ndarray | None) -> Tensor:
        made = cls.__new__(cls)
        made._array = array
        return made

    def _data(self) -> np.ndarray:
        if self._array is None:
            raise Crash("void tensor")
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data().shape

    @property
    def device_type(self) -> str:
        return "NONE" if self._array is None else "CPU"

    def __bool__(self) -> bool:
        return self._array is not None

    def __dlpack_device__(self) -> tuple[int, int]:
        self._data()
        return 1, 0  # the native module says CUDA even here, which no host consumer takes

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        return self._data().__dlpack__()


class Buffer:
    """Holds a Gst.Buffer. Metadata and tensors do not keep it alive."""

    def __init__(self, gst_buffer: Gst.Buffer) -> None:
        assert isinstance(gst_buffer, Gst.Buffer)
        self._buffer = gst_buffer

    @property
    def batch_meta(self) -> BatchMetadata:
        return batch_handle(lib.gst_buffer_get_nvds_batch_meta(hash(self._buffer)))

    def extract(self, batch_id: int) -> Tensor:
        surface = self._buffer.extract_dup(0, SURFACE_SIZE)
        (params,) = struct.unpack_from("<Q", surface, 24)
        image = ctypes.string_at(params + PARAMS_SIZE * batch_id, PARAMS_SIZE)  # no check of the range, either
        width, height, pitch, color = struct.unpack_from("<IIIi", image, 0)
        (pixels,) = struct.unpack_from("<Q", image, 40)
        if color != RGB:
            return Tensor._of(None)
        memory = (ctypes.c_uint8 * (pitch * height)).from_address(pixels)
        return Tensor._of(np.ndarray((height, width, 3), np.uint8, memory, 0, (pitch, 3, 1)))

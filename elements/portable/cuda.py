"""The few calls of NVIDIA's driver library that frames in GPU memory need, through ctypes: no CUDA toolkit, no torch.

Every function works in the device's primary context, the one that torch and the CUDA runtime use, and leaves the
calling thread's current context as it was. Copies wait until they are done and free the GIL.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LIBRARY = "libcuda.so.1"
_HOST, _DEVICE = 1, 2  # CUmemorytype


class CudaError(RuntimeError):
    """A call of the driver failed, or there is no driver."""


class _Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D of cuda.h."""

    _fields_ = (
        ("src_x", ctypes.c_size_t),
        ("src_y", ctypes.c_size_t),
        ("src_type", ctypes.c_int),
        ("src_host", ctypes.c_void_p),
        ("src_device", ctypes.c_void_p),
        ("src_array", ctypes.c_void_p),
        ("src_pitch", ctypes.c_size_t),
        ("dst_x", ctypes.c_size_t),
        ("dst_y", ctypes.c_size_t),
        ("dst_type", ctypes.c_int),
        ("dst_host", ctypes.c_void_p),
        ("dst_device", ctypes.c_void_p),
        ("dst_array", ctypes.c_void_p),
        ("dst_pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


@functools.cache
def device_count() -> int:
    """CUDA devices of this machine that the driver can open; 0 without a driver."""
    count = ctypes.c_int()
    try:
        _call("cuInit", 0)
        _call("cuDeviceGetCount", ctypes.byref(count))
    except CudaError:
        return 0
    return count.value


def download(pointer: int, pitch: int, out: NDArray[np.uint8], device: int = 0) -> None:
    """Copy rows of device memory, ``pitch`` bytes apart, into ``out``, an array whose rows are contiguous.

    Raises:
        CudaError: if the driver refuses.
    """
    height, width = out.shape[0], out[0].nbytes
    copy = _Copy2D(
        src_type=_DEVICE,
        src_device=pointer,
        src_pitch=pitch,
        dst_type=_HOST,
        dst_host=out.ctypes.data,
        dst_pitch=out.strides[0],
        width=width,
        height=height,
    )
    with _context(device):
        _call("cuMemcpy2D_v2", ctypes.byref(copy))


class DeviceCopy:
    """Device memory of its own, holding a copy of ``height`` rows of ``width`` bytes; freed with the object.

    Attributes:
        pointer: device address; rows lie ``width`` bytes apart.

    Raises:
        CudaError: if there is not enough memory.
    """

    def __init__(self, source: int, pitch: int, width: int, height: int, device: int) -> None:
        self._device = device
        address = ctypes.c_void_p()
        with _context(device):
            _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(width * height))
            self.pointer = int(address.value or 0)
            copy = _Copy2D(
                src_type=_DEVICE,
                src_device=source,
                src_pitch=pitch,
                dst_type=_DEVICE,
                dst_device=self.pointer,
                dst_pitch=width,
                width=width,
                height=height,
            )
            _call("cuMemcpy2D_v2", ctypes.byref(copy))

    def __del__(self) -> None:
        if "pointer" in self.__dict__:
            with contextlib.suppress(CudaError), _context(self._device):
                _call("cuMemFree_v2", ctypes.c_void_p(self.pointer))


@contextlib.contextmanager
def _context(device: int) -> Iterator[None]:
    _call("cuCtxPushCurrent_v2", _primary_context(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@functools.cache
def _primary_context(device: int) -> ctypes.c_void_p:
    """The device's primary context, held until the process ends."""
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    _call("cuInit", 0)
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    return context


@functools.cache
def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise CudaError(f"no NVIDIA driver: {error}") from None


def _call(name: str, *arguments: Any) -> None:
    function = getattr(_driver(), name, None)
    if function is None:
        raise CudaError(f"the NVIDIA driver's library lacks {name}: it is too old, or not the driver's")
    code = function(*arguments)
    if code:
        raise CudaError(f"{name} failed: CUDA error {code}{_text_of(code)}")


def _text_of(code: int) -> str:
    text = ctypes.c_char_p()
    describe = getattr(_driver(), "cuGetErrorString", None)
    if describe is None or describe(code, ctypes.byref(text)) or not text.value:
        return ""
    return f" ({text.value.decode()})"

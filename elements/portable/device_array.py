"""Arrays in GPU memory, handed to torch, CuPy and others without a copy: DLPack and ``__cuda_array_interface__``."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import Any

import numpy as np

from elements.portable import cuda

_CUDA = 2  # kDLCUDA
_UINT, _BITS = 1, 8  # kDLUInt
_NAME = b"dltensor"


class DeviceArray:
    """A uint8 array over GPU memory that ``owner`` keeps alive; strides are in bytes, as NumPy's.

    Whoever takes it through DLPack or ``__cuda_array_interface__`` keeps the owner alive too.
    """

    __slots__ = ("device", "owner", "pointer", "shape", "strides")
    dtype = np.dtype(np.uint8)
    itemsize = 1

    def __init__(
        self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], device: int = 0, owner: Any = None
    ) -> None:
        self.pointer, self.shape, self.strides, self.device, self.owner = pointer, shape, strides, device, owner

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements, which are bytes."""
        return math.prod(self.shape)

    def copy(self) -> DeviceArray:
        """A packed copy in memory of its own; only the outermost axis may have padding.

        Raises:
            RuntimeError: for other strides, or if the GPU has no memory left.
        """
        row = math.prod(self.shape[1:])
        packed = _packed_strides(self.shape)
        if self.strides[1:] != packed[1:]:
            raise RuntimeError("Misaligned strides for cloning the tensor")
        memory = cuda.DeviceCopy(self.pointer, self.strides[0], row, self.shape[0], self.device)
        return DeviceArray(memory.pointer, self.shape, packed, self.device, memory)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": "|u1",
            "data": (self.pointer, False),
            "version": 3,
            "stream": None,  # the pixels are complete
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device

    def __dlpack__(self, stream: Any = None, **_options: Any) -> Any:
        """A legacy DLPack capsule. ``stream`` is not looked at: the pixels are complete."""
        return _capsule(self)


def _packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


# --- DLPack: the structures of dlpack.h ------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype_code", ctypes.c_uint8),
        ("dtype_bits", ctypes.c_uint8),
        ("dtype_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_lent: dict[int, tuple[Any, ...]] = {}  # by number: what a consumer's capsule needs, until it calls the deleter
_numbers = itertools.count(1)

# prototypes of our own: others may have changed those of ctypes.pythonapi's functions
_python = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _python))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))


def _delete(address: int) -> None:
    _lent.pop(_Managed.from_address(address).context or 0, None)


def _drop_capsule(capsule: int) -> None:
    """A capsule that nobody consumed still has its first name, and its array is ours to release."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_Managed.from_address(_pointer_of(capsule, _NAME)).context or 0, None)


# they take the GIL: consumers may let go on any thread
_deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)
_destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_drop_capsule)


def _capsule(array: DeviceArray) -> Any:
    axes = ctypes.c_int64 * array.ndim
    shape, strides = axes(*array.shape), axes(*array.strides)
    number = next(_numbers)
    tensor = _DLTensor(array.pointer, _CUDA, array.device, array.ndim, _UINT, _BITS, 1, shape, strides, 0)
    managed = _Managed(tensor, number, ctypes.cast(_deleter, ctypes.c_void_p))
    _lent[number] = (managed, shape, strides, array)
    return _new_capsule(ctypes.addressof(managed), _NAME, ctypes.cast(_destructor, ctypes.c_void_p))

"""Tensors: host memory, or GPU memory of frames that were decoded there, with DLPack."""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elements.portable.device_array import DeviceArray

if TYPE_CHECKING:
    from elements.portable.pyservicemaker.buffer import Buffer

log = logging.getLogger("gstorch.pyservicemaker")

_CPU = 1  # kDLCPU of dlpack.h


class ColorFormat(IntEnum):
    """Colour formats that `Tensor.wrap` names."""

    RGB = 0
    RGBA = 1
    I420 = 2


class Tensor:
    """An n-dimensional array, or nothing ("void") if it could not be made.

    NVIDIA's class says CUDA in ``__dlpack_device__`` even for host memory; this one says CPU, so that NumPy and torch
    can read it. Reading a void tensor crashes NVIDIA's module and raises RuntimeError here.
    """

    __slots__ = ("_array", "_reason")
    _array: NDArray[Any] | DeviceArray | None
    _reason: str

    def __init__(self) -> None:
        raise TypeError("Tensor: No constructor defined!")

    @classmethod
    def _of(cls, array: NDArray[Any] | DeviceArray) -> Tensor:
        tensor = cls.__new__(cls)
        tensor._array, tensor._reason = array, ""
        return tensor

    @classmethod
    def _void(cls, reason: str) -> Tensor:
        log.warning("void tensor: %s", reason)
        tensor = cls.__new__(cls)
        tensor._array, tensor._reason = None, reason
        return tensor

    def _data(self) -> NDArray[Any] | DeviceArray:
        if self._array is None:
            raise RuntimeError(f"void tensor: {self._reason}")
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._data().shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Step of each axis, in elements."""
        array = self._data()
        return tuple(step // array.itemsize for step in array.strides)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._data().dtype

    @property
    def device_type(self) -> str:
        """``"GPU"``, ``"CPU"``, or ``"NONE"`` for a void tensor."""
        if self._array is None:
            return "NONE"
        return "GPU" if isinstance(self._array, DeviceArray) else "CPU"

    def size(self) -> int:
        """Bytes of the elements; 0 for a void tensor."""
        return 0 if self._array is None else self._array.size * self._array.itemsize

    def __bool__(self) -> bool:
        return self._array is not None

    def clone(self) -> Tensor:
        """A packed copy that owns its memory; void stays void.

        Raises:
            RuntimeError: if more than the outermost axis has padding, or the GPU has no memory left.
        """
        if self._array is None:
            return Tensor._void(self._reason)
        if isinstance(self._array, DeviceArray):
            return Tensor._of(self._array.copy())
        if self._array.ndim > 1 and not self._array[0].flags.c_contiguous:
            raise RuntimeError("Misaligned strides for cloning the tensor")
        return Tensor._of(self._array.copy(order="C"))

    def to_gpu(self, device_id: int) -> Tensor:
        """This tensor, if it lies in GPU memory; this runtime uploads none.

        Raises:
            RuntimeError: for a host tensor.
        """
        if isinstance(self._array, DeviceArray):
            return self
        raise RuntimeError(
            f"to_gpu({device_id}): the portable runtime has host tensors only, but for frames decoded on a GPU"
        )

    def wrap(self, color_format: ColorFormat) -> Buffer:
        """The bytes of a one-dimensional 8 bit tensor as a buffer; as in NVIDIA's module the format is not looked at.

        Raises:
            RuntimeError: for any other tensor; this runtime makes no NVMM buffers.
        """
        from elements.portable.pyservicemaker.buffer import Buffer

        if not isinstance(self._array, np.ndarray) or self._array.ndim != 1 or self._array.itemsize != 1:
            raise RuntimeError("Failure in wrapping a tensor as a buffer")
        return Buffer(bytearray(self._array.tobytes()))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__() if isinstance(self._array, DeviceArray) else (_CPU, 0)

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        """A DLPack capsule; ``stream`` is ignored.

        Consumers that don't know DLPack's read-only flag get a copy of memory that must not be written.
        """
        array = self._data()
        if isinstance(array, DeviceArray):
            return array.__dlpack__(stream)
        if not array.flags.writeable and not options.get("max_version"):
            array = array.copy()
        return array.__dlpack__(**options)


def as_tensor(source: Any, format: str) -> Tensor:
    """A tensor over the memory of anything with DLPack (void without); ``format`` names the layout, such as "HWC".

    Raises:
        RuntimeError: if the memory is not the host's.
    """
    if not hasattr(source, "__dlpack_device__"):
        return Tensor._void(f"{type(source).__name__} has no __dlpack_device__")
    if source.__dlpack_device__()[0] != _CPU:
        raise RuntimeError("Unsupported Tensor Device Type")
    return Tensor._of(np.from_dlpack(source))

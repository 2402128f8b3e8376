"""From a pyservicemaker handle to the C struct behind it.

pyservicemaker does not tell addresses, but its handles are objects of pybind11, which keeps the pointer to the C++
value right behind the object's header, and the value is ``class Metadata { virtual ~Metadata(); void* data_; }`` of
metadata.hpp: a table pointer, then the struct's address. The first handle of each class is checked without trust.
"""

from __future__ import annotations

import struct
from ctypes import c_uint64, c_void_p, sizeof
from typing import Any

from elements.metadata.nvds.layout import OBJECT_META, BaseMeta, ObjectMeta
from elements.metadata.nvds.memory import peek, peek_pointer

_VALUE = object.__basicsize__  # where pybind11 keeps the pointer to the C++ value
_DATA = sizeof(c_void_p)  # of Metadata, after the table pointer

_NULL = "null handle: the buffer has no batch metadata, or the iteration has moved on"

_checked: dict[type, str] = {}  # class -> what is wrong with it


class HandleError(RuntimeError):
    """A handle from which no struct can be reached."""


def struct_of(handle: Any) -> int:
    """The address of the NvDs…Meta that a BatchMetadata, FrameMetadata or ObjectMetadata stands for.

    Raises:
        HandleError: for a null handle, or if pyservicemaker keeps its data in another way.
    """
    problem = handle_problem(handle)
    if problem:
        raise HandleError(problem)
    address = c_uint64.from_address(c_uint64.from_address(id(handle) + _VALUE).value + _DATA).value
    if not address:
        raise HandleError(f"{type(handle).__name__}: {_NULL}")
    return address


def handle_problem(handle: Any) -> str:
    """Why no struct can be reached from handles of this class; empty if it can.

    Raises:
        HandleError: if it cannot be told because this one is null.
    """
    kind = type(handle)
    if kind not in _checked:
        problem = _problem(handle)
        _checked[kind] = f"{kind.__name__}: {problem}" if problem else ""
    return _checked[kind]


def _problem(handle: Any) -> str:
    value = peek_pointer(id(handle) + _VALUE)
    data = peek(value + _DATA, sizeof(c_void_p)) if value else None
    if data is not None and not any(data):
        raise HandleError(f"{type(handle).__name__}: {_NULL}")
    address = int.from_bytes(data or b"", "little")
    base = peek(address, sizeof(BaseMeta))
    if base is None:
        return "there is no metadata struct where it should be"
    meta = BaseMeta.from_buffer_copy(base)
    batch = peek(meta.batch_meta or 0, sizeof(BaseMeta))
    if batch is None or BaseMeta.from_buffer_copy(batch).batch_meta != meta.batch_meta:
        return "what it points to does not belong to a batch"
    return _object_problem(handle, address) if meta.meta_type == OBJECT_META else ""


def _object_problem(handle: Any, address: int) -> str:
    """Whether the public attributes agree with the struct."""
    rect = handle.rect_params  # kept while it is looked at
    if peek_pointer(id(rect) + _VALUE) != address + ObjectMeta.rect.offset:
        return "rect_params is not part of the object's struct"
    image = peek(address + ObjectMeta.object_id.offset, 8)
    if image is None or struct.unpack("<Q", image)[0] != handle.object_id:
        return "object_id is not where it should be"
    return ""

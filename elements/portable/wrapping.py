"""PyGObject's objects of addresses, for buffers that come from GStreamer in dozens per batch.

Every call through PyGObject hands the interpreter to another thread and takes it back, so that a pipeline of 16 sources
would ask for it 32 times per batch, only to take its frames. Functions called through ``ctypes.PyDLL`` do not, but give
addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import gi

from elements.base import Gst

_Time = ctypes.c_uint64
_BOXED_NEW = 17  # place of boxed_new in _PyGObject_Functions of pygobject.h, whose members never move


class BufferTimes(ctypes.Structure):
    """The times of a GstBuffer in nanoseconds: gstbuffer.h, on 64-bit machines."""

    _fields_ = (("before", ctypes.c_char * 72), ("pts", _Time), ("dts", _Time), ("duration", _Time))


def _boxed_new() -> Callable[[int, int, bool, bool], Any]:
    """PyGObject's ``pyg_boxed_new(type, address, copy, own)``, from the table that it offers to other C modules."""
    opener = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = opener(("PyCapsule_GetPointer", ctypes.pythonapi))(gi._gobject._PyGObject_API, b"gobject._PyGObject_API")
    function = (ctypes.c_size_t * (_BOXED_NEW + 1)).from_address(table)[_BOXED_NEW]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(function)


_new = _boxed_new()
_BUFFER, _CAPS = hash(Gst.Buffer.__gtype__), hash(Gst.Caps.__gtype__)


def buffer_at(address: int) -> Gst.Buffer:
    """The buffer at ``address``, with a reference of its own."""
    return _new(_BUFFER, address, True, True)


def caps_at(address: int) -> Gst.Caps:
    """The caps at ``address``, with a reference of their own."""
    return _new(_CAPS, address, True, True)


def buffer_times(address: int) -> BufferTimes:
    """The times of the buffer at ``address``, to read and write."""
    return BufferTimes.from_address(address)

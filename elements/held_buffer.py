"""A buffer kept beyond the call that brought it, and pushed later."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from elements.base import Gst

_quick = ctypes.PyDLL("libgstreamer-1.0.so.0")
_blocking = ctypes.CDLL("libgstreamer-1.0.so.0")  # frees the GIL: a push can take any time


def _function(library: ctypes.CDLL, name: str, result: type | None, *arguments: type) -> Callable[..., Any]:
    function: Any = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function  # type: ignore[no-any-return]


_ref = _function(_quick, "gst_mini_object_ref", ctypes.c_void_p, ctypes.c_void_p)
_unref = _function(_quick, "gst_mini_object_unref", None, ctypes.c_void_p)
_push = _function(_blocking, "gst_pad_push", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class HeldBuffer:
    """An argument of a vfunc, which is borrowed, with a reference of its own. Ends with either `push` or `release`.

    The next element finds the buffer writable if nobody else has a reference by then. PyGObject's wrapper may have one,
    so it goes before the push.

    Attributes:
        buffer: the buffer; gone after `push` and `release`.
    """

    __slots__ = ("_address", "buffer")

    def __init__(self, buffer: Gst.Buffer) -> None:
        self._address: int = _ref(hash(buffer))
        self.buffer = buffer

    def push(self, pad: Gst.Pad) -> Gst.FlowReturn:
        """Push it."""
        del self.buffer
        return Gst.FlowReturn(_push(hash(pad), self._address))

    def release(self) -> None:
        """Do not push it."""
        del self.buffer
        _unref(self._address)

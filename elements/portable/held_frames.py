"""The decoded frames of a batch, given back to their decoders all at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from elements.base import Gst

_quick = ctypes.PyDLL("libgstreamer-1.0.so.0")  # keeps the GIL: these take no time
_new_list, _insert, _ref = _quick.gst_buffer_list_new_sized, _quick.gst_buffer_list_insert, _quick.gst_mini_object_ref
_new_list.argtypes, _new_list.restype = [ctypes.c_uint], ctypes.c_void_p
_insert.argtypes, _insert.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p], None
_ref.argtypes, _ref.restype = [ctypes.c_void_p], ctypes.c_void_p
_free = ctypes.CDLL("libgstreamer-1.0.so.0").gst_mini_object_unref  # frees the GIL: pools have locks and wake threads
_free.argtypes, _free.restype = [ctypes.c_void_p], None


class HeldFrames:
    """Holds a reference of each of ``buffers``. When it goes, it must be the last to hold them.

    Otherwise each buffer would go back to its pool as Python frees its wrapper, with the interpreter locked: for dozens
    of sources the decoders then wait for Python and Python for the decoders.
    """

    __slots__ = ("_list",)

    def __init__(self, buffers: Sequence[Gst.Buffer]) -> None:
        self._list = _new_list(len(buffers))
        for buffer in buffers:
            _insert(self._list, -1, _ref(hash(buffer)))

    def __del__(self) -> None:
        _free(self._list)

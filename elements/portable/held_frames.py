"""The decoded frames of a batch, given back to their decoders all at once."""

from __future__ import annotations

import ctypes

from elements.base import Gst

_quick = ctypes.PyDLL("libgstreamer-1.0.so.0")  # keeps the GIL: these take no time
_quick.gst_buffer_list_new_sized.argtypes, _quick.gst_buffer_list_new_sized.restype = [ctypes.c_uint], ctypes.c_void_p
_quick.gst_buffer_list_insert.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
_quick.gst_mini_object_ref.argtypes, _quick.gst_mini_object_ref.restype = [ctypes.c_void_p], ctypes.c_void_p
_free = ctypes.CDLL("libgstreamer-1.0.so.0").gst_mini_object_unref  # frees the GIL: pools have locks and wake threads
_free.argtypes, _free.restype = [ctypes.c_void_p], None


class HeldFrames:
    """Holds a reference of each buffer that is added. When it goes, it must be the last to hold them.

    Otherwise each buffer would go back to its pool as Python frees its wrapper, with the interpreter locked: for dozens
    of sources the decoders then wait for Python and Python for the decoders.
    """

    __slots__ = ("_list",)

    def __init__(self, count: int) -> None:
        self._list = _quick.gst_buffer_list_new_sized(count)

    def add(self, buffer: Gst.Buffer) -> None:
        """Hold a buffer."""
        _quick.gst_buffer_list_insert(self._list, -1, _quick.gst_mini_object_ref(hash(buffer)))

    def __del__(self) -> None:
        _free(self._list)

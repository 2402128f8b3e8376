"""Python's state of the threads that carry batches, kept as long as they run.

A thread of GStreamer's gets a state when it calls into Python, and loses it when the call returns: for two calls per
batch memory is mapped and unmapped twice, which takes a fifth of the time of a thread that hands batches to a model.
"""

from __future__ import annotations

import ctypes
import threading

from elements.base import Gst

_LOCK_STAYS = 0  # PyGILState_LOCKED: PyGObject, which called us, lets the interpreter go
_kept = threading.local()  # .state: whether this thread's is


def on_stream_status(_bus: Gst.Bus, message: Gst.Message, pipeline: Gst.Pipeline) -> None:
    """Handler of ``sync-message::stream-status``, which comes from a streaming thread as it begins and ends.

    Threads inside of bins, which decode, are left alone: they are many, and seldom run Python.
    """
    kind, owner = message.parse_stream_status()
    if kind == Gst.StreamStatusType.ENTER and owner.get_parent() is pipeline:
        ctypes.pythonapi.PyGILState_Ensure()
        _kept.state = True
    elif kind == Gst.StreamStatusType.LEAVE and getattr(_kept, "state", False):
        _kept.state = False
        ctypes.pythonapi.PyGILState_Release(_LOCK_STAYS)

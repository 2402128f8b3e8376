"""Where the frames of one mux pad wait: in GStreamer's appsink, so that no Python runs on the sources' threads.

With many sources a Python chain function for each frame costs more than everything else the mux does: dozens of threads
wait for one interpreter lock. The appsink belongs to no bin and has no bus, so that its states and messages concern
nobody; the mux's pad is a ghost of its pad.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import gi

from elements.base import Gst
from elements.portable.wrapping import buffer_at, caps_at

gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401 (gives appsinks their methods)

_gst, _glib = ctypes.PyDLL("libgstreamer-1.0.so.0"), ctypes.PyDLL("libglib-2.0.so.0")  # calls that do not block
_caps_of, _buffer_of, _unref = _gst.gst_sample_get_caps, _gst.gst_sample_get_buffer, _gst.gst_mini_object_unref
for _function in (_caps_of, _buffer_of):
    _function.argtypes, _function.restype = [ctypes.c_void_p], ctypes.c_void_p
_unref.argtypes, _unref.restype = [ctypes.c_void_p], None
_glib.g_ptr_array_new.restype = ctypes.c_void_p
_glib.g_ptr_array_add.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_glib.g_ptr_array_unref.argtypes = [ctypes.c_void_p]
_pull = ctypes.CDLL("libgstapp-1.0.so.0").gst_app_sink_try_pull_sample  # frees the interpreter's lock, as the next one
_pull.argtypes, _pull.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_void_p
_for_each = ctypes.CDLL("libglib-2.0.so.0").g_ptr_array_copy
_for_each.argtypes, _for_each.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_void_p


class Intake:
    """A queue of frames that blocks its source while it is full. `take` is for one thread.

    Args:
        length: frames that wait.

    Attributes:
        pad: what frames and events are sent to.
        caps: those of the frame that was taken last.
        caps_changed: whether they differ from the frame's before.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self.renew()

    def open(self) -> None:
        """Accept frames."""
        self._sink.set_state(Gst.State.PLAYING)

    def close(self) -> None:
        """Refuse frames, drop what waits, and let go who waits on either side."""
        self._sink.set_state(Gst.State.NULL)

    def renew(self) -> Gst.Pad:
        """Let go of the last frame, too, once it is closed and nobody pushes any more. The new pad.

        An appsink keeps the sample that was taken last as long as it lives, so another one takes its place.
        """
        self._sink = Gst.ElementFactory.make("appsink")
        for name, value in (("max-buffers", self._length), ("sync", False), ("async", False), ("qos", False)):
            self._sink.set_property(name, value)
        self._sink.set_property("enable-last-sample", False)
        self.pad: Gst.Pad = self._sink.get_static_pad("sink")
        self.caps: Gst.Caps | None = None
        self.caps_changed = False
        self._caps_address = 0
        return self.pad

    def take(self, wait: float) -> Gst.Buffer | None:
        """The oldest frame; ``None`` if none comes within ``wait`` seconds."""
        return self._frame_of(_pull(hash(self._sink), int(wait * Gst.SECOND)))

    def _frame_of(self, sample: int | None) -> Gst.Buffer | None:
        """Takes over the sample."""
        if not sample:
            return None
        address = _caps_of(sample)
        self.caps_changed = address != self._caps_address
        if self.caps_changed:
            self.caps, self._caps_address = caps_at(address), address
        buffer = buffer_at(_buffer_of(sample))
        _unref(sample)
        return buffer


class Intakes:
    """Looks into several intakes in one call that frees the interpreter's lock, for one thread."""

    def __init__(self) -> None:
        self._sinks: list[int] = []
        self._array: int = _glib.g_ptr_array_new()
        self._row = ctypes.c_void_p * 0  # of what is found

    def __del__(self) -> None:
        _glib.g_ptr_array_unref(self._array)

    def take(self, intakes: Sequence[Intake]) -> list[Gst.Buffer | None]:
        """The oldest frame of each, as far as one waits."""
        sinks = [hash(intake._sink) for intake in intakes]
        if sinks != self._sinks:  # seldom: most often all have a frame
            _glib.g_ptr_array_unref(self._array)
            self._array, self._sinks, self._row = _glib.g_ptr_array_new(), sinks, ctypes.c_void_p * len(sinks)
            for sink in sinks:
                _glib.g_ptr_array_add(self._array, sink)
        # GLib calls the function with each sink and 0, the time to wait, and makes an array of what it returns
        found = _for_each(self._array, _pull, 0)
        samples = self._row.from_address(ctypes.c_size_t.from_address(found).value)[:]  # GPtrArray's first member
        _glib.g_ptr_array_unref(found)
        return [intake._frame_of(sample) for intake, sample in zip(intakes, samples, strict=True)]

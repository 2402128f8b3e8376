"""Where the frames of one mux pad wait: in GStreamer's appsink, so that no Python runs on the sources' threads.

With many sources a Python chain function for each frame costs more than everything else the mux does: dozens of threads
wait for one interpreter lock. The appsink belongs to no bin and has no bus, so that its states and messages concern
nobody; the mux's pad is a ghost of its pad.
"""

from __future__ import annotations

import ctypes

import gi

from elements.base import Gst

gi.require_version("GstApp", "1.0")
from gi.repository import GstApp  # noqa: E402, F401 (gives appsinks their methods)

_gst = ctypes.PyDLL("libgstreamer-1.0.so.0")  # calls that do not block
_gst.gst_sample_get_caps.argtypes, _gst.gst_sample_get_caps.restype = [ctypes.c_void_p], ctypes.c_void_p


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

    def take(self, wait: float = 0.0) -> Gst.Buffer | None:
        """The oldest frame; ``None`` if none comes within ``wait`` seconds."""
        sample = self._sink.try_pull_sample(int(wait * Gst.SECOND))
        if sample is None:
            return None
        address = _gst.gst_sample_get_caps(hash(sample))
        self.caps_changed = address != self._caps_address
        if self.caps_changed:
            self.caps, self._caps_address = sample.get_caps(), address
        return sample.get_buffer()

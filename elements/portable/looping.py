"""Plays a file again when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

from elements.base import Gst

_WATCHED = Gst.PadProbeType.EVENT_DOWNSTREAM | Gst.PadProbeType.EVENT_FLUSH


class FileLoop:
    """Turns the end of a file into a seek to its start, on the src pad of the element that decodes it.

    The pad's offset grows by the played time, so running time keeps rising; an ``identity single-segment=true`` behind
    the pad turns that into rising timestamps. What follows sees neither the end of the stream nor the flush.
    """

    def __init__(self, pad: Gst.Pad, frames: Gst.Pad, fail: Callable[[str], None]) -> None:
        """``frames`` is a src pad behind ``pad`` that knows the position; ``fail`` gets the text of an error."""
        self._pad = pad
        self._frames = frames
        self._fail = fail
        self._played = 0
        self._ending = self._stopped = False
        self._rewinding = threading.Lock()
        pad.add_probe(_WATCHED, self._event)

    def end(self) -> None:
        """Let the next end of stream through."""
        self._ending = True

    def stop(self) -> None:
        """`end`, and wait for a seek that is on its way; none begins any more. For the time before pads are inactive.

        The end of a flush that meets an element which is being stopped would start the element's threads again.
        """
        self._ending = self._stopped = True
        with self._rewinding:
            pass

    def _event(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        kind = info.get_event().type
        if kind in (Gst.EventType.FLUSH_START, Gst.EventType.FLUSH_STOP):
            return Gst.PadProbeReturn.DROP
        if kind != Gst.EventType.EOS or self._ending:
            return Gst.PadProbeReturn.OK
        known, position = self._frames.query_position(Gst.Format.TIME)
        if not known or position <= 0:
            self._fail("cannot be repeated: it has no frames")
            return Gst.PadProbeReturn.OK
        self._played += position
        pad.set_offset(self._played)
        # A flushing seek waits for the streaming thread, which is this one.
        threading.Thread(target=self._rewind, name="file-loop", daemon=True).start()
        return Gst.PadProbeReturn.DROP

    def _rewind(self) -> None:
        start, no_stop = (Gst.SeekType.SET, 0), (Gst.SeekType.NONE, -1)
        seek = Gst.Event.new_seek(1.0, Gst.Format.TIME, Gst.SeekFlags.FLUSH, *start, *no_stop)
        with self._rewinding:
            if self._stopped:
                return
            sent = self._pad.send_event(seek)
        if not sent and not self._ending:
            self._fail("cannot be repeated: it cannot seek to its start")

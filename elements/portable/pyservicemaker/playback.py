"""The running of a pipeline: states, the thread that reads the bus, the end of the stream."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from typing import Any

from elements.base import Gst, all_of, post_error
from elements.portable.pyservicemaker.messages import EOSMessage, PipelineMessage, pipeline_message

log = logging.getLogger("gstorch.pyservicemaker")
bus_log = logging.getLogger("gstorch.pyservicemaker.bus")  # of its own, for applications that read the bus themselves

_POLL = 200 * Gst.MSECOND
_PREROLL_LIMIT = 10 * Gst.SECOND
_FINAL_ERRORS = ("Reconnection attempts exceeded for all sources or EOS received.", "Output window was closed")


class Playback:
    """Runs a pipeline once, on a daemon thread that reads the bus; no GLib context of the process is involved."""

    def __init__(self, pipeline: Gst.Pipeline) -> None:
        self._pipeline = pipeline
        self._bus: Gst.Bus = pipeline.get_bus()
        self._on_message: Callable[[PipelineMessage], Any] | None = None
        self._begun = False
        self._thread: threading.Thread | None = None
        self._seek_to: int | None = None
        self._stop_asked = False

    def begin(self, on_message: Callable[[PipelineMessage], Any] | None) -> None:
        """Claim the only run.

        Raises:
            RuntimeError: if it was claimed before.
        """
        if self._begun:
            raise RuntimeError(f"{self._pipeline.get_name()} was started before: a pipeline runs once, make a new one")
        self._begun = True
        self._on_message = on_message

    def pause(self) -> None:
        """Go to PAUSED."""
        if self._pipeline.set_state(Gst.State.PAUSED) == Gst.StateChangeReturn.FAILURE:
            log.error("%s cannot be paused", self._pipeline.get_name())

    def run(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: without `begin`, or a second time.
        """
        if not self._begun or self._thread is not None:
            raise RuntimeError(f"{self._pipeline.get_name()}: activate() needs one prepare() before it")
        self._thread = threading.Thread(target=self._play, name=f"{self._pipeline.get_name()}-bus", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread's end; nothing more can be started."""
        self._begun = True
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Send end-of-stream to a pipeline that was started, and return at once."""
        self._stop_asked = self._thread is not None  # the thread may not have left NULL yet
        if self._pipeline.get_state(0).state != Gst.State.NULL:
            self._end_sources()

    def _end_sources(self) -> None:
        """What ``pipeline.send_event(eos)`` does, without its deadlock.

        A source that is held in preroll takes the event only afterwards. The pipeline's own ``send_event`` would wait
        for that with the pipeline's state lock, which the end of the preroll needs; hence source by source, in threads.
        """
        for source in all_of(self._pipeline.iterate_sources()):
            threading.Thread(target=source.send_event, args=(Gst.Event.new_eos(),), daemon=True).start()

    def seek(self, position: int) -> None:
        """Seek to ``position`` ns: when starting, or now if it runs."""
        if self._thread is None:
            self._seek_to = position
            return
        flags = Gst.SeekFlags.FLUSH | Gst.SeekFlags.KEY_UNIT | Gst.SeekFlags.SNAP_BEFORE
        if not self._pipeline.seek_simple(Gst.Format.TIME, flags, position):
            log.error("%s cannot seek to %.3f s", self._pipeline.get_name(), position / Gst.SECOND)

    def _play(self) -> None:
        if self._seek_to is not None:
            self.pause()
            self._pipeline.get_state(_PREROLL_LIMIT)
            self.seek(self._seek_to)
        playing = self._start()
        if self._stop_asked:
            self.stop()
        while (message := self._next_message(playing)) is not None:
            if self._ends(message):
                return

    def _start(self) -> bool:
        """Go to PLAYING by way of PAUSED; False when that fails.

        Asked for PLAYING at once, a pipeline with a live source and a file can lose the step from PAUSED to PLAYING, in
        which it chooses its clock: when the file's preroll ends just as the live part has reached PAUSED, both threads
        go on from there (GstBin, GStreamer 1.22). It says PLAYING then, and without a clock no camera delivers, ever.
        """
        return all(
            self._pipeline.set_state(state) != Gst.StateChangeReturn.FAILURE
            for state in (Gst.State.PAUSED, Gst.State.PLAYING)
        )

    def _next_message(self, playing: bool) -> Gst.Message | None:
        """The next message; None when the pipeline did not start or somebody set it to NULL, and all are read."""
        while True:
            message = self._bus.timed_pop(_POLL if playing else 0)
            if message is not None or not playing or self._pipeline.get_state(0).state == Gst.State.NULL:
                return message

    def _ends(self, message: Gst.Message) -> bool:
        """Log and forward one message; whether it is the last."""
        origin = message.src.get_name() if message.src else ""
        if message.type == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            bus_log.error("%s: %s\n%s", origin, error.message, debug or "")
            return any(text in error.message for text in _FINAL_ERRORS)
        if message.type == Gst.MessageType.WARNING:
            warning, _debug = message.parse_warning()
            bus_log.warning("%s: %s", origin, warning.message)
        forwarded = pipeline_message(message)
        if forwarded is not None and self._on_message is not None:
            self._forward(forwarded)
        return isinstance(forwarded, EOSMessage)

    def _forward(self, message: PipelineMessage) -> None:
        try:
            self._on_message(message)  # type: ignore[misc]
        except BaseException as error:
            text = f"on_message failed: {type(error).__name__}: {error}"
            post_error(self._pipeline, text, traceback.format_exc())

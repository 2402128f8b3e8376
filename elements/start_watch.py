"""Notices a file that stopped being read before anything came out of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from elements.base import Gst, all_of

_LOOK_EVERY = 0.25  # seconds
_STILL_AFTER = 0.5  # nothing at all runs: there will be nothing
_READ_AFTER = (
    3.0  # reading ended, but queues run: a busy machine may need a while to show the first frame of a short clip
)


class StartWatch:
    """Calls ``dead`` when all reading inside ``container`` has ended for a while and `done` was not called.

    decodebin swallows the error of a demuxer that fails in the very moment it is started (seen in one of four starts
    with a file that has no index, GStreamer 1.22), and would then wait for ever.
    """

    def __init__(self, container: Gst.Bin, dead: Callable[[], None]) -> None:
        self._container = container
        self._dead = dead
        self._done = threading.Event()

    def start(self) -> None:
        """Begin to look; the container must be on its way to PAUSED."""
        threading.Thread(target=self._run, name="start-watch", daemon=True).start()

    def done(self) -> None:
        """Something came out, or failed with a message: the watch ends."""
        self._done.set()

    def _run(self) -> None:
        still = read = 0.0
        while not self._done.wait(_LOOK_EVERY):
            reading, running = _activity(self._container)
            read = 0.0 if reading else read + _LOOK_EVERY
            still = 0.0 if running else still + _LOOK_EVERY
            if still >= _STILL_AFTER or read >= _READ_AFTER:
                self._dead()
                return


def _activity(container: Gst.Bin) -> tuple[bool, bool]:
    """Whether a pad that drives the reading has a running task (a source's, or a sink pad that pulls), and any pad."""
    reading = running = False
    for element in all_of(container.iterate_recurse()):
        pads = all_of(element.iterate_pads())
        is_source = not any(pad.direction == Gst.PadDirection.SINK for pad in pads)
        for pad in pads:
            if pad.get_task_state() == Gst.TaskState.STARTED:
                running = True
                reading = reading or is_source or pad.direction == Gst.PadDirection.SINK
    return reading, running

"""Keeps one live source alive: notices that it is lost, rebuilds it with growing pauses. No GStreamer here."""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger("gstorch.source")


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """When a source counts as lost, and how often and how fast to try again. Times in seconds.

    ``interval``: silence that means lost; ``first_interval``: the same until the first frame came;
    ``attempts``: how many in a row before giving up, 0 or less for ever; ``first_pause``: before the first attempt,
    doubles with each; ``longest_pause``: limit of the back-off.
    """

    interval: float
    first_interval: float
    attempts: int
    first_pause: float
    longest_pause: float

    def pause(self, attempt: int) -> float:
        """Seconds to wait before attempt 1, 2, …"""
        return min(self.longest_pause, self.first_pause * 2.0 ** min(attempt - 1, 30))


class LiveSource(Protocol):
    """What the reconnector does to its source. All methods are called on the reconnector's thread."""

    def connect_source(self) -> None:
        """Build and start the source; what fails later is reported with `Reconnector.lost`."""

    def disconnect_source(self) -> None:
        """Stop and remove the source. Nothing that it says after this counts."""

    def is_stalled_downstream(self) -> bool:
        """Whether a frame is stuck in what follows, so that silence is not the source's fault."""

    def source_lost(self, reason: str, attempt: int) -> None:
        """Tell the world; ``attempt`` is the one that comes next."""

    def source_recovered(self, attempt: int) -> None:
        """Tell the world; ``attempt`` is the one that worked."""

    def source_given_up(self, reason: str, attempts: int) -> None:
        """Tell the world that there will be no other attempt."""


class Reconnector:
    """Watches a `LiveSource` from a thread of its own, so that streaming threads never tear themselves down.

    The source reports with `frame` and `lost` from any thread.
    """

    def __init__(self, source: LiveSource, policy: ReconnectPolicy, name: str) -> None:
        self._source = source
        self._policy = policy
        self._losses: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: look at the state again
        self._stopping = threading.Event()
        self._watching = False
        self._last_frame = time.monotonic()
        self._had_frame = False
        self._attempt = 0
        self._thread = threading.Thread(target=self._run, name=f"reconnect-{name}", daemon=True)

    def start(self) -> None:
        """Begin to listen to losses; silence counts from `watch` on."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread; the source stays as it is."""
        self._stopping.set()
        self._losses.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def watch(self, playing: bool) -> None:
        """Count silence only while the pipeline plays."""
        self._last_frame = time.monotonic()
        self._watching = playing
        self._losses.put(None)

    def frame(self) -> None:
        """A frame came."""
        self._last_frame = time.monotonic()
        self._had_frame = True
        if self._attempt:
            attempt, self._attempt = self._attempt, 0
            self._source.source_recovered(attempt)

    def lost(self, reason: str) -> None:
        """The source ended or failed."""
        self._losses.put(reason)

    def _run(self) -> None:
        while not self._stopping.is_set():
            reason = self._wait_for_loss()
            if reason is not None and not self._reconnect(reason):
                return

    def _wait_for_loss(self) -> str | None:
        """Why the source is lost, or None to look again."""
        limit = self._policy.interval if self._had_frame else self._policy.first_interval
        left = self._last_frame + limit - time.monotonic() if self._watching and limit > 0 else None
        try:
            return self._losses.get(timeout=None if left is None else max(left, 0.05))
        except queue.Empty:
            pass
        if time.monotonic() - self._last_frame < limit:
            return None
        if self._source.is_stalled_downstream():
            self._last_frame = time.monotonic()
            return None
        return f"no frame for {limit:g} s"

    def _reconnect(self, reason: str) -> bool:
        """Take the source down, pause, build it again; False when that was the last attempt or we are stopping."""
        if self._stopping.is_set():
            return False
        self._source.disconnect_source()
        while not self._losses.empty():  # what the old source said while it went down
            self._losses.get_nowait()
        attempts = self._policy.attempts
        if 0 < attempts <= self._attempt:
            self._source.source_given_up(reason, self._attempt)
            return False
        self._attempt += 1
        self._source.source_lost(reason, self._attempt)
        if self._stopping.wait(self._policy.pause(self._attempt)):
            return False
        self._last_frame = time.monotonic()
        self._source.connect_source()
        return True

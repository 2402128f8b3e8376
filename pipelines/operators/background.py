"""Slow work beside the stream: a bounded queue and one thread."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

log = logging.getLogger("gstorch.operators")

Item = TypeVar("Item")
Overflow = Literal["drop-oldest", "drop-newest"]

FINISH_S = 5.0


class Background(Generic[Item]):
    """Hands items to ``work`` on a thread of its own, in order. Giving one never waits.

    Args:
        name: of the thread.
        work: called with each item; what it raises is its own business to catch.
        limit: most items that wait.
        overflow: which one goes when there is no room.

    Attributes:
        dropped: items that had to go.
    """

    def __init__(self, name: str, work: Callable[[Item], None], limit: int, overflow: Overflow) -> None:
        self.dropped = 0
        self._work, self._limit, self._overflow = work, limit, overflow
        self._waiting: deque[Item] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._finish_at = math.inf
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def give(self, item: Item) -> None:
        """Queue an item, or drop one as declared."""
        with self._changed:
            if len(self._waiting) >= self._limit:
                self.dropped += 1
                if self._overflow == "drop-newest":
                    return
                self._waiting.popleft()
            self._waiting.append(item)
            self._changed.notify()

    def end(self, limit_s: float = FINISH_S) -> None:
        """Nothing more comes: work off what waits, for ``limit_s`` seconds from the first call on."""
        with self._changed:
            self._finish_at = min(self._finish_at, time.monotonic() + limit_s)
            self._ended = True
            self._changed.notify()

    def finish(self, limit_s: float = FINISH_S) -> bool:
        """Wait until all is done and the thread has ended. Past the limit of `end` the rest is dropped: False."""
        self.end(limit_s)
        self._thread.join(max(0.0, self._finish_at - time.monotonic()))
        with self._changed:
            self.dropped += len(self._waiting)
            self._waiting.clear()
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if not self._waiting:
                    return
                item = self._waiting.popleft()
            self._work(item)

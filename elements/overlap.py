"""The second half of an element's work in a thread of its own, so that the next buffer's first half can begin."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from elements.base import Gst

DEPTH = 3  # buffers on the way: one that is pushed, one that is waited for, one that is made ready

T = TypeVar("T")


class Overlap(Generic[T]):
    """Items go in on the streaming thread, and are finished one by one, in order, on another.

    The thread takes an item as soon as it is free, so nothing waits for a later one. What `finish` returns, unless it
    is OK, is what `wait_for_room` returns from then on, and items that follow are dropped, until `reset`.

    Args:
        name: of the thread.
        finish: does the second half of an item; must not raise.
        drop: releases an item that will not be finished.
        depth: items on the way, the one in `finish` included.
    """

    def __init__(
        self, name: str, finish: Callable[[T], Gst.FlowReturn], drop: Callable[[T], None], depth: int = DEPTH
    ) -> None:
        self._finish, self._drop, self._depth = finish, drop, depth
        self._changed = threading.Condition()  # guards everything below
        self._items: deque[T] = deque()
        self._busy = False
        self._stopped = False
        self._flow = Gst.FlowReturn.OK
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wait_for_room(self) -> Gst.FlowReturn:
        """Wait until another item may be put; at once if the flow is not OK."""
        return self._wait(self._depth - 1)

    def drain(self) -> Gst.FlowReturn:
        """Wait until all items are finished, or dropped."""
        return self._wait(0)

    def put(self, item: T) -> None:
        """Hand an item over; after `wait_for_room`."""
        with self._changed:
            if self._flow == Gst.FlowReturn.OK and not self._stopped:
                self._items.append(item)
                self._changed.notify_all()
                return
        self._drop(item)

    def flush(self) -> None:
        """Drop what waits and let go whoever waits, until `reset`."""
        self._refuse(Gst.FlowReturn.FLUSHING)

    def reset(self) -> None:
        """Take items again, once the one in `finish` is through."""
        with self._changed:
            while self._busy:
                self._changed.wait()
            self._flow = Gst.FlowReturn.OK

    def stop(self) -> None:
        """Drop what waits and end the thread. The pad must be flushing, so that a push in `finish` returns."""
        with self._changed:
            self._stopped = True
        self.flush()
        self._thread.join()

    def _wait(self, most: int) -> Gst.FlowReturn:
        with self._changed:
            while self._flow == Gst.FlowReturn.OK and len(self._items) + self._busy > most:
                self._changed.wait()
            return self._flow

    def _refuse(self, flow: Gst.FlowReturn) -> None:
        with self._changed:
            self._flow = flow
            dropped = list(self._items)
            self._items.clear()
            self._changed.notify_all()
        for item in dropped:
            self._drop(item)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._items and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                item = self._items.popleft()
                self._busy = True
            flow = self._finish(item)
            del item
            if flow != Gst.FlowReturn.OK:
                self._refuse(flow)

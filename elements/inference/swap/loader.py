"""The thread on which new models are loaded: one after the other, of several for the same place only the newest."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from elements.inference.config import ModelConfig
from elements.inference.swap.status import SwapStatus
from elements.inference.swap.watch import POLL_S, FileWatch

log = logging.getLogger("gstorch.swap")

Answer = Future[SwapStatus]


@dataclass(eq=False, slots=True)
class SwapRequest:
    """Somebody wants another model.

    Attributes:
        config: the model.
        source_id: the source that gets it for its own; ``None``: the stage's.
        answer: gets the end of it: active, rejected or superseded.
    """

    config: ModelConfig
    source_id: int | None = None
    answer: Answer = field(default_factory=Future)


class ModelLoader:
    """Hands requests to ``serve`` on a thread of its own, and told files that have changed to ``changed``.

    The thread starts when there is something to do.

    Args:
        lock: held while the queue is touched; methods but for `join` are called with it held.
        serve: loads one model; called without the lock.
        changed: called with the lock held, with the watched files that have new content.
        unfit: called with the lock held, with the watched files that do not become complete, and why.
    """

    def __init__(
        self,
        lock: threading.RLock,
        serve: Callable[[SwapRequest], None],
        changed: Callable[[set[str]], None],
        unfit: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._wake = threading.Condition(lock)
        self._serve, self._changed, self._unfit = serve, changed, unfit
        self._waiting: dict[int | None, SwapRequest] = {}
        self._watches: dict[str, FileWatch] = {}
        self._serving = ""
        self._closed = False
        self._thread: threading.Thread | None = None

    def put(self, request: SwapRequest) -> None:
        """Queue a request. The one that waits for the same place must have been taken out before."""
        self._waiting[request.source_id] = request
        self._run()

    def take(self, source_id: int | None) -> SwapRequest | None:
        """Take out the request that waits for a place, if there is one."""
        return self._waiting.pop(source_id, None)

    def newest(self, source_id: int | None) -> SwapRequest | None:
        """The request that waits for a place, if there is one."""
        return self._waiting.get(source_id)

    def watch(self, paths: set[str]) -> None:
        """Watch these files, and no others."""
        self._watches = {path: self._watches.get(path) or FileWatch(path) for path in paths}
        if paths:
            self._run()

    def close(self) -> list[SwapRequest]:
        """Take no more; the requests that were left waiting."""
        self._closed = True
        left, self._waiting = list(self._waiting.values()), {}
        self._wake.notify()
        return left

    def join(self, timeout: float) -> None:
        """Wait for the thread, at most ``timeout`` seconds: loading cannot be cut short. Without the lock."""
        if self._thread is None:
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            log.warning("model '%s' is still loading after %.0f s: it is not waited for", self._serving, timeout)

    def _run(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="load-model", daemon=True)
            self._thread.start()
        self._wake.notify()

    def _loop(self) -> None:
        while (request := self._next()) is not None:
            self._serving = request.config.path
            self._serve(request)

    def _next(self) -> SwapRequest | None:
        """The next one to serve; ``None`` at the end."""
        with self._wake:
            while not self._closed:
                if self._waiting:
                    return self._waiting.pop(next(iter(self._waiting)))
                self._wake.wait(POLL_S if self._watches else None)
                changed = {path for path, watch in self._watches.items() if watch.poll()}
                if changed:
                    self._changed(changed)
                unfit = {path: watch.problem for path, watch in self._watches.items() if watch.problem}
                if unfit:
                    self._unfit(unfit)
        return None

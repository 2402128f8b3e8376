"""Operators of one's own: a function, a class, or a pyservicemaker BatchMetadataOperator, named in the definition.

    def crowded(frame, limit: int = 10):              # operate: {operator: "shop:crowded", params: {limit: 5}}
        if len(frame) > limit:
            frame.emit("crowded", people=len(frame))

    class Speed:                                      # state of its own, and an end
        def __init__(self, scale: float): ...
        def process(self, frame): ...
        def close(self): ...

``frame`` is a `pipelines.operators.view.FrameView`. A class or function that needs data which was attached under names
of its own says so: ``reads = ("plate",)``.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pyservicemaker import BatchMetadataOperator

from elements.base import ElementError, trace_of
from elements.inference.errors import ModelError
from elements.inference.params import call_with_params, import_object
from elements.metadata.placement import Placement
from pipelines.operators.background import Background, Overflow
from pipelines.operators.base import Operator, Report
from pipelines.operators.exchange import add_events, apply_changes, placement_of, view_of
from pipelines.operators.view import Changes, FrameView

log = logging.getLogger("gstorch.operators")

# sys.exit() in an operator would end nothing but the streaming thread; on DeepStream whatever leaves ends the process
_ANY = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
CLOSE_S = 2.0
"""How long the end of a run waits for an operator's ``close``."""
SLOW_S = 0.02
SLOW_FRAMES = 20
"""An operator in the stream that needs `SLOW_S` seconds on `SLOW_FRAMES` frames is named, once."""


class UserOperator(Operator):
    """Runs one operator of the user's, and keeps what it does wrong away from the stream.

    Args:
        name: of the stage.
        operator: ``package.module:Class`` or ``package.module:function``; or the class or function itself.
        params: for its constructor, or for the function beside the frame.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding.
        mux_size: see `pipelines.operators.exchange.placement_of`.
        run: ``inline`` in the stream, or ``background``: on a thread of its own, with a copy of what the frame has; it
            may emit events, which go with the next frame of the source, and change nothing else.
        queue: in the background, most frames that wait.
        overflow: in the background, which frame goes when there is no room.
        on_error: ``stop`` the run, or ``skip`` the frame and count it.
        report: see `Operator`.

    Attributes:
        stats: frames processed, frames on which it failed, and frames dropped for want of room.

    Raises:
        ElementError: if there is no such operator, or it does not take these parameters.
    """

    def __init__(
        self,
        name: str,
        operator: Any,
        params: Mapping[str, Any],
        sources: Sequence[str],
        padding: bool,
        mux_size: tuple[int, int] | None,
        run: Literal["inline", "background"],
        queue: int,
        overflow: Overflow,
        on_error: Literal["stop", "skip"],
        report: Report,
    ) -> None:
        super().__init__(report)
        self._name, self._sources, self._on_error = name, sources, on_error
        self._padding, self._mux_size = padding, mux_size
        self._frames = self._failures = self._slow = 0
        self._at = ("", 0.0)  # what it works on in the stream, and since when
        self._lock = threading.Lock()
        self._late_events: dict[int, list[dict[str, Any]]] = defaultdict(list)  # by source id, from the background
        try:
            self._call, self._close, self._reads = _opened(operator, params)
            if isinstance(self._call, BatchMetadataOperator) and run == "background":
                raise ModelError(
                    "a BatchMetadataOperator works on metadata that is gone when the batch has passed: leave 'run' "
                    "out, or write a function or class that takes a frame"
                )
        except ModelError as error:
            raise ElementError(f"operator '{operator}': {error}") from None
        except _ANY as error:
            text = f"{type(error).__name__}: {error}"
            raise ElementError(f"operator '{operator}' fails to start: {text}") from error
        self._worker = Background(name, self._work, queue, overflow) if run == "background" else None

    @property
    def stats(self) -> dict[str, int]:
        """See the class."""
        dropped = self._worker.dropped if self._worker is not None else 0
        return {"frames": self._frames, "failed": self._failures, "dropped": dropped}

    def process(self, batch_meta: Any) -> None:
        """One batch, frame by frame."""
        if isinstance(self._call, BatchMetadataOperator):
            self._guarded(partial(self._call.handle_metadata, batch_meta), "", batch_meta.n_frames)
            return
        for frame_meta in batch_meta.frame_items:
            placement = placement_of(frame_meta, self._padding, self._mux_size)
            view = view_of(frame_meta, self._sources[frame_meta.source_id], placement, self._reads)
            if self._worker is None:
                self._guarded(partial(self._edit, view, batch_meta, frame_meta, placement), _place(view))
                continue
            self._worker.give(view)
            with self._lock:
                late = self._late_events.pop(view.source_id, [])
            add_events(frame_meta, late)

    def end(self) -> None:
        """What waits for the background is worked off, while other operators do the same."""
        if self._worker is not None:
            self._worker.end()

    @property
    def busy(self) -> str:
        """What it is doing in the stream, and for how long; empty if nothing."""
        place, since = self._at
        if not since:
            return ""
        return f"operator '{self._name}' has been at {place or 'a batch'} for {time.monotonic() - since:.0f} s"

    @property
    def busy_s(self) -> float:
        """For how many seconds it has been at what it is doing in the stream."""
        since = self._at[1]
        return time.monotonic() - since if since else 0.0

    def _edit(self, view: FrameView, batch_meta: Any, frame_meta: Any, placement: Placement) -> Any:
        answer = self._call(view)
        if answer is None:
            apply_changes(view, batch_meta, frame_meta, placement)
        return answer

    def close(self) -> None:
        """End the background thread and the operator. Neither is waited for without end.

        Raises:
            ElementError: if the operator's own ``close`` fails.
        """
        if self._worker is not None and not self._worker.finish():
            log.warning("operator '%s' is still busy at the end: what waits for it is dropped", self._name)
        left = sum(map(len, self._late_events.values()))
        if left:
            log.warning("operator '%s': %d events came after the last frame of their source", self._name, left)
        if self._failures and self._on_error == "skip":
            log.warning("operator '%s' failed on %d of %d frames", self._name, self._failures, self._frames)
        if self._close is not None:
            self._close_within(CLOSE_S)

    def _close_within(self, limit_s: float) -> None:
        """Call the operator's own ``close``, on a thread that may be left behind."""
        failures: list[BaseException] = []

        def close() -> None:
            try:
                self._close()  # type: ignore[misc]  # it is there
            except _ANY as error:
                failures.append(error)

        thread = threading.Thread(target=close, name=f"{self._name}-close", daemon=True)
        thread.start()
        thread.join(limit_s)
        if thread.is_alive():
            log.warning("operator '%s': its close() is not done after %g s: left behind", self._name, limit_s)
        for error in failures:
            text = f"operator '{self._name}' failed in close(): {type(error).__name__}: {error}"
            raise ElementError(text) from error

    def _work(self, view: FrameView) -> None:
        """One frame, on the background thread."""
        try:
            if not self._guarded(partial(self._call, view), _place(view)):
                return
            if view.changes != Changes(events=view.changes.events):
                raise _FailedError(f"{_place(view)}: in the background an operator can only emit: set 'run: inline'")
        except _FailedError as failure:
            if not self._failed:
                self._failed = True
                self._report(str(failure), trace_of(failure.__cause__ or failure))
            return
        with self._lock:
            self._late_events[view.source_id] += view.changes.events

    def _guarded(self, work: Callable[[], Any], place: str, frames: int = 1) -> bool:
        """Call the operator; whether it did its work.

        Raises:
            _FailedError: if it failed and ``on_error`` is ``stop``.
        """
        self._frames += frames
        started = time.perf_counter()
        if self._worker is None:
            self._at = (place, time.monotonic())
        try:
            answer = work()
            if answer is not None:
                raise TypeError(
                    f"it returned a {type(answer).__name__}: an operator returns nothing; see FrameView.keep"
                )
        except _ANY as error:
            self._failures += frames
            text = f"operator '{self._name}' failed{place and ' on '}{place}: {type(error).__name__}: {error}"
            if self._on_error == "stop":
                raise _FailedError(text) from error
            if self._failures == frames:
                log.warning("%s: skipped and counted, as others will be\n%s", text, trace_of(error).rstrip())
            return False
        finally:
            self._at = ("", 0.0)
        self._watch_pace(time.perf_counter() - started)
        return True

    def _watch_pace(self, seconds: float) -> None:
        if self._worker is not None or seconds < SLOW_S:
            return
        self._slow += 1
        if self._slow == SLOW_FRAMES:
            log.warning(
                "operator '%s' holds the video up: %.0f ms for its last frame; 'run: background' keeps it away",
                self._name,
                seconds * 1000,
            )


class _FailedError(ElementError):
    """An operator failed and the run is to stop. The text is complete."""


def _place(view: FrameView) -> str:
    return f"source '{view.source}', frame {view.number}"


def _opened(path: Any, params: Mapping[str, Any]) -> tuple[Any, Callable[[], None] | None, tuple[str, ...]]:
    """What to call with a frame (or a BatchMetadataOperator), what to call at the end, and the names that it reads.

    Raises:
        ModelError: if it is no operator, or does not take these parameters.
    """
    found = import_object(path, "operator") if isinstance(path, str) else path
    reads = tuple(getattr(found, "reads", ()))
    if not inspect.isclass(found):
        if not callable(found):
            raise ModelError(f"it is a {type(found).__name__}, neither a class nor a function")
        return call_with_params(found, params, {}, skip=1), None, reads
    made = call_with_params(found, params, {})()
    if isinstance(made, BatchMetadataOperator):
        return made, getattr(made, "close", None), reads
    if not callable(getattr(made, "process", None)):
        raise ModelError("the class lacks process(frame)")
    return made.process, getattr(made, "close", None), reads

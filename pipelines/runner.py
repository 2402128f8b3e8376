"""Life cycle of a running pipeline: start, watch, stop, exit code."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from elements import collector
from elements.base import Gst
from elements.ending import end_pad
from pipelines.assemble import Assembly
from pipelines.builder import MUX, source_node
from pipelines.bus import BusEvent, BusWatch, Inbox
from pipelines.closing import busy_operators, close_operators
from pipelines.control import Control
from pipelines.definition import Runtime as RuntimeOptions
from pipelines.failure import describe
from pipelines.gate import hold_until_loop_runs
from pipelines.outcome import EXIT_COMPLETE, EXIT_FAILED, EXIT_PARTIAL, Outcome, SourceCount
from pipelines.signals import RELOAD, signals_into
from pipelines.sources import ENDED, SourceState, SourceStatus, only_cameras_are_away
from pipelines.stall import between_states, describe_stall, hanging_code, held_at_the_end, holders

log = logging.getLogger("gstorch.runner")

POLL_S = 0.1
NULL_TIMEOUT_S = 5.0
HANGS_AFTER_S = 2.0  # at a stop, one call of the user's code, or half of stop_timeout if that is longer
ABORT_TIMEOUT_S = 1.0
SAME_SIGNAL_S = 0.3  # `timeout` and terminals may deliver one and the same signal twice

COUNTERS = {
    "pyinfer": ("frames-inferred", "frames-failed", "nan-count"),
    "pymetafilter": ("objects-seen", "objects-removed"),
    "pyprompt": ("asked", "answered", "failed", "dropped", "over-budget"),
}


@dataclass(slots=True)
class Runner:
    """Runs one assembled pipeline to its end.

    ``statuses`` and ``counts`` are indexed by source id (position in the definition). ``pads`` maps the source ids
    that take part to their mux pad numbers.
    """

    assembly: Assembly
    statuses: list[SourceStatus]
    counts: list[SourceCount]
    pads: dict[int, int]
    options: RuntimeOptions
    inbox: Inbox
    outcome: Outcome = field(default_factory=Outcome)
    _stop_deadline: float | None = None
    _signalled_at: float | None = None
    _on_reload: Callable[[], None] | None = None
    _aborted: bool = False
    _hangs: str = ""  # code of the user that is not waited for
    _silent: dict[int, int] = field(default_factory=dict)  # cameras that went silent: their frames until then

    def run(
        self, on_progress: Callable[[Runner], None] | None = None, on_reload: Callable[[], None] | None = None
    ) -> Outcome:
        """Start, watch until the end, stop. Call on the main thread: it owns SIGINT and SIGTERM meanwhile.

        Args:
            on_progress: called now and then.
            on_reload: what SIGHUP does; default: end the process, as without a handler.
        """
        pipeline = self.assembly.pipeline
        if pipeline is None:  # no source can be opened
            return self.outcome
        watch, self._on_reload = BusWatch(self.assembly.gst, self.inbox), on_reload
        started, cpu_started = time.monotonic(), time.process_time()
        with signals_into(self.inbox, reload=on_reload is not None), collector.resuming():
            try:
                if not hasattr(pipeline, "gst_pipeline"):  # NVIDIA's
                    hold_until_loop_runs(self._element(MUX))
                pipeline.start()
                self._watch(started, on_progress)
            finally:
                self._shut_down(watch)
        self.outcome.seconds = time.monotonic() - started
        self.outcome.cpu_seconds = time.process_time() - cpu_started
        self._settle()
        return self.outcome

    def exit_code(self) -> int:
        """0 all sources complete, 1 failed, 3 partial (see README)."""
        states = [status.state for status in self.statuses]
        if self.outcome.error or all(state is SourceState.FAILED for state in states):
            return EXIT_FAILED
        live_at_end = {s.state for s in self.statuses if s.live}
        complete = all(
            status.state is SourceState.FINISHED or (status.live and status.state is SourceState.STOPPED)
            for status in self.statuses
        )
        return EXIT_COMPLETE if complete and SourceState.LOST not in live_at_end else EXIT_PARTIAL

    def dropped(self, source_id: int) -> int:
        """Frames of a live source that were dropped because the pipeline was behind."""
        element = self._element(source_node(source_id)) if source_id in self.pads else None
        if element is None or element.find_property("frames-dropped") is None:
            return 0
        return int(element.get_property("frames-dropped"))

    def failed(self, source_id: int) -> int:
        """Frames of a source that an inference stage skipped because its model failed; summed over the stages."""
        return sum(element.failed_by_source.get(source_id, 0) for element in self._inference_elements().values())

    def element_counts(self, factory: str) -> dict[str, dict[str, int]]:
        """Counters of each element of a factory (a key of `COUNTERS`), by stage name."""
        return {
            name: {counter: int(element.get_property(counter)) for counter in COUNTERS[factory]}
            for name, element in self._elements(factory).items()
        }

    def models(self) -> dict[str, dict[str, Any]]:
        """The models in force of each inference element, by stage name, and what became of swaps."""
        names = self._names()
        return {name: element.live.summary(names) for name, element in self._inference_elements().items()}

    @property
    def control(self) -> Control:
        """Takes changes while the pipeline runs, from any thread."""
        return Control(lambda: {name: e.live for name, e in self._inference_elements().items()}, self._names())

    def _inference_elements(self) -> dict[str, Any]:
        return self._elements("pyinfer")

    def _elements(self, factory: str) -> dict[str, Any]:
        names = [node.name for node in self.assembly.graph.nodes.values() if node.factory == factory]
        found = {name: self._element(name) for name in names}
        return {name: element for name, element in found.items() if element is not None}

    def _element(self, name: str) -> Any:
        return self.assembly.gst.get_by_name(name) if self.assembly.gst is not None else None

    # --- watching -----------------------------------------------------------------------------------------------------

    def _watch(self, started: float, on_progress: Callable[[Runner], None] | None) -> None:
        progressed_at, frames_before = time.monotonic(), 0
        while True:
            event = self._next_event()
            if event is not None and self._handle(event):
                return
            frames, now = sum(count.frames for count in self.counts), time.monotonic()
            if frames and self.outcome.first_result_s is None:
                self.outcome.first_result_s = now - started
                collector.spare()  # by now everything is imported and loaded
            if frames != frames_before or only_cameras_are_away(self.statuses[i] for i in self.pads):
                progressed_at, frames_before = now, frames
            if self._stop_deadline is not None and self._gives_up_draining(now, now - progressed_at):
                return
            if event is None and self._start_failed():
                return
            if now - progressed_at > self._stall_limit():
                if self._on_stall():
                    return
                progressed_at = now
            self._mark_running()
            if on_progress is not None:
                on_progress(self)

    def _next_event(self) -> BusEvent | None:
        with contextlib.suppress(queue.Empty):
            return self.inbox.get(timeout=POLL_S)
        return None

    def _handle(self, event: BusEvent) -> bool:
        """Act on one event; True ends the run."""
        if event.kind == "eos":
            for active in self.pads:
                self._end(active)
            return True
        if event.kind == "signal":
            return self._on_signal(event)
        if event.kind == "operator":
            return self._fail(event)
        source_id = self._source_of(event)
        if event.kind == "error":
            if source_id is None:
                return self._fail(event)
            self._source_failed(source_id, event.text)
        elif event.kind == "warning":
            self._warn(event, source_id)
        elif event.kind == "element":
            self._on_element_message(event, source_id)
        return False

    def _on_element_message(self, event: BusEvent, source_id: int | None) -> None:
        if event.name == "stream-eos":
            ended = next((s for s, pad in self.pads.items() if pad == event.fields["stream-id"]), None)
            if ended is not None:
                self._end(ended)
        elif source_id is None or self.statuses[source_id].state in ENDED:
            return
        elif event.name == "source-lost":
            self._change(source_id, SourceState.LOST, str(event.fields.get("reason", "")))
        elif event.name == "source-recovered":
            self._change(source_id, SourceState.RUNNING, "")
        elif event.name == "reconnect-attempt-exceeded":
            self._source_failed(source_id, self.statuses[source_id].gave_up(event.fields.get("reason")))

    def _end(self, source_id: int) -> None:
        """The mux has seen the end of a source: of a file this is right, of a camera it is a loss."""
        status = self.statuses[source_id]
        if status.state in ENDED or status.state is SourceState.LOST:  # that stays so, with its reason
            return
        if self._stop_deadline is not None:
            frames = self.counts[source_id].frames
            self._change(source_id, SourceState.STOPPED, "" if frames else "before its first frame")
        elif status.source.kind == "rtsp":
            self._change(source_id, SourceState.LOST, "the stream ended")
        else:
            self._change(source_id, SourceState.FINISHED, "")

    def _fail(self, event: BusEvent) -> bool:
        assembly = self.assembly
        self.outcome.error, self.outcome.trace = describe(event, assembly.graph, self._names(), assembly.where)
        return True

    def _warn(self, event: BusEvent, source_id: int | None) -> None:
        if source_id is not None:
            log.warning("source '%s': %s", self.statuses[source_id].source.name, event.text)
            return
        text, trace = describe(event, self.assembly.graph, self._names())
        log.warning("%s%s", text, f"\n{trace.rstrip()}" if trace else "")

    def _source_failed(self, source_id: int, text: str) -> None:
        if self.statuses[source_id].state in ENDED:
            return
        self._change(source_id, SourceState.FAILED, text)
        self._end_pad(source_id)
        if self.options.on_source_error == "stop":
            self.stop()

    def _change(self, source_id: int, state: SourceState, reason: str) -> None:
        status = self.statuses[source_id]
        if status.state is state and status.reason == reason:
            return
        status.state, status.reason = state, reason
        level = logging.WARNING if state in (SourceState.LOST, SourceState.FAILED) else logging.INFO
        log.log(level, "source '%s': %s%s", status.source.name, state, f": {reason}" if reason else "")

    def _mark_running(self) -> None:
        for source_id in self.pads:
            state, frames = self.statuses[source_id].state, self.counts[source_id].frames
            back = state is SourceState.LOST and frames > self._silent.get(source_id, frames)
            if back or (state is SourceState.STARTING and frames):
                self._change(source_id, SourceState.RUNNING, "")
            if state is not SourceState.LOST:
                self._silent.pop(source_id, None)

    # --- standing still -----------------------------------------------------------------------------------------------

    def _start_failed(self) -> bool:
        """pyservicemaker's `start` tells nobody that the pipeline refused to play; elements mostly do, but not all."""
        if any(status.state is SourceState.FAILED for status in self.statuses):
            return False  # a source's error leaves the pipeline in the same state, and the others play on
        if self.assembly.gst.get_state(0)[0] != Gst.StateChangeReturn.FAILURE or not self.inbox.empty():
            return False
        self.outcome.error = (
            "an element refused to start without saying why: GST_DEBUG=3 in the environment shows which"
        )
        return True

    def _on_stall(self) -> bool:
        """Nothing moved for the whole time limit. True ends the run; cameras alone may be silent and come back."""
        gst, graph = self.assembly.gst, self.assembly.graph
        if self._stop_deadline is None and (starting := between_states(gst, graph, MUX)):
            log.warning("%s, and is waited for: to load or build a model may take long", starting)
            return False
        due = [i for i in self.pads if self.statuses[i].state in (SourceState.RUNNING, SourceState.STARTING)]
        limit = self._stall_limit()
        if due and all(self.statuses[i].source.kind == "rtsp" for i in due) and not holders(gst, graph, MUX):
            for source_id in due:
                self._silent[source_id] = self.counts[source_id].frames
                self._change(source_id, SourceState.LOST, f"no frame for {limit:.0f} s")
            return False
        names = ", ".join(f"'{self.statuses[i].source.name}'" for i in due)
        what = f"no frame came through for {limit:.0f} s although {names} should deliver"
        if not due:
            what = f"every source has ended, but the outputs did not finish within {limit:.0f} s"
        self.outcome.error = f"{what} (runtime.stall_timeout): {describe_stall(gst, graph, MUX)}"
        self.outcome.error += busy_operators(self.assembly.operators.values())
        return True

    def _stall_limit(self) -> float:
        """Seconds. A camera may be silent for its own time-out before it counts as lost, which is no stall."""
        cameras = [s.source for s in self.statuses if s.source.kind == "rtsp" and s.state is SourceState.RUNNING]
        return self.options.stall_timeout + max((camera.timeout for camera in cameras), default=0.0)

    # --- stopping -----------------------------------------------------------------------------------------------------

    def _on_signal(self, event: BusEvent) -> bool:
        if event.name == RELOAD and self._on_reload is not None:
            log.info("%s: reading the definition again", event.name)
            self._on_reload()
            return False
        now = time.monotonic()
        if self._signalled_at is not None:
            if now - self._signalled_at < SAME_SIGNAL_S:
                return False
            log.warning("%s again: aborting without draining", event.name)
            self.outcome.error = f"aborted by a second {event.name}"
            self._aborted = True
            return True
        self._signalled_at = now
        log.info("%s: stopping sources and draining (again to abort)", event.name)
        self.stop()
        return False

    def stop(self) -> None:
        """End every source; what is in the pipeline is still written. The run ends within ``stop_timeout``."""
        if self._stop_deadline is not None:
            return
        self.outcome.interrupted = True
        self._stop_deadline = time.monotonic() + self.options.stop_timeout
        for source_id in self.pads:
            if self.statuses[source_id].state not in ENDED:
                self._end_pad(source_id)

    def _gives_up_draining(self, now: float, still_s: float) -> bool:
        """Whether to wait no more for what is in the pipeline: the time is up, or code of the user hangs in it."""
        assert self._stop_deadline is not None
        limit, operators = max(HANGS_AFTER_S, self.options.stop_timeout / 2), self.assembly.operators.values()
        hanging = hanging_code(self.assembly.gst, self.assembly.graph, MUX, operators, still_s, limit)
        if hanging:
            log.warning("%s: it is not waited for, and what is behind it is lost", hanging)
            self._hangs = hanging
            return True
        if now > self._stop_deadline:
            log.warning("not drained within %.0f s of the stop: ending now", self.options.stop_timeout)
        return now > self._stop_deadline

    def _end_pad(self, source_id: int) -> None:
        """Send EOS into the mux in the source's place; the pad itself then refuses later data with EOS."""
        if self.statuses[source_id].source.loop:  # else it would begin anew whenever it is refused
            self._element(source_node(source_id)).set_property("file-loop", False)
        pad = self._element(MUX).get_static_pad(f"sink_{self.pads[source_id]}")
        if pad is not None:
            end_pad(pad, source_node(source_id))

    def _shut_down(self, watch: BusWatch) -> None:
        """To NULL in bounded time, then close operators.

        pyservicemaker's own loop must see an end of stream first: its `wait` would go on for ever after an error, and
        a pipeline that is already NULL has a bus that delivers nothing.
        """
        done = threading.Event()

        def to_null() -> None:
            self.assembly.gst.get_bus().post(Gst.Message.new_eos(self.assembly.gst))
            self.assembly.pipeline.wait()  # for the loop, then sets NULL
            done.set()

        threading.Thread(target=to_null, name="shut-down", daemon=True).start()
        limit = ABORT_TIMEOUT_S if self._aborted or self._hangs else NULL_TIMEOUT_S
        self.outcome.stuck = not done.wait(limit)
        watch.close()
        operators = self.assembly.operators.values()
        held = threads = ""
        if self.outcome.stuck:
            held, threads = held_at_the_end(self.assembly.gst, self.assembly.graph, MUX, operators, self._hangs)
        text, trace = close_operators(operators)
        if held and not text:
            text, trace = f"the pipeline did not stop within {limit:.0f} s; {held}", threads
        if text and not self.outcome.error:
            self.outcome.error, self.outcome.trace = text, trace

    def _settle(self) -> None:
        """Final states: what still ran is stopped; files that ended early are truncated; what was skipped is said."""
        for stage, counters in self.element_counts("pyinfer").items():
            if failed := counters["frames-failed"]:
                frames = failed + counters["frames-inferred"]
                log.warning("%s: the model failed on %d of %d frames, which were skipped", stage, failed, frames)
        for source_id in self.pads:
            status, count = self.statuses[source_id], self.counts[source_id]
            if status.state in (SourceState.RUNNING, SourceState.STARTING):
                self._change(source_id, SourceState.STOPPED, "")
            elif status.state is SourceState.FINISHED and status.ended_early(count):
                reason = f"decoded {count.frames} of about {status.expected_frames} frames"
                self._change(source_id, SourceState.TRUNCATED, reason)

    # --- names --------------------------------------------------------------------------------------------------------

    def _source_of(self, event: BusEvent) -> int | None:
        return next((s for s in self.pads if source_node(s) in event.path), None)

    def _names(self, *states: SourceState) -> list[str]:
        """Names of the sources in these states; of all, by source id, if none is given."""
        return [str(s.source.name) for s in self.statuses if not states or s.state in states]

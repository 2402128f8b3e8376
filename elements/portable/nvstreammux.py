"""nvstreammux (legacy) for host frames: batches frames of several sources.

Differences from NVIDIA's element, all for CPU decoding: files are given at least a second before a partial batch leaves
(`Batcher`), sources may differ in format and change it, the output counter advances by one frame duration per round of
the batch, and QoS events stop here, so that decoders drop no frame of a file.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    GstVideo,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    pad_template,
    post_error,
    requested,
)
from elements.portable.batching import QUEUE_LENGTH, Batcher
from elements.portable.intake import Intake, Intakes
from elements.portable.mux_output import Frame, MuxOutput, Source
from elements.portable.nv_enums import gpu_properties
from elements.portable.queries import FRAMES_HELD, answer, ask_source_id, asks_for
from elements.portable.video_buffer import VideoLayout

# NVIDIA's takes no RGB, which is what GPU decoding gives here
_CAPS = f"video/x-raw({NVMM}), format={{ NV12, RGBA, I420, RGB }}"

_BATCHES_BEHIND = 6  # in queues and elements behind the mux: pyinfer has up to four
_PATIENCE = 0.01  # s, between two looks at what may have changed while a source delivers nothing

_PROPERTIES = (
    Property("batch-size", "uint", 0, "Frames per batch; must be set", 0, 1024),
    Property("batched-push-timeout", int, -1, "Microseconds after a batch's first frame; -1: wait for ever", -1),
    Property("width", "uint", 0, "Width of the frames of a batch; must be set"),
    Property("height", "uint", 0, "Height of the frames of a batch; must be set"),
    Property("enable-padding", bool, False, "Keep the aspect ratio and pad with black, instead of stretching"),
    Property("live-source", bool, False, "Sources are live: at most one frame of each per batch, short waits"),
    Property("sync-inputs", bool, False, "Align frames of the inputs by time", effect=False),
    Property("max-latency", "uint", 0, "Nanoseconds, with sync-inputs", effect=False),
    Property("attach-sys-ts", bool, True, "ntp-timestamp is the wall clock; else the frame's PTS"),
    Property("num-surfaces-per-frame", "uint", 1, "Surfaces per frame", 1, 4, effect=False),
    Property("buffer-pool-size", "uint", 4, "Buffers in the output pool", 4, 1024, effect=False),
    Property("frame-num-reset-on-eos", bool, False, "Count a stream's frames from 0 again after its EOS"),
    Property("frame-num-reset-on-stream-reset", bool, False, "Count from 0 again after a reset", effect=False),
    Property("frame-duration", "uint64", 2**64 - 1, "Milliseconds, for NTP steps", effect=False),
    Property("async-process", bool, True, "Scale asynchronously", effect=False),
    Property("drop-pipeline-eos", bool, False, "Keep running when all sources have ended"),
    Property("drop-backward-sei", bool, False, "Drop frames whose SEI time goes back", effect=False),
    Property("extract-sei-type5-data", bool, False, "Read SEI user data", effect=False),
    Property("extract-sei-sim-time", bool, False, "Read simulation time from SEI", effect=False),
    Property("sort-batch", bool, False, "Sort a batch's frames", effect=False),
    Property("cache-buffer", bool, False, "Keep the last buffer of a source", effect=False),
    Property("cache-buffer-timeout", int, -1, "How long to keep it", effect=False),
    Property("align-first-buffer", bool, False, "Align the first buffers", effect=False),
    Property("align-inputs", bool, False, "Align inputs", effect=False),
    Property("sync-inputs-ntp", int, 0, "Align by NTP time", effect=False),
    Property("failsafe-flush-count", "uint", 4, "Flushes before failing", effect=False),
    *gpu_properties(),
)


# Pad functions are module functions: bound methods would make a cycle that keeps the element for ever.


def _sink_event(pad: Gst.Pad, parent: NvStreamMux, event: Gst.Event) -> bool:
    return parent.receive_event(pad, event)


def _sink_query(pad: Gst.Pad, parent: NvStreamMux, query: Gst.Query) -> bool:
    if query.type == Gst.QueryType.ALLOCATION:
        # decoders then hand out their own memory with its strides instead of copying each frame
        query.add_allocation_meta(GstVideo.video_meta_api_get_type(), None)
        return True
    if asks_for(query, FRAMES_HELD):
        return answer(query, parent.frames_held())
    if query.type == Gst.QueryType.ACCEPT_CAPS:
        query.set_accept_caps_result(True)  # the caps event says what is wrong, which "not-negotiated" does not
        return True
    return bool(pad.query_default(parent, query))


def _src_event(pad: Gst.Pad, parent: NvStreamMux, event: Gst.Event) -> bool:
    if event.type == Gst.EventType.QOS:
        return True
    return bool(pad.event_default(parent, event))


class NvStreamMux(PropertyTable, Gst.Element):
    """Frames wait in an `Intake` per source; one thread takes them, makes batches and pushes."""

    __gtype_name__ = "NvStreamMux"
    __gstmetadata__ = ("nvstreammux (CPU)", "Generic", "Batches frames of several sources", AUTHOR)
    __gsttemplates__ = (
        pad_template("sink_%u", Gst.PadDirection.SINK, Gst.PadPresence.REQUEST, _CAPS),
        pad_template("src", Gst.PadDirection.SRC, Gst.PadPresence.ALWAYS, _CAPS),
    )
    PROPERTIES = _PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self._lock = threading.Lock()  # guards everything below; not held while waiting for a frame
        self._changed = threading.Condition(self._lock)
        self._pads: dict[str, Source] = {}
        self._batcher = Batcher(1, False, None)
        self._intakes = Intakes()  # of the output's thread
        self._running = False
        self._thread: threading.Thread | None = None
        self._output = Gst.Pad.new_from_template(self.get_pad_template("src"), "src")
        self._output.set_event_function_full(_src_event)
        self._output.use_fixed_caps()
        self.add_pad(self._output)

    # --- pads ---------------------------------------------------------------------------------------------------------

    @guarded(None)
    def do_request_new_pad(self, template: Gst.PadTemplate, name: str | None, _caps: Gst.Caps | None) -> Gst.Pad | None:
        match = re.fullmatch(r"sink_(\d+)", name or "")
        if not match or name in self._pads:
            reason = "is taken" if match else "is needed; its number is the stream's pad index"
            Gst.warning(f"{self.get_name()}: pad request '{name}': a name sink_N {reason}")
            return None
        intake = Intake(QUEUE_LENGTH)
        pad = Gst.GhostPad.new_from_template(name, intake.pad, template)
        pad.set_event_function_full(_sink_event)
        pad.set_query_function_full(_sink_query)
        source = Source(int(match[1]), intake=intake, pad=pad)
        with self._lock:
            self._pads[pad.get_name()] = source
            self._batcher.inputs.append(source)
            if self._running:
                intake.open()
        pad.set_active(True)
        self.add_pad(pad)
        return requested(pad)

    def do_release_pad(self, pad: Gst.Pad) -> None:
        if "_pads" in self.__dict__:  # at dispose PyGObject may hand out a fresh wrapper
            with self._lock:
                source = self._pads.pop(pad.get_name(), None)
                if source:
                    source.ended = source.removed = True
                if source and (source.announced or not self._running):
                    self._batcher.inputs.remove(source)
                self._changed.notify()
            if source:
                source.intake.close()  # lets go the source's thread, for which the next line would wait
        pad.set_active(False)
        self.remove_pad(pad)

    # --- input: upstream's threads ------------------------------------------------------------------------------------

    def frames_held(self) -> int:
        """How many frames of one source this mux and what follows it hold at a time; from now on a promise."""
        with self._lock:
            share = -(-int(self.values["batch-size"]) // max(1, len(self._pads)))
            self._batcher.most = min(share, self._batcher.most or share)  # sources that came later lend the fewest
        return QUEUE_LENGTH + share * (1 + _BATCHES_BEHIND)

    @guarded(False)
    def receive_event(self, pad: Gst.Pad, event: Gst.Event) -> bool:
        """An event of one source. What concerns the batched stream is made anew by the output thread."""
        kind = event.type
        with self._lock:
            source = self._pads.get(pad.get_name())
        if source is None:
            return False
        if kind == Gst.EventType.CAPS:
            return self._check_caps(source, event.parse_caps()) and bool(pad.event_default(self, event))
        if kind in (Gst.EventType.CUSTOM_DOWNSTREAM, Gst.EventType.CUSTOM_DOWNSTREAM_OOB):
            return bool(self._output.push_event(event))
        with self._lock:
            if kind == Gst.EventType.EOS:
                source.finishing = True
                self._changed.notify()
            elif kind == Gst.EventType.STREAM_START and source.finishing:
                source.finishing = source.ended = source.announced = False
                if self.values["frame-num-reset-on-eos"]:
                    source.next_frame = 0
            elif kind == Gst.EventType.FLUSH_START:
                source.flushing = True
            elif kind == Gst.EventType.FLUSH_STOP:
                source.frames.clear()
                source.flushing = source.finishing = source.ended = False
        return kind == Gst.EventType.EOS or bool(pad.event_default(self, event))

    def _check_caps(self, source: Source, caps: Gst.Caps) -> bool:
        if not caps.get_features(0).contains(NVMM):
            text = f"{self.get_name()}: {source.name} got frames in system memory; put an nvvideoconvert before the mux"
            post_error(self, text, caps.to_string(), code=Gst.StreamError.WRONG_TYPE)
            return False
        VideoLayout.of_caps(caps)
        source_id = ask_source_id(source.pad)
        with self._lock:
            source.source_id = source.index if source_id is None else source_id
        return True

    # --- output: the mux's own thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        output = MuxOutput(self, self._output, self.values)
        while self._step(output):
            pass
        for source in list(self._sources()):  # nobody takes their frames any more
            source.intake.close()

    @guarded(False)
    def _step(self, output: MuxOutput) -> bool:
        """Wait for the end of a source or a batch, and push it. False when there is nothing more to do."""
        while True:
            missing = self._fetch()
            with self._lock:
                if not self._running:
                    return False
                ended = self._newly_ended()  # their last frames were pushed in an earlier step
                chosen: list[Any] = []
                if not ended and self._batch_ready():
                    chosen = self._batcher.take(time.monotonic())
                if ended or chosen:
                    break
                if not missing:
                    self._changed.wait(_PATIENCE)
            if missing:
                self._fetch_from(missing[0], _PATIENCE)
        self._announce(ended, output)
        flow = output.push(chosen) if chosen else Gst.FlowReturn.OK
        if flow != Gst.FlowReturn.OK:
            self._fail(flow)
        return bool(flow == Gst.FlowReturn.OK)

    def _fetch(self) -> list[Source]:
        """Take what waits and fits into the next batch. The sources that have nothing, awaited ones first."""
        empty: list[Source] = []
        while wanting := self._wanting(but=empty):
            finishing = [source.finishing for source in wanting]  # see _fetch_from
            empty += self._accept(wanting, self._intakes.take([source.intake for source in wanting]), finishing)
        return sorted((source for source in empty if not source.ended), key=lambda source: source.late)

    def _wanting(self, but: list[Source]) -> list[Source]:
        """The sources of which the next batch can take a frame, but those that were found empty.

        What the others want depends on which sources have ended, and so may change from one look to the next.
        """
        asked = set(but)
        with self._lock:
            return [source for source in self._batcher.wanting() if source not in asked]  # type: ignore[misc]

    def _fetch_from(self, source: Source, wait: float) -> None:
        """Take a frame of one source, if one comes within ``wait`` seconds."""
        finishing = [source.finishing]  # before looking for frames: those that came before the end count
        self._accept([source], [source.intake.take(wait)], finishing)

    def _accept(self, sources: list[Source], buffers: list[Gst.Buffer | None], finishing: list[bool]) -> list[Source]:
        """Let frames that were taken into the next batches. The sources that had none, which may be their end."""
        empty = []
        now = time.monotonic()
        with self._lock:
            for source, buffer, was_finishing in zip(sources, buffers, finishing, strict=True):
                if buffer is None:
                    source.ended |= was_finishing and source.finishing
                    empty.append(source)
                    continue
                if source.intake.caps_changed:
                    self._take_caps(source)
                if not source.flushing and source.layout is not None:
                    self._batcher.put(source, Frame(buffer, source.layout), now)
        return empty

    def _take_caps(self, source: Source) -> None:
        if source.intake.caps is None:
            raise ElementError(f"a frame came on {source.name} before its caps")
        source.take_caps(source.intake.caps)

    def _sources(self) -> list[Source]:
        return self._batcher.inputs  # type: ignore[return-value]

    def _newly_ended(self) -> list[Source]:
        return [s for s in self._sources() if s.ended and not s.frames and not s.announced]

    def _batch_ready(self) -> bool:
        timeout = self.values["batched-push-timeout"]
        self._batcher.timeout = None if timeout < 0 else timeout / 1e6
        return self._batcher.ready(time.monotonic())

    def _announce(self, ended: list[Source], output: MuxOutput) -> None:
        """Tell downstream which sources have ended, and the end of all."""
        for source in ended:
            output.announce_end_of(source)
        with self._lock:
            for source in ended:
                source.announced = True
                if source.removed:
                    self._batcher.inputs.remove(source)
            over = bool(ended and self._pads) and all(s.announced for s in self._sources())
        if over and not self.values["drop-pipeline-eos"]:
            output.end()

    def _fail(self, flow: Gst.FlowReturn) -> None:
        """Downstream refused a batch. The sources are refused from now on."""
        if flow in (Gst.FlowReturn.NOT_NEGOTIATED, Gst.FlowReturn.NOT_LINKED):
            caps = self._output.get_current_caps()
            text = f"{self.get_name()}: the next element took no batch ({flow.value_nick})"
            code = Gst.CoreError.PAD if flow == Gst.FlowReturn.NOT_LINKED else Gst.CoreError.NEGOTIATION
            post_error(self, text, f"caps: {caps and caps.to_string()}", domain=Gst.CoreError, code=code)
        if flow not in (Gst.FlowReturn.FLUSHING, Gst.FlowReturn.EOS):
            self._output.push_event(Gst.Event.new_eos())

    # --- states -------------------------------------------------------------------------------------------------------

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.NULL_TO_READY and not self._settings_are_right():
            return Gst.StateChangeReturn.FAILURE
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self.warn_of_ignored_properties()
            self._start()
        elif transition == Gst.StateChange.PAUSED_TO_READY:
            self._release_threads()
        result = Gst.Element.do_change_state(self, transition)
        failed = transition == Gst.StateChange.READY_TO_PAUSED and result == Gst.StateChangeReturn.FAILURE
        if transition == Gst.StateChange.PAUSED_TO_READY or failed:
            self._stop()
        return result

    def _settings_are_right(self) -> bool:
        missing = [name for name in ("width", "height", "batch-size") if not self.values[name]]
        if self.values["sync-inputs"] and self.values["batched-push-timeout"] < 0:
            missing.append("batched-push-timeout (sync-inputs needs it)")
        if missing:
            text = f"{self.get_name()}: nvstreammux cannot start without {', '.join(missing)}"
            post_error(self, text, domain=Gst.LibraryError, code=Gst.LibraryError.SETTINGS)
        return not missing

    def _start(self) -> None:
        with self._lock:
            sources = [s for s in self._sources() if not s.removed]
            self._batcher = Batcher(self.values["batch-size"], self.values["live-source"], None)
            self._batcher.inputs = [Source(s.index, intake=s.intake, pad=s.pad) for s in sources]
            self._pads = {s.name: s for s in self._sources()}
            self._running = True
            for source in self._sources():
                source.intake.open()
        self._thread = threading.Thread(target=self._run, name=f"{self.get_name()}-batches", daemon=True)
        self._thread.start()

    def _release_threads(self) -> None:
        """Let everybody who waits here go, so that pads can be deactivated."""
        with self._lock:
            self._running = False
            self._changed.notify()
            sources = list(self._sources())
        for source in sources:
            source.intake.close()

    def _stop(self) -> None:
        """Wait for the output thread and give every frame back: a decoder's pool is only freed as a whole.

        The pads are inactive by now, so the thread's push has returned or will.
        """
        self._release_threads()
        thread, self._thread = self._thread, None
        if thread:
            thread.join()
        with self._lock:
            for source in self._sources():
                source.frames.clear()
                source.pad.set_target(source.intake.renew())


GObject.type_register(NvStreamMux)
FACTORIES = {"nvstreammux": NvStreamMux}

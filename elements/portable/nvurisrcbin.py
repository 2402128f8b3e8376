"""Stand-in for nvurisrcbin: any URI to upright frames labelled NVMM, with repeating files and reconnecting cameras."""

from __future__ import annotations

import logging
import threading
from typing import Any

import gi

from elements.base import (
    AUTHOR,
    NVMM,
    GLib,
    GObject,
    Gst,
    PropertyTable,
    all_of,
    gproperties,
    guarded,
    keep_floating,
    pad_template,
)
from elements.ending import end_pad
from elements.media_problems import DAMAGED, explain, location, no_video, split_credentials, uri_problem
from elements.portable import nvidia
from elements.portable.decoding import (
    chain,
    frames_to_nvmm,
    is_video_decoder,
    is_wanted,
    keep_each,
    make,
    set_up_decoder,
)
from elements.portable.frame_queue import frame_queue
from elements.portable.looping import FileLoop
from elements.portable.queries import SOURCE_ID, answer, asks_for
from elements.portable.reconnect import Reconnector, ReconnectPolicy
from elements.portable.rtsp import camera_problem, is_pushing, is_rtsp, set_up_rtspsrc
from elements.portable.source_properties import PROPERTIES, SOURCE_AUTO, SOURCE_RTSP
from elements.start_watch import StartWatch

gi.require_version("GstPbutils", "1.0")
from gi.repository import GstPbutils  # noqa: E402

log = logging.getLogger("gstorch.source")


def _answer_queries(pad: Gst.Pad, parent: NvUriSrcBin, query: Gst.Query) -> bool:
    if asks_for(query, SOURCE_ID) and parent.values["source-id"] >= 0:
        return answer(query, parent.values["source-id"])
    return bool(pad.query_default(parent, query))


class NvUriSrcBin(PropertyTable, Gst.Bin):
    """Decodes one URI in software, or on the GPU where `elements.portable.nvidia` can.

    Inside: ``uridecodebin ! videoconvert ! capsfilter ! videoflip ! identity [! queue] ! relabel``; on the GPU
    ``uridecodebin ! videoconvert ! capsfilter ! DecodedFrames [! queue] ! identity``. All but the
    first stay while the source is reconnected, so the src pad and what follows never notice more than a pause.

    Bus messages: exactly one ERROR when the source fails for good, its text begins with the path or URI (without
    user and password). Element messages of a live source that reconnects: ``source-lost`` and ``source-recovered``
    (source-id, reason, attempt), ``reconnect-attempt-exceeded`` (source_id, attempt_exceeded, reason).
    """

    __gtype_name__ = "NvUriSrcBin"
    __gstmetadata__ = ("nvurisrcbin (CPU)", "Source/Video", "Decodes a file or stream to NVMM frames", AUTHOR)
    __gsttemplates__ = (
        pad_template("vsrc_%u", Gst.PadDirection.SRC, Gst.PadPresence.SOMETIMES, f"video/x-raw({NVMM}); video/x-raw"),
        pad_template("asrc_%u", Gst.PadDirection.SRC, Gst.PadPresence.SOMETIMES, "audio/x-raw(ANY)"),
    )
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_property("async-handling", True)
        self._credentials = ("", "")
        self._lock = threading.Lock()  # guards _inner against the reconnector's thread
        self._reset()

    def _reset(self) -> None:
        self._inner: Gst.Element | None = None
        self._tail: list[Gst.Element] = []
        self._loop: FileLoop | None = None
        self._start_watch: StartWatch | None = None
        self._reconnector: Reconnector | None = None
        self._exposed: Gst.Pad | None = None
        self._other_streams: list[str] = []
        self._missing_plugins: list[str] = []
        self._failed = False
        self._ending = False
        self.values["frames-dropped"] = 0

    # --- properties ---------------------------------------------------------------------------------------------------

    def property_changed(self, name: str, value: Any) -> None:
        if name == "uri" and value:  # user and password stay out of everything that can be read or logged
            self.values["uri"], *credentials = split_credentials(value)
            self._credentials = (credentials[0], credentials[1])
        elif name == "file-loop" and not value and self._loop:
            self._loop.end()

    @property
    def _location(self) -> str:
        return location(self.values["uri"] or "")

    @property
    def _live(self) -> bool:
        kind = self.values["type"]
        return bool(kind == SOURCE_RTSP or (kind == SOURCE_AUTO and is_rtsp(self.values["uri"] or "")))

    @property
    def _reconnects(self) -> bool:
        return bool(self._live and self.values["rtsp-reconnect-interval"] > 0)

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self._start()
        elif transition == Gst.StateChange.PAUSED_TO_READY:
            self._stop_threads()
            if self._loop:
                self._loop.stop()
        if self._reconnector and transition == Gst.StateChange.PLAYING_TO_PAUSED:
            self._reconnector.watch(False)
        result = Gst.Bin.do_change_state(self, transition)
        if self._start_watch and transition == Gst.StateChange.READY_TO_PAUSED:
            self._start_watch.start()
        if self._reconnector and transition == Gst.StateChange.PAUSED_TO_PLAYING:
            self._reconnector.watch(True)
        elif transition == Gst.StateChange.PAUSED_TO_READY:
            self._dismantle()
        return result

    def _start(self) -> None:
        """Build the inside; a source that cannot work posts its ERROR and lets the rest of the pipeline start."""
        self._reset()
        on_gpu = nvidia.decodes_on_gpu()
        self.warn_of_ignored_properties(nvidia.DECODER_PROPERTIES if on_gpu else ())
        if problem := uri_problem(self.values["uri"], self.values["file-loop"]):
            self._fail(problem)
            return
        self._tail = nvidia.frames_in_gpu_memory(self.values) if on_gpu else frames_to_nvmm(for_source=True)
        if self.user_set & {"leaky", "max-size-buffers"}:
            limit, leaky = self.values["max-size-buffers"], int(self.values["leaky"])
            self._tail.insert(-1, frame_queue(limit, leaky, self._count_dropped))
        chain(self, *self._tail)
        for element in reversed(self._tail):  # a pad that is not active yet would drop frames and end the stream
            element.set_state(Gst.State.PAUSED)
        keep_each(self._tail[0].get_static_pad("src"), self.values["drop-frame-interval"])
        if self._reconnects:
            self._reconnector = Reconnector(self, self._policy(), self.get_name())
            self._reconnector.start()
        self._add_inner()

    def _policy(self) -> ReconnectPolicy:
        interval = self.values["rtsp-reconnect-interval"]
        return ReconnectPolicy(
            interval=interval,
            first_interval=self.values["init-rtsp-reconnect-interval"] or interval,
            attempts=self.values["rtsp-reconnect-attempts"],
            first_pause=self.values["gstorch-reconnect-backoff-min"],
            longest_pause=self.values["gstorch-reconnect-backoff-max"],
        )

    def _stop_threads(self) -> None:
        self._ending = True
        if self._loop:
            self._loop.end()
        if self._start_watch:
            self._start_watch.done()
        if self._reconnector:
            self._reconnector.stop()

    def _dismantle(self) -> None:
        """Remove everything inside, so that the next start begins afresh."""
        for pad in all_of(self.iterate_src_pads()):
            pad.set_active(False)
            self.remove_pad(pad)
        for element in [*self._tail, *([self._inner] if self._inner else [])]:
            element.set_state(Gst.State.NULL)
            self.remove(element)
        self._tail, self._inner, self._reconnector, self._loop, self._exposed = [], None, None, None, None

    @guarded(False)
    def do_send_event(self, event: Gst.Event) -> bool:
        """An EOS from the application ends live and repeating sources, too, and after whole frames only."""
        if event.type != Gst.EventType.EOS or not self._tail:
            return bool(Gst.Bin.do_send_event(self, event))
        self._stop_threads()
        end_pad(self._tail[0].get_static_pad("sink"), self.get_name())
        return True

    # --- the decoding element -----------------------------------------------------------------------------------------

    def _add_inner(self) -> Gst.Bin:
        inner = make("uridecodebin", force_sw_decoders=not nvidia.decodes_on_gpu())
        inner.set_property("uri", self.values["uri"])
        inner.connect("autoplug-continue", self._wants)
        inner.connect("autoplug-select", nvidia.select_decoder, self._location)
        inner.connect("source-setup", self._set_up_source)
        inner.connect("deep-element-added", self._set_up_element)
        inner.connect("pad-added", self._pad_added)
        inner.connect("no-more-pads", self._no_more_pads)
        with self._lock:
            self._inner = inner
        if not self._live:  # before anything runs: a short file may be decoded in no time
            self._start_watch = StartWatch(inner, lambda: self._fail(DAMAGED))
        self.add(inner)
        return inner

    def _set_up_source(self, _inner: Gst.Element, source: Gst.Element) -> None:
        if source.get_factory().get_name() == "rtspsrc":
            set_up_rtspsrc(source, self.values, self.user_set, self._credentials)

    def _set_up_element(self, _inner: Gst.Element, _parent: Gst.Bin, element: Gst.Element) -> None:
        if nvidia.is_its_decoder(element.get_factory()):
            nvidia.set_up_decoder(element, self.values)
        elif is_video_decoder(element):
            set_up_decoder(element, threads=1, skip=int(self.values["dec-skip-frames"]))

    def _wants(self, _inner: Gst.Element, _pad: Gst.Pad, stream: Gst.Caps) -> bool:
        return is_wanted(stream, audio=not self.values["disable-audio"])

    def _pad_added(self, inner: Gst.Element, pad: Gst.Pad) -> None:
        stream = pad.get_current_caps() or pad.query_caps(None)
        kind = stream[0].get_name()
        if kind == "video/x-raw" and not self._tail[0].get_static_pad("sink").is_linked():
            self._take_video(pad)
        elif kind == "audio/x-raw" and not self.values["disable-audio"]:
            self._expose("asrc_%u", pad)
        else:
            self._other_streams.append(GstPbutils.pb_utils_get_codec_description(stream) or kind)

    def _take_video(self, pad: Gst.Pad) -> None:
        if self._live:
            pad.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, self._end_means_lost)
            if self._reconnector:
                pad.add_probe(Gst.PadProbeType.BUFFER, self._count_frame)
        elif self.values["file-loop"]:
            self._loop = FileLoop(pad, self._tail[0].get_static_pad("src"), self._fail)
        pad.link(self._tail[0].get_static_pad("sink"))
        if self._exposed is None:
            self._exposed = self._expose("vsrc_%u", self._tail[-1].get_static_pad("src"))

    def _expose(self, template_name: str, target: Gst.Pad) -> Gst.Pad:
        number = sum(pad.get_name().startswith(template_name[:5]) for pad in all_of(self.iterate_src_pads()))
        template = self.get_pad_template(template_name)
        ghost = Gst.GhostPad.new_from_template(template_name.replace("%u", str(number)), target, template)
        ghost.set_query_function_full(_answer_queries)
        ghost.set_active(True)
        self.add_pad(ghost)
        return ghost

    def _no_more_pads(self, _inner: Gst.Element) -> None:
        if self._start_watch:
            self._start_watch.done()
        if self._tail[0].get_static_pad("sink").is_linked():
            return
        problem = no_video(self._other_streams)
        if self._reconnector:
            self._reconnector.lost(problem)
        else:
            self._fail(problem)

    # --- frames and events of the decoding element, on streaming threads ----------------------------------------------

    def _count_frame(self, _pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if self._reconnector:
            self._reconnector.frame()
        return Gst.PadProbeReturn.OK

    def _count_dropped(self, frames: int) -> None:
        self.values["frames-dropped"] += frames

    def _end_means_lost(self, _pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if info.get_event().type != Gst.EventType.EOS or self._ending or self._is_refused():
            return Gst.PadProbeReturn.OK
        if self._reconnector:
            self._reconnector.lost("the stream ended")
            return Gst.PadProbeReturn.DROP
        self._fail("lost: the stream ended")
        return Gst.PadProbeReturn.OK

    def _is_refused(self) -> bool:
        """Whether what follows wants no more frames, so that it is not the camera that ended."""
        return bool(self._tail[-1].get_static_pad("src").get_last_flow_return() == Gst.FlowReturn.EOS)

    # --- LiveSource: called by the reconnector on its thread ----------------------------------------------------------

    def connect_source(self) -> None:
        """Start a new decoding element behind the same pad."""
        self._missing_plugins.clear()
        self._other_streams.clear()
        inner = self._add_inner()
        inner.set_state(Gst.State.PAUSED)  # a live one would stop here, and GstBin does not always help it on
        inner.set_state(self.target_state)

    def disconnect_source(self) -> None:
        """Remove the decoding element."""
        with self._lock:
            inner, self._inner = self._inner, None
        if inner:
            inner.set_locked_state(True)  # a state change of the pipeline must not wake it meanwhile
            inner.set_state(Gst.State.NULL)
            self.remove(inner)

    def is_stalled_downstream(self) -> bool:
        """Whether a frame that came is still on its way through what follows."""
        peer = self._tail[0].get_static_pad("sink").get_peer()
        return peer is not None and is_pushing(peer)

    def source_lost(self, reason: str, attempt: int) -> None:
        """Post ``source-lost``."""
        log.debug("%s: lost: %s; reconnecting, attempt %d", self._location, reason, attempt)
        self._announce("source-lost", {"source-id": self.values["source-id"], "reason": reason, "attempt": attempt})

    def source_recovered(self, attempt: int) -> None:
        """Post ``source-recovered``."""
        log.debug("%s: recovered, attempt %d", self._location, attempt)
        self._announce("source-recovered", {"source-id": self.values["source-id"], "reason": "", "attempt": attempt})

    def source_given_up(self, reason: str, attempts: int) -> None:
        """Post ``reconnect-attempt-exceeded`` as DeepStream does, and end the stream."""
        log.debug("%s: given up after %d attempts: %s", self._location, attempts, reason)
        fields = {"source_id": self.values["source-id"], "attempt_exceeded": True, "reason": reason}
        self._announce("reconnect-attempt-exceeded", fields)
        if self._exposed:
            self._tail[0].get_static_pad("sink").send_event(Gst.Event.new_eos())
        else:
            self._fail(f"cannot connect, given up after {attempts} attempts: {reason}")

    def _announce(self, name: str, fields: dict[str, Any]) -> None:
        structure = Gst.Structure.new_empty(name)
        for key, value in fields.items():
            structure.set_value(key, value)
        self.post_message(Gst.Message.new_element(self, structure))

    # --- errors -------------------------------------------------------------------------------------------------------

    def do_handle_message(self, message: Gst.Message) -> None:
        if message.type == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            self._child_error(error, debug, message.parse_error_details())
            return
        if message.type == Gst.MessageType.WARNING and self._reconnector:  # what it warns of is the loss that follows
            log.debug("%s: %s: %s", self._location, *message.parse_warning())
            return
        if message.type == Gst.MessageType.ELEMENT and GstPbutils.is_missing_plugin_message(message):
            self._missing_plugins.append(GstPbutils.missing_plugin_message_get_description(message))
        Gst.Bin.do_handle_message(self, message)

    def _child_error(self, error: GLib.Error, debug: str, details: Gst.Structure | None) -> None:
        """Turn a child's ERROR into a loss (cameras that reconnect) or into the one ERROR of this source."""
        flow = details.get_int("flow-return") if details else (False, 0)
        if flow[0] and flow[1] < Gst.FlowReturn.EOS and not self._reconnects:
            reason = Gst.flow_get_name(Gst.FlowReturn(flow[1]))
            self._fail(f"stopped because what follows it failed ({reason})", debug, error)
            return
        text = (camera_problem(error) if self._live else None) or explain(error, self._missing_plugins)
        if self._reconnector:
            log.debug("%s: %s: %s", self._location, text, debug)
            self._reconnector.lost(text)
        else:
            self._fail(text, debug, error)

    def _fail(self, text: str, debug: str | None = None, error: GLib.Error | None = None) -> None:
        """Post the ERROR of this source; later ones are only logged."""
        name = self._location or self.get_name()
        if self._failed or self._ending:
            log.debug("%s: also: %s (%s)", name, text, debug)
            return
        self._failed = True
        if self._start_watch:
            self._start_watch.done()
        quark, code = Gst.StreamError.quark(), int(Gst.StreamError.FAILED)
        if error is not None:
            quark, code = GLib.quark_from_string(error.domain), error.code
        report = GLib.Error.new_literal(quark, f"{name}: {text}", code)
        Gst.Bin.do_handle_message(self, Gst.Message.new_error(self, report, debug or ""))


GObject.type_register(NvUriSrcBin)
FACTORIES: dict[str, type[Gst.Element]] = {"nvurisrcbin": NvUriSrcBin}

"""nvstreamdemux for host frames: each frame of a batch goes to the src pad of its stream."""

from __future__ import annotations

import re
from dataclasses import dataclass

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    guarded,
    keep_floating,
    pad_template,
    requested,
)
from elements.portable.carrier import detached_batch, push_batch
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.stream_events import ended_stream

_CAPS = f"video/x-raw({NVMM})"
_PASSED = (Gst.FlowReturn.OK, Gst.FlowReturn.NOT_LINKED)


@dataclass(slots=True, eq=False)
class _Stream:
    """One src pad. ``caps`` are those it was last sent."""

    pad: Gst.Pad
    caps: Gst.Caps | None = None
    ended: bool = False
    finished: bool = False  # downstream wants no more (flow EOS)


# Pad functions are module functions: bound methods would make a cycle that keeps the element for ever.


def _chain(_pad: Gst.Pad, parent: NvStreamDemux, buffer: Gst.Buffer) -> Gst.FlowReturn:
    return parent.split(buffer)


def _event(pad: Gst.Pad, parent: NvStreamDemux, event: Gst.Event) -> bool:
    return parent.receive_event(pad, event)


class NvStreamDemux(Gst.Element):
    """Splits batches by ``pad_index``; streams without a linked pad are left out, as with NVIDIA's."""

    __gtype_name__ = "NvStreamDemux"
    __gstmetadata__ = ("nvstreamdemux (CPU)", "Generic", "Splits batches into their streams", AUTHOR)
    __gsttemplates__ = (
        pad_template("sink", Gst.PadDirection.SINK, Gst.PadPresence.ALWAYS, _CAPS),
        pad_template("src_%u", Gst.PadDirection.SRC, Gst.PadPresence.REQUEST, _CAPS),
    )

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self._streams: dict[int, _Stream] = {}
        self._batch_caps: Gst.Caps | None = None
        sink = Gst.Pad.new_from_template(self.get_pad_template("sink"), "sink")
        sink.set_chain_function_full(_chain)
        sink.set_event_function_full(_event)
        self.add_pad(sink)

    @guarded(None)
    def do_request_new_pad(self, template: Gst.PadTemplate, name: str | None, _caps: Gst.Caps | None) -> Gst.Pad | None:
        match = re.fullmatch(r"src_(\d+)", name or "")
        if not match or int(match[1]) in self._streams:
            reason = "is taken" if match else "is needed; its number is the stream's pad index"
            Gst.warning(f"{self.get_name()}: pad request '{name}': a name src_N {reason}")
            return None
        pad = Gst.Pad.new_from_template(template, name)
        pad.use_fixed_caps()
        self._streams[int(match[1])] = _Stream(pad)
        pad.set_active(True)
        self.add_pad(pad)
        return requested(pad)

    def do_release_pad(self, pad: Gst.Pad) -> None:
        if "_streams" in self.__dict__:  # at dispose PyGObject may hand out a fresh wrapper
            self._streams.pop(int(pad.get_name().removeprefix("src_")), None)
        pad.set_active(False)
        self.remove_pad(pad)

    @guarded(Gst.FlowReturn.ERROR)
    def split(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Push each frame as a batch of one, with its own PTS."""
        batch = detached_batch(buffer)
        if batch is None:
            raise ElementError("the buffer carries no batch metadata; put an nvstreammux before nvstreamdemux")
        for frame in batch.frames:
            stream = self._streams.get(frame.pad_index)
            if stream and not stream.finished and stream.pad.is_linked():
                self._start(frame.pad_index, stream)
                flow = push_batch(stream.pad, _single(batch, frame), frame.buffer_pts, frame.duration)
                stream.finished = flow == Gst.FlowReturn.EOS
                if flow not in _PASSED and flow != Gst.FlowReturn.EOS:
                    return flow
        linked = [s for s in self._streams.values() if s.pad.is_linked()]
        return Gst.FlowReturn.EOS if linked and all(s.finished for s in linked) else Gst.FlowReturn.OK

    @guarded(False)
    def receive_event(self, pad: Gst.Pad, event: Gst.Event) -> bool:
        """Events of the batched stream become events of the single streams."""
        ended = ended_stream(event)
        if ended is not None:
            if ended in self._streams:
                self._end(ended)
            return True
        kind = event.type
        if kind == Gst.EventType.CAPS:
            self._batch_caps = event.parse_caps()
        elif kind == Gst.EventType.EOS:
            for index in list(self._streams):
                self._end(index)
        elif kind not in (Gst.EventType.STREAM_START, Gst.EventType.SEGMENT):
            return bool(pad.event_default(self, event))
        return True

    def _start(self, index: int, stream: _Stream) -> None:
        """Stream start, caps and segment, where they are due."""
        if stream.caps is None or stream.ended:
            start = Gst.Event.new_stream_start(f"{self.get_name()}/{index}")
            start.set_group_id(Gst.util_group_id_next())
            stream.pad.push_event(start)
        if self._batch_caps is not None and stream.caps is not self._batch_caps:
            single = self._batch_caps.copy()
            single.set_value("batch-size", 1)
            stream.pad.push_event(Gst.Event.new_caps(single))
        if stream.caps is None or stream.ended:
            segment = Gst.Segment()
            segment.init(Gst.Format.TIME)
            stream.pad.push_event(Gst.Event.new_segment(segment))
        stream.caps, stream.ended = self._batch_caps, False

    def _end(self, index: int) -> None:
        stream = self._streams[index]
        if not stream.ended:
            self._start(index, stream)
            stream.ended = True
            stream.pad.push_event(Gst.Event.new_eos())

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self._batch_caps = None
            for index, stream in self._streams.items():
                self._streams[index] = _Stream(stream.pad)
        return Gst.Element.do_change_state(self, transition)


def _single(batch: BatchMeta, frame: FrameMeta) -> BatchMeta:
    """A batch of that frame alone; the demuxed batch is ours, so nothing has to be copied."""
    surface = batch.surfaces[frame.batch_id]
    frame.batch_id = 0
    return BatchMeta(max_frames=1, frames=[frame], surfaces=[surface], user=list(batch.user))


GObject.type_register(NvStreamDemux)
FACTORIES = {"nvstreamdemux": NvStreamDemux}

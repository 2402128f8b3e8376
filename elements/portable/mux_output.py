"""The output side of nvstreammux: frames in, batches and the events of the batched stream out."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elements.base import NVMM, Gst
from elements.metadata.placement import Placement
from elements.portable.batching import Input
from elements.portable.carrier import push_batch
from elements.portable.held_frames import HeldFrames
from elements.portable.intake import Intake
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.stream_events import stream_eos, stream_eos_message
from elements.portable.surface import Surface
from elements.portable.video_buffer import VideoLayout
from elements.portable.wrapping import buffer_times

_DEFAULT_RATE = (30, 1)  # frames per second that NVIDIA's mux assumes where caps have none


@dataclass(slots=True, eq=False, kw_only=True)
class Source(Input):
    """One sink pad of the mux. ``layout`` and ``rate`` are those of the frame that was taken last.

    ``finishing`` says that an EOS came; the source has ``ended`` when also all its frames were taken.
    """

    intake: Intake
    pad: Gst.Pad
    layout: VideoLayout | None = None
    rate: tuple[int, int] | None = None
    frame_duration: int = 0  # ns, by the rate
    source_id: int = 0
    next_frame: int = 0
    next_pts: int | None = None  # ns, where the frame before ends
    flushing: bool = False
    finishing: bool = False
    announced: bool = False  # its end has been told downstream
    removed: bool = False

    @property
    def name(self) -> str:
        return f"sink_{self.index}"

    def take_caps(self, caps: Gst.Caps) -> None:
        """Those of the frames that follow.

        Raises:
            ElementError: if they are not raw video that is read here.
        """
        self.layout = VideoLayout.of_caps(caps)
        found, numerator, denominator = caps[0].get_fraction("framerate")
        self.rate = (numerator, denominator) if found else None
        if not found or not numerator:  # variable ones are 0/1
            numerator, denominator = _DEFAULT_RATE
        self.frame_duration = Gst.SECOND * denominator // numerator


@dataclass(slots=True)
class Frame:
    """A decoded frame with the layout that was valid when it came."""

    buffer: Gst.Buffer
    layout: VideoLayout


class MuxOutput:
    """Makes batches and pushes them on the mux's src pad; used by one thread.

    ``properties`` are the mux's, read anew for each batch.
    """

    def __init__(self, mux: Gst.Element, pad: Gst.Pad, properties: Mapping[str, Any]) -> None:
        self._mux, self._pad, self._properties = mux, pad, properties
        self._format = ""
        self._begun = self._caps_sent = False
        self._clock = 0  # ns, output time of the next batch when the sources are not live

    def push(self, chosen: list[tuple[Source, Frame]]) -> Gst.FlowReturn:
        """Push one batch, as `Batcher.take` gives it: round after round of the sources by their pads' numbers.

        The list is emptied, so that nobody but the batch holds the frames.
        """
        first, last = chosen[0][0], chosen[-1][0]
        self._start_stream(first)
        batch = self._batch_of(chosen)
        pts, duration = self._clock, first.frame_duration
        if self._properties["live-source"]:
            pts = self._running_time()
        else:
            self._clock += duration * sum(source is last for source, _ in chosen)  # which is in every round
        chosen.clear()
        return push_batch(self._pad, batch, pts, duration)

    def _batch_of(self, chosen: list[tuple[Source, Frame]]) -> BatchMeta:
        held = HeldFrames([frame.buffer for _, frame in chosen])
        batch = BatchMeta(max_frames=self._properties["batch-size"], held=held)
        mux, padding = (self._properties["width"], self._properties["height"]), self._properties["enable-padding"]
        now = time.time_ns() if self._properties["attach-sys-ts"] else None
        for batch_id, (source, frame) in enumerate(chosen):
            buffer, layout, number = frame.buffer, frame.layout, source.next_frame
            source.next_frame = number + 1
            size = (layout.width, layout.height)
            batch.surfaces.append(Surface.placed(buffer, layout, mux, self._format, _placement(size, mux, padding)))
            times = buffer_times(hash(buffer))
            pts = self._timestamp(source, times.pts)
            ntp = pts if now is None else now
            # by place, in the order of the attributes: by name it takes twice as long
            batch.frames.append(
                FrameMeta(source.index, source.source_id, batch_id, number, pts, times.duration, ntp, *size, *mux)
            )
        return batch

    def announce_end_of(self, source: Source) -> None:
        """Tell the elements downstream and, through the sinks, the application that one source has ended."""
        self._start_stream(None)
        self._pad.push_event(stream_eos(source.index))
        self._pad.push_event(stream_eos_message(self._mux, source.index))

    def end(self) -> None:
        """End of the batched stream; what is pushed later begins a new one."""
        self._start_stream(None)
        self._pad.push_event(Gst.Event.new_eos())
        self._begun = self._caps_sent = False

    def _timestamp(self, source: Source, pts: int) -> int:
        """The frame's own; for one without, where the frame before ends, or now (a camera's first may have none).

        Muxers of files refuse a stream that begins without.
        """
        if pts == Gst.CLOCK_TIME_NONE:
            now = self._running_time() if self._properties["live-source"] else 0
            pts = now if source.next_pts is None else source.next_pts
        source.next_pts = pts + source.frame_duration
        return pts

    def _start_stream(self, first: Source | None) -> None:
        """Stream start, before the first batch also caps and segment; ``first`` gives format and frame rate for all."""
        if not self._begun:
            self._begun = True
            start = Gst.Event.new_stream_start(f"{self._mux.get_name()}/batch")
            start.set_group_id(Gst.util_group_id_next())
            self._pad.push_event(start)
        if first and not self._caps_sent:
            self._caps_sent = True
            self._format = first.layout.format if first.layout else ""
            self._pad.push_event(Gst.Event.new_caps(self._batched_caps(first.rate or _DEFAULT_RATE)))
            segment = Gst.Segment()
            segment.init(Gst.Format.TIME)
            self._pad.push_event(Gst.Event.new_segment(segment))

    def _batched_caps(self, rate: tuple[int, int]) -> Gst.Caps:
        width, height, size = (self._properties[key] for key in ("width", "height", "batch-size"))
        return Gst.Caps.from_string(
            f"video/x-raw({NVMM}), format={self._format}, width={width}, height={height}, "
            f"framerate={rate[0]}/{rate[1]}, batch-size={size}, num-surfaces-per-frame=1"
        )

    def _running_time(self) -> int:
        clock = self._mux.get_clock()
        return max(0, clock.get_time() - self._mux.get_base_time()) if clock else 0


_placement = functools.lru_cache(64)(Placement.of)

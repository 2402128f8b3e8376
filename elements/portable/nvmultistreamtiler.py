"""nvmultistreamtiler for host frames: one picture of all streams of a batch.

NVIDIA's element makes one canvas of each batch, so of several frames of one source only the last is seen. Here each
round of a batch (the first frame of each source, then the second ones, and so on) gets a canvas of its own, with the
latest PTS of its frames, so a tiled video loses no frame.
"""

from __future__ import annotations

from typing import Any

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    post_error,
    sink_and_src,
)
from elements.portable.carrier import detached_batch, push_batch
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.nv_enums import gpu_properties
from elements.portable.stream_events import ended_stream
from elements.portable.surface import Surface
from elements.portable.tiling import Canvas, Grid

_CAPS = f"video/x-raw({NVMM}), format={{ NV12, RGBA, I420, RGB }}"
_FALLBACK_DURATION = Gst.SECOND // 30

_PROPERTIES = (
    Property("rows", "uint", 1, "Rows of tiles", 1),
    Property("columns", "uint", 1, "Columns of tiles", 1),
    Property("width", "uint", 1920, "Width of the picture, rounded up to a multiple of 4", 16),
    Property("height", "uint", 1080, "Height of the picture", 16),
    Property("show-source", int, -1, "Show this source alone; -1: all", -1),
    Property("square-seq-grid", bool, False, "Grids that grow for more sources are square"),
    *gpu_properties(interpolation=0),
    Property("buffer-pool-size", "uint", 5, "Buffers in the output pool", 4, 10, effect=False),
)
_GEOMETRY = ("rows", "columns", "width", "height", "square-seq-grid")


# Pad functions are module functions: bound methods would make a cycle that keeps the element for ever.


def _chain(_pad: Gst.Pad, parent: NvMultiStreamTiler, buffer: Gst.Buffer) -> Gst.FlowReturn:
    return parent.tile(buffer)


def _event(pad: Gst.Pad, parent: NvMultiStreamTiler, event: Gst.Event) -> bool:
    return parent.receive_event(pad, event)


class NvMultiStreamTiler(PropertyTable, Gst.Element):
    """Tile N shows pad N, stretched; objects and drawings of all streams lie on the one frame that comes out."""

    __gtype_name__ = "NvMultiStreamTiler"
    __gstmetadata__ = (
        "nvmultistreamtiler (CPU)",
        "Filter/Video",
        "Shows all streams of a batch in one picture",
        AUTHOR,
    )
    __gsttemplates__ = sink_and_src(_CAPS)
    PROPERTIES = _PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self._canvas: Canvas | None = None
        self._last_pts = -1
        sink = Gst.Pad.new_from_template(self.get_pad_template("sink"), "sink")
        sink.set_chain_function_full(_chain)
        sink.set_event_function_full(_event)
        self.add_pad(sink)
        self._output = Gst.Pad.new_from_template(self.get_pad_template("src"), "src")
        self._output.use_fixed_caps()
        self.add_pad(self._output)

    def property_changed(self, name: str, value: Any) -> None:
        if name in _GEOMETRY:
            self._canvas = None

    @guarded(Gst.FlowReturn.ERROR)
    def tile(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Push one canvas for each round of the batch."""
        batch = detached_batch(buffer)
        if batch is None:
            raise ElementError("the buffer carries no batch metadata; put an nvstreammux before nvmultistreamtiler")
        canvas = self._canvas = self._canvas or self._new_canvas()
        duration = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else _FALLBACK_DURATION
        user = batch.user
        for number, frames in enumerate(_rounds(batch)):
            times = [frame.buffer_pts for frame, _ in frames if frame.buffer_pts != Gst.CLOCK_TIME_NONE]
            pts = self._next_pts(max(times) if times else buffer.pts + number * duration, duration)
            frame, surface = canvas.compose(frames, self.values["show-source"])
            frame.buffer_pts, frame.duration = pts, duration
            tiled = BatchMeta(max_frames=1, frames=[frame], surfaces=[surface], user=user)
            flow = push_batch(self._output, tiled, pts, duration)
            user = []
            if flow == Gst.FlowReturn.NOT_NEGOTIATED:
                caps = self._output.get_current_caps()
                raise ElementError(
                    f"the next element does not take {caps.to_string() if caps else 'frames without caps'}"
                )
            if flow != Gst.FlowReturn.OK:
                return flow
        return Gst.FlowReturn.OK

    def _next_pts(self, wanted: int, duration: int) -> int:
        """Encoders need rising times, also where sources of different rates advance frame by frame."""
        self._last_pts = wanted if wanted > self._last_pts else self._last_pts + duration
        return self._last_pts

    def _new_canvas(self) -> Canvas:
        values = self.values
        return Canvas(
            Grid(values["rows"], values["columns"], self._width(), values["height"]), values["square-seq-grid"]
        )

    def _width(self) -> int:
        return int(-(-self.values["width"] // 4) * 4)

    @guarded(False)
    def receive_event(self, pad: Gst.Pad, event: Gst.Event) -> bool:
        """Caps of the batch become those of the canvas; a stream that ends turns black."""
        ended = ended_stream(event)
        if ended is not None and self._canvas:
            self._canvas.end(ended)
        if event.type == Gst.EventType.CAPS:
            tiled = event.parse_caps().copy()
            for field, value in (("width", self._width()), ("height", self.values["height"]), ("batch-size", 1)):
                tiled.set_value(field, value)
            if not self._output.push_event(Gst.Event.new_caps(tiled)):
                post_error(self, f"{self.get_name()}: the next element does not take {tiled.to_string()}")
                return False
            return True
        return bool(pad.event_default(self, event))

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self.warn_of_ignored_properties()
            self._canvas, self._last_pts = None, -1
        return Gst.Element.do_change_state(self, transition)


def _rounds(batch: BatchMeta) -> list[list[tuple[FrameMeta, Surface]]]:
    """The k-th frames of all sources, for each k."""
    seen: dict[int, int] = {}
    rounds: list[list[tuple[FrameMeta, Surface]]] = []
    for frame in batch.frames:
        number = seen.get(frame.pad_index, 0)
        seen[frame.pad_index] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append((frame, batch.surfaces[frame.batch_id]))
    return rounds


GObject.type_register(NvMultiStreamTiler)
FACTORIES = {"nvmultistreamtiler": NvMultiStreamTiler}

"""For API tests: batches, a Python element that makes them of any buffers, and waiting for conditions and errors."""

from __future__ import annotations

from collections.abc import Callable

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstBase", "1.0")
from gi.repository import Gst, GstBase  # noqa: E402

Gst.init(None)

from elements.base import keep_floating, sink_and_src  # noqa: E402
from elements.portable.carrier import new_batch_buffer  # noqa: E402
from elements.portable.meta import BatchMeta, FrameMeta  # noqa: E402
from elements.portable.pyservicemaker import Pipeline  # noqa: E402
from elements.portable.surface import Surface  # noqa: E402


def batch_of_two(number: int = 0) -> BatchMeta:
    """Frame ``number`` of sources 0 and 1; 4x3 RGB pictures whose values are the source id."""
    frames = [
        FrameMeta(
            i, i, i, number, number * 40_000_000, pipeline_width=4, pipeline_height=3, source_width=8, source_height=6
        )
        for i in range(2)
    ]
    surfaces = [Surface.of_array(np.full((3, 4, 3), i, np.uint8)) for i in range(2)]
    return BatchMeta(max_frames=2, frames=frames, surfaces=surfaces)


class Batcher(GstBase.BaseTransform):
    __gtype_name__ = "TestBatcher"
    __gstmetadata__ = ("batcher", "Generic", "a batch of two frames for each buffer", "tests")
    __gsttemplates__ = sink_and_src("ANY")

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.number = 0

    def do_prepare_output_buffer(self, buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        batch = batch_of_two(self.number)
        self.number += 1
        return Gst.FlowReturn.OK, new_batch_buffer(batch, buffer.pts, buffer.duration)

    def do_transform(self, _input: Gst.Buffer, _output: Gst.Buffer) -> Gst.FlowReturn:
        return Gst.FlowReturn.OK


Gst.Element.register(None, "test_batcher", 0, Batcher)

MakePipeline = Callable[..., Pipeline]


def errors_of(pipeline: Pipeline) -> list[tuple[str, str, str]]:
    """Collects (element, text, debug) of the errors on the bus, as they are posted."""
    seen: list[tuple[str, str, str]] = []

    def on_message(_bus: Gst.Bus, message: Gst.Message) -> None:
        if message.type == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            seen.append((message.src.get_name(), error.message, debug or ""))

    bus = pipeline.gst_pipeline.get_bus()
    bus.enable_sync_message_emission()
    bus.connect("sync-message", on_message)
    return seen

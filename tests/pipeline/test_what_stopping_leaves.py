"""Stopping in the middle gives back every frame and frees every pad, whoever still holds the pipeline."""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path

import pytest
from gi.repository import Gst

from tests.nvmm_memory import CUDA_DEVICE, NvmmFrame
from tests.waiting import wait_for

FRAMES = 100
CAPS = "video/x-raw(memory:NVMM),format=RGB,width=64,height=48,framerate=25/1"


def frames_alive() -> int:
    """Frames of `NvmmFrame.buffer` that somebody holds: each has a file of its own until its memory is freed."""
    targets = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one of the listing itself
            targets.append(str(link.readlink()))
    return sum("memfd:nvmm" in target for target in targets)


@pytest.fixture
def pipeline() -> Gst.Pipeline:
    """Two sources whose frames wait everywhere: before the mux, in it, in a queue behind it and in the sink."""
    sources = " ".join(f"appsrc name=s{i} format=time caps={CAPS} ! m.sink_{i}" for i in range(2))
    return Gst.parse_launch(
        f"{sources} nvstreammux name=m batch-size=2 width=64 height=48 ! queue max-size-buffers=2 ! fakesink name=out "
        "sync=true"
    )


def play(pipeline: Gst.Pipeline, frames: list[NvmmFrame]) -> None:
    """Play until a few batches have come to the end, and stop."""
    seen: list[int] = []
    sink_pad = pipeline.get_by_name("out").get_static_pad("sink")
    probe = sink_pad.add_probe(Gst.PadProbeType.BUFFER, lambda *_: seen.append(1) or Gst.PadProbeReturn.OK)
    pipeline.set_state(Gst.State.PLAYING)
    for number, frame in enumerate(frames):
        for name in ("s0", "s1"):
            buffer = frame.buffer()
            buffer.pts = number * 40 * Gst.MSECOND
            pipeline.get_by_name(name).emit("push-buffer", buffer)
            del buffer
    assert wait_for(lambda: len(seen) > 5)
    assert frames_alive() > 10
    assert pipeline.set_state(Gst.State.NULL) == Gst.StateChangeReturn.SUCCESS
    sink_pad.remove_probe(probe)


def test_no_frame_is_held_after_stopping(pipeline: Gst.Pipeline) -> None:
    frames = [NvmmFrame(64, 48, memory_type=CUDA_DEVICE) for _ in range(FRAMES)]
    for _ in range(2):  # and it can start again
        play(pipeline, frames)
        assert frames_alive() == 0


@pytest.mark.parametrize("factory", ["nvstreammux", "nvstreamdemux"])
def test_requested_pads_go_with_their_element(factory: str) -> None:
    pipeline, element = Gst.Pipeline(), Gst.ElementFactory.make(factory)
    pipeline.add(element)
    name = "sink_0" if factory == "nvstreammux" else "src_0"
    gone: list[str] = []
    for number in range(2):
        pad = element.request_pad_simple(name)
        pad.weak_ref(gone.append, number)
        if number == 0:
            element.release_request_pad(pad)
        del pad
        gc.collect()
        assert gone == [0]
    del element, pipeline
    gc.collect()
    assert gone == [0, 1]

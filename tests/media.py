"""Running pipelines of stand-ins in tests, and what comes out of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)

from elements.portable.carrier import batch_of  # noqa: E402
from elements.portable.meta import BatchMeta  # noqa: E402
from elements.portable.register import register_stand_ins  # noqa: E402
from tests.waiting import LIMIT_S  # noqa: E402

register_stand_ins()


@dataclass
class Outcome:
    """How a run ended: ``end`` is "eos", "error" or "time limit"."""

    end: str = ""
    error: Any = None
    debug: str = ""
    messages: list[Gst.Message] = field(default_factory=list)

    def named(self, name: str) -> list[Gst.Structure]:
        """The element messages of that name."""
        structures = [m.get_structure() for m in self.messages if m.type == Gst.MessageType.ELEMENT]
        return [s for s in structures if s.get_name() == name]


@dataclass
class Batches:
    """What passed a pad: one entry per buffer, its PTS and its batch."""

    times: list[int] = field(default_factory=list)
    batches: list[BatchMeta | None] = field(default_factory=list)
    caps: list[str] = field(default_factory=list)
    failure: BaseException | None = None

    def numbers(self) -> dict[int, list[int]]:
        """Frame numbers per pad index, in the order they came."""
        found: dict[int, list[int]] = {}
        for batch in self.batches:
            for frame in batch.frames if batch else []:
                found.setdefault(frame.pad_index, []).append(frame.frame_number)
        return found


def watch(pipeline: Gst.Pipeline, name: str, look: Callable[[Gst.Buffer], None] | None = None) -> Batches:
    """Record what arrives at the sink pad of an element; ``look`` sees each buffer in the streaming thread."""
    seen = Batches()

    def record(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        buffer = info.get_buffer()
        seen.times.append(buffer.pts)
        seen.batches.append(batch_of(buffer))
        seen.caps.append(pad.get_current_caps().to_string())
        try:
            if look:
                look(buffer)
        except BaseException as error:
            seen.failure = error
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name(name).get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, record)
    return seen


def finish(pipeline: Gst.Pipeline, limit: float = LIMIT_S) -> Outcome:
    """Play until the end, an error, or the limit; then stop."""
    outcome = Outcome()
    pipeline.set_state(Gst.State.PLAYING)
    until = time.monotonic() + limit
    try:
        while not outcome.end:
            message = pipeline.get_bus().timed_pop(int(max(0.0, until - time.monotonic()) * Gst.SECOND))
            if message is None:
                outcome.end = "time limit"
                break
            outcome.messages.append(message)
            if message.type == Gst.MessageType.EOS:
                outcome.end = "eos"
            elif message.type == Gst.MessageType.ERROR:
                outcome.end = "error"
                outcome.error, outcome.debug = message.parse_error()
    finally:
        pipeline.set_state(Gst.State.NULL)
    return outcome


def message_of(pipeline: Gst.Pipeline, types: Gst.MessageType) -> Gst.Message:
    """The next message of these types on the pipeline's bus."""
    message = pipeline.get_bus().timed_pop_filtered(int(LIMIT_S * Gst.SECOND), types)
    assert message is not None, f"no {types} within {LIMIT_S:g} s"
    return message


def run(
    description: str, watched: str = "out", look: Callable[[Gst.Buffer], None] | None = None
) -> tuple[Outcome, Batches]:
    """Play a gst-launch line to its end and record what reached the element ``watched``."""
    pipeline = Gst.parse_launch(description)
    seen = watch(pipeline, watched, look)
    outcome = finish(pipeline)
    if seen.failure:
        raise seen.failure
    return outcome, seen


def source(frames: int, pad: str = "m.sink_0", width: int = 64, height: int = 48, more: str = "", **caps: str) -> str:
    """A test picture source into a mux pad: ``frames`` of I420 at 30 fps."""
    wanted = {"format": "I420", "framerate": "30/1"} | caps
    fields = ",".join(f"{key}={value}" for key, value in wanted.items())
    return (
        f"videotestsrc num-buffers={frames} {more} ! video/x-raw,width={width},height={height},{fields} "
        f"! nvvideoconvert ! {pad} "
    )

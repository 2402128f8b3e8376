"""The batch's way through GStreamer: ownership, copies, memory."""

import gc
from pathlib import Path

import gi
import pytest

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

from elements.base import ElementError  # noqa: E402
from elements.portable.carrier import attach_batch, batch_of, new_batch_buffer, writable_batch  # noqa: E402
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta  # noqa: E402
from elements.portable.video_buffer import twin_of  # noqa: E402
from tests.media import source, watch  # noqa: E402
from tests.waiting import wait_for  # noqa: E402

Gst.init(None)


def resident_kilobytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def test_the_same_batch_comes_out() -> None:
    batch = BatchMeta(frames=[FrameMeta(pad_index=3)])
    buffer = new_batch_buffer(batch, 40, 20)
    assert batch_of(buffer) is batch
    assert writable_batch(buffer) is batch
    assert (buffer.pts, buffer.duration) == (40, 20)


def test_a_copy_gets_its_own_batch_when_it_is_written() -> None:
    batch = BatchMeta(frames=[FrameMeta(objects=[ObjectMeta(label="car")])])
    buffer = new_batch_buffer(batch, 0, 0)
    copy = twin_of(buffer)
    assert batch_of(copy) is batch
    own = writable_batch(copy)
    own.frames[0].objects[0].label = "van"
    assert batch_of(copy) is own
    assert writable_batch(copy) is own
    assert batch_of(buffer).frames[0].objects[0].label == "car"


def test_what_was_copied_gets_its_own_batch_when_it_is_written() -> None:
    batch = BatchMeta(frames=[FrameMeta(objects=[ObjectMeta(label="car")])])
    buffer = new_batch_buffer(batch, 0, 0)
    copy = twin_of(buffer)
    own = writable_batch(buffer)
    own.frames[0].objects[0].label = "van"
    assert batch_of(copy).frames[0].objects[0].label == "car"
    assert writable_batch(buffer) is own, "the copy has the other one now"


def test_branches_do_not_see_each_other_where_another_element_copies() -> None:
    """``identity`` copies what the other branch holds too, and leaves that one alone with the original."""
    seen, demuxed = [], []

    def look(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        seen.append([frame.batch_id for frame in batch_of(info.get_buffer()).frames])
        return Gst.PadProbeReturn.OK

    pipeline = Gst.parse_launch(
        f"{source(1)} {source(1, 'm.sink_1')} nvstreammux name=m width=64 height=48 batch-size=2 ! tee name=t "
        "t. ! identity ! queue name=copied ! fakesink name=out async=false "
        "t. ! queue ! nvstreamdemux name=d d.src_0 ! fakesink async=false d.src_1 ! fakesink name=last async=false"
    )
    held_back = pipeline.get_by_name("copied").get_static_pad("src")
    block = held_back.add_probe(Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER, lambda *_: Gst.PadProbeReturn.OK)
    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, look)
    watch(pipeline, "last", demuxed.append)
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: demuxed)
    held_back.remove_probe(block)
    assert wait_for(lambda: seen)
    pipeline.set_state(Gst.State.NULL)
    assert seen == [[0, 1]]


def test_a_second_reference_does_not_hinder_writing() -> None:
    copy = twin_of(new_batch_buffer(BatchMeta(max_frames=7), 0, 0))
    probe_like = Gst.Sample.new(copy, None, None, None)
    assert writable_batch(copy).owner == hash(copy)
    assert probe_like.get_buffer() is not None


def test_a_plain_buffer_has_none() -> None:
    buffer = Gst.Buffer.new_allocate(None, 4, None)
    assert batch_of(buffer) is None
    with pytest.raises(ElementError, match="nvstreammux"):
        writable_batch(buffer)
    attach_batch(buffer, BatchMeta(max_frames=2))
    assert batch_of(buffer).max_frames == 2


class Told:
    """Writes its name to a list when it is let go."""

    def __init__(self, name: str, gone: list[str]) -> None:
        self.name, self.gone = name, gone

    def share(self) -> "Told":
        return Told(f"twin's {self.name}", self.gone)

    def __del__(self) -> None:
        self.gone.append(self.name)


def test_what_the_pictures_lie_in_is_let_go_last() -> None:
    gone: list[str] = []
    batch = BatchMeta(surfaces=[Told("picture", gone)], held=Told("memory", gone))
    twin = batch.clone()
    del batch
    assert gone == ["picture"], "the twin shows the same memory"
    del twin
    assert gone == ["picture", "twin's picture", "memory"]


def test_nothing_is_kept() -> None:
    class Counted(BatchMeta):
        live = 0

        def __init__(self) -> None:
            super().__init__()
            Counted.live += 1

        def __del__(self) -> None:
            Counted.live -= 1

    def churn(count: int) -> None:
        for _ in range(count):
            writable_batch(twin_of(new_batch_buffer(Counted(), 0, 0)))

    churn(2_000)
    gc.collect()
    before = resident_kilobytes()
    churn(20_000)
    gc.collect()
    assert Counted.live == 0
    assert resident_kilobytes() - before < 2_000

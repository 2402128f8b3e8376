"""nvstreamdemux: each stream on its pad, with its own times and its own end."""

import pytest
from gi.repository import Gst

from tests.media import finish, source, watch
from tests.waiting import wait_for

MUX = "nvstreammux name=m width=128 height=96"


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_each_stream_on_its_pad(batch_size: int) -> None:
    pipeline = Gst.parse_launch(
        f"{source(12, 'm.sink_0')} {source(5, 'm.sink_3')} {MUX} batch-size={batch_size} ! nvstreamdemux name=d "
        "d.src_0 ! queue ! fakesink name=a d.src_3 ! queue ! fakesink name=b"
    )
    a, b = watch(pipeline, "a"), watch(pipeline, "b")
    assert finish(pipeline).end == "eos"
    assert a.numbers() == {0: list(range(12))}
    assert b.numbers() == {3: list(range(5))}
    assert b.times[:3] == [0, 33_333_333, 66_666_666]
    assert all(batch.frames[0].batch_id == 0 and len(batch.surfaces) == 1 for batch in a.batches + b.batches)
    assert Gst.Caps.from_string(a.caps[0])[0].get_int("batch-size").value == 1


def test_a_stream_ends_before_the_others() -> None:
    pipeline = Gst.parse_launch(
        f"{source(3, 'm.sink_0')} {source(-1, 'm.sink_1', more='is-live=1')} {MUX} batch-size=2 ! nvstreamdemux name=d "
        "d.src_0 ! fakesink name=a async=0 d.src_1 ! fakesink name=b async=0"
    )
    ended = []
    pipeline.get_by_name("a").get_static_pad("sink").add_probe(
        Gst.PadProbeType.EVENT_DOWNSTREAM,
        lambda pad, info: (ended.append(info.get_event().type), Gst.PadProbeReturn.OK)[1],
    )
    b = watch(pipeline, "b")
    pipeline.set_state(Gst.State.PLAYING)
    try:
        assert wait_for(lambda: Gst.EventType.EOS in ended)
        count = len(b.batches)
        assert wait_for(lambda: len(b.batches) > count + 2)
    finally:
        pipeline.set_state(Gst.State.NULL)


def test_a_stream_without_a_pad_is_left_out() -> None:
    pipeline = Gst.parse_launch(
        f"{source(4, 'm.sink_0')} {source(4, 'm.sink_1')} {MUX} batch-size=2 ! nvstreamdemux name=d "
        "d.src_1 ! fakesink name=a"
    )
    a = watch(pipeline, "a")
    assert finish(pipeline).end == "eos"
    assert a.numbers() == {1: [0, 1, 2, 3]}


def test_a_branch_that_ends_early_leaves_the_others_running() -> None:
    pipeline = Gst.parse_launch(
        f"{source(30, 'm.sink_0')} {source(30, 'm.sink_1')} {MUX} batch-size=2 ! nvstreamdemux name=d "
        "d.src_0 ! queue max-size-buffers=2 ! identity eos-after=3 ! fakesink d.src_1 ! queue ! fakesink name=b"
    )
    b = watch(pipeline, "b")
    assert finish(pipeline).end == "eos"
    assert b.numbers() == {1: list(range(30))}


def test_buffers_without_a_batch_are_an_error() -> None:
    outcome = finish(
        Gst.parse_launch("videotestsrc num-buffers=2 ! nvvideoconvert ! nvstreamdemux name=d d.src_0 ! fakesink")
    )
    assert "nvstreammux" in outcome.error.message
    assert outcome.error.message.startswith("d: ")


def test_pads_are_requested_by_number() -> None:
    demux = Gst.ElementFactory.make("nvstreamdemux")
    assert demux.request_pad_simple("src_%u") is None
    pad = demux.request_pad_simple("src_7")
    assert pad.get_name() == "src_7"
    demux.release_request_pad(pad)
    assert demux.request_pad_simple("src_7") is not None

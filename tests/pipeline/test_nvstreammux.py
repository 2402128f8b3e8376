"""nvstreammux: every frame of every source once and in order, metadata, ends, errors, life cycle."""

import gc
import logging
import time
from pathlib import Path

import pytest
from gi.repository import Gst

from elements.portable.nvstreammux import NvStreamMux
from tests.media import finish, message_of, run, source, watch
from tests.waiting import SOON_S, wait_for

MUX = "nvstreammux name=m width=128 height=96"


@pytest.mark.parametrize(
    ("lengths", "batch_size"),
    [([37], 1), ([37], 4), ([5, 40, 17, 1], 4), ([5, 40, 17, 1], 3), ([9, 30, 1, 22, 14, 3, 27, 8], 8)],
)
def test_no_frame_is_lost_doubled_or_moved(lengths: list[int], batch_size: int) -> None:
    sources = "".join(source(n, f"m.sink_{i}") for i, n in enumerate(lengths))
    outcome, seen = run(f"{sources} {MUX} batch-size={batch_size} ! fakesink name=out")
    assert outcome.end == "eos"
    assert seen.numbers() == {i: list(range(n)) for i, n in enumerate(lengths)}
    assert all(1 <= len(batch.frames) <= batch_size for batch in seen.batches)
    assert sorted(s.get_value("stream-id") for s in outcome.named("stream-eos")) == list(range(len(lengths)))


def test_full_batches_hold_every_running_source() -> None:
    _, seen = run(f"{source(20, 'm.sink_0')} {source(20, 'm.sink_1')} {MUX} batch-size=2 ! fakesink name=out")
    assert [[f.pad_index for f in batch.frames] for batch in seen.batches] == [[0, 1]] * 20


def test_metadata_of_a_frame() -> None:
    line = f"{source(3, 'm.sink_5', 80, 60)} {MUX} batch-size=1 enable-padding=1 ! fakesink name=out"
    before = time.time_ns()
    _, seen = run(line)
    frame, surface = seen.batches[2].frames[0], seen.batches[2].surfaces[0]
    assert (frame.pad_index, frame.source_id, frame.batch_id, frame.frame_number) == (5, 5, 0, 2)
    assert (frame.source_width, frame.source_height) == (80, 60)
    assert (frame.pipeline_width, frame.pipeline_height) == (128, 96)
    assert frame.buffer_pts == 66_666_666
    assert frame.duration == pytest.approx(33_333_333, abs=1)
    assert before < frame.ntp_timestamp < time.time_ns()
    assert (surface.width, surface.height, surface.format) == (128, 96, "I420")
    assert seen.batches[2].max_frames == 1
    assert seen.times == [0, 33_333_333, 66_666_666]


def test_caps_say_what_the_batch_is() -> None:
    _, seen = run(f"{source(1, framerate='25/1')} {MUX} batch-size=3 ! fakesink name=out")
    caps = Gst.Caps.from_string(seen.caps[0])
    assert caps.get_features(0).contains("memory:NVMM")
    assert caps[0].get_int("batch-size").value == 3
    assert caps[0].get_int("width").value == 128
    assert caps[0].get_fraction("framerate")[1:] == (25, 1)


def test_system_time_can_be_left_out() -> None:
    _, seen = run(f"{source(2)} {MUX} batch-size=1 attach-sys-ts=0 ! fakesink name=out")
    assert [b.frames[0].ntp_timestamp for b in seen.batches] == [0, 33_333_333]


@pytest.mark.parametrize("padding", [False, True])
def test_scaling_is_declared(padding: bool) -> None:
    white = source(1, width=64, height=32, more="pattern=white")
    _, seen = run(f"{white} {MUX} batch-size=1 enable-padding={padding} ! fakesink name=out")
    surface = seen.batches[0].surfaces[0]
    assert (surface.placement.top, surface.placement.height) == ((16, 64) if padding else (0, 96))
    rows = surface.rgb()[:, 60, 0] > 200
    assert rows.sum() == (64 if padding else 96)


def test_a_source_may_change_size_and_format() -> None:
    line = (
        f"concat name=c ! m.sink_0 {source(3, 'c.', 64, 48)} {source(3, 'c.', 32, 24, format='NV12')} "
        f"{MUX} batch-size=1 ! fakesink name=out"
    )
    outcome, seen = run(line)
    assert outcome.end == "eos"
    assert seen.numbers() == {0: [0, 1, 2, 3, 4, 5]}
    assert [b.frames[0].source_width for b in seen.batches] == [64] * 3 + [32] * 3
    assert len(set(seen.caps)) == 1
    for batch in seen.batches:
        assert batch.surfaces[0].rgb().shape == (96, 128, 3)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("batch-size=1", "width, height"),
        ("width=64 height=64", "batch-size"),
        ("width=64 height=64 batch-size=1 sync-inputs=1", "batched-push-timeout"),
    ],
)
def test_start_checks(properties: str, said: str) -> None:
    pipeline = Gst.parse_launch(f"videotestsrc ! nvvideoconvert ! m.sink_0 nvstreammux name=m {properties} ! fakesink")
    outcome = finish(pipeline)
    assert outcome.error.matches(Gst.LibraryError.quark(), Gst.LibraryError.SETTINGS)
    assert said in outcome.error.message
    assert "m: nvstreammux cannot start" in outcome.error.message


def test_system_memory_is_refused_with_advice() -> None:
    pipeline = Gst.parse_launch(f"{MUX} batch-size=1 ! fakesink name=out")
    mux = pipeline.get_by_name("m")
    pad = mux.request_pad_simple("sink_0")
    pipeline.set_state(Gst.State.PAUSED)
    pad.send_event(Gst.Event.new_stream_start("x"))
    assert not pad.send_event(
        Gst.Event.new_caps(Gst.Caps.from_string("video/x-raw,format=I420,width=64,height=64,framerate=1/1"))
    )
    message = message_of(pipeline, Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    error, _ = message.parse_error()
    assert error.matches(Gst.StreamError.quark(), Gst.StreamError.WRONG_TYPE)
    assert "sink_0" in error.message
    assert "nvvideoconvert" in error.message


def test_pad_names() -> None:
    mux = Gst.ElementFactory.make("nvstreammux")
    assert mux.request_pad_simple("sink_3").get_name() == "sink_3"
    assert mux.request_pad_simple("sink_3") is None
    assert mux.request_pad_simple("sink_%u") is None
    assert [p.get_name() for p in mux.sinkpads] == ["sink_3"]


def test_a_source_that_never_delivers_does_not_stop_the_others() -> None:
    dead = "appsrc name=dead caps=video/x-raw(memory:NVMM),format=I420,width=8,height=8,framerate=1/1 ! m.sink_1"
    line = f"{source(30)} {dead} {MUX} batch-size=2 batched-push-timeout=40000 ! fakesink name=out"
    pipeline = Gst.parse_launch(line)
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    wait_for(lambda: len(seen.numbers().get(0, [])) == 30)
    pipeline.get_by_name("dead").emit("end-of-stream")
    message_of(pipeline, Gst.MessageType.EOS)
    pipeline.set_state(Gst.State.NULL)


def test_the_pipeline_can_outlive_its_sources() -> None:
    pipeline = Gst.parse_launch(f"{source(3)} {MUX} batch-size=1 drop-pipeline-eos=1 ! fakesink name=out async=0")
    pipeline.set_state(Gst.State.PLAYING)
    assert message_of(pipeline, Gst.MessageType.ELEMENT).get_structure().get_name() == "stream-eos"
    assert pipeline.get_bus().timed_pop_filtered(Gst.SECOND // 5, Gst.MessageType.EOS) is None
    pipeline.set_state(Gst.State.NULL)


def test_a_source_that_ends_before_any_frame_leaves_events_in_order() -> None:
    """The segment comes after the caps, which are not known yet when the first source ends."""
    mux, kinds = Gst.ElementFactory.make("nvstreammux"), []
    for name, value in (("width", 64), ("height", 48), ("batch-size", 1)):
        mux.set_property(name, value)
    pipeline, sink = Gst.Pipeline.new(), Gst.ElementFactory.make("fakesink")
    pipeline.add(mux, sink)
    mux.link(sink)
    ended, other = mux.request_pad_simple("sink_0"), mux.request_pad_simple("sink_1")
    mux.get_static_pad("src").add_probe(
        Gst.PadProbeType.EVENT_DOWNSTREAM,
        lambda _pad, info: kinds.append(info.get_event().type) or Gst.PadProbeReturn.OK,
    )
    pipeline.set_state(Gst.State.PLAYING)
    ended.send_event(Gst.Event.new_stream_start("ended"))
    ended.send_event(Gst.Event.new_eos())
    wait_for(lambda: kinds)
    caps = Gst.Caps.from_string("video/x-raw(memory:NVMM), format=I420, width=64, height=48, framerate=25/1")
    segment = Gst.Segment()
    segment.init(Gst.Format.TIME)
    for event in (Gst.Event.new_stream_start("other"), Gst.Event.new_caps(caps), Gst.Event.new_segment(segment)):
        other.send_event(event)
    other.chain(Gst.Buffer.new_allocate(None, 64 * 48 * 3 // 2, None))
    wait_for(lambda: Gst.EventType.SEGMENT in kinds)
    pipeline.set_state(Gst.State.NULL)
    assert (
        kinds.index(Gst.EventType.STREAM_START) < kinds.index(Gst.EventType.CAPS) < kinds.index(Gst.EventType.SEGMENT)
    )


def test_a_batch_is_not_asked_for_in_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sources have room for more frames, but none come: the batch leaves at its time, and the mux can stop."""
    monkeypatch.setattr("elements.portable.batching.FILE_PATIENCE", 0.05)
    caps = "video/x-raw(memory:NVMM),format=I420,width=8,height=8,framerate=1/1"
    sources = " ".join(f"appsrc name=s{i} caps={caps} ! m.sink_{i}" for i in range(2))
    pipeline = Gst.parse_launch(
        f"{sources} {MUX} batch-size=4 batched-push-timeout=1000 ! fakesink name=out async=false"
    )
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_by_name("s1").emit("push-buffer", Gst.Buffer.new_wrapped(bytes(8 * 8 * 3 // 2)))
    wait_for(lambda: seen.batches, SOON_S)
    assert seen.numbers() == {1: [0]}
    pipeline.set_state(Gst.State.NULL)


def test_live_sources_give_one_frame_each_and_running_time() -> None:
    live = [source(12, f"m.sink_{i}", more="is-live=1") for i in range(2)]
    outcome, seen = run(
        f"{' '.join(live)} {MUX} batch-size=2 live-source=1 batched-push-timeout=40000 ! fakesink name=out sync=1"
    )
    assert outcome.end == "eos"
    assert seen.numbers() == {0: list(range(12)), 1: list(range(12))}
    assert all(len({f.pad_index for f in batch.frames}) == len(batch.frames) for batch in seen.batches)
    assert seen.times == sorted(seen.times)
    assert seen.times[-1] - seen.times[0] > 200_000_000


def test_a_source_can_be_added_and_taken_away_while_playing() -> None:
    pipeline = Gst.parse_launch(f"{source(-1)} {MUX} batch-size=2 ! queue ! fakesink name=out")
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: len(seen.batches) > 3)
    extra = Gst.parse_bin_from_description("videotestsrc ! video/x-raw,format=I420 ! nvvideoconvert", True)
    pipeline.add(extra)
    mux = pipeline.get_by_name("m")
    pad = mux.request_pad_simple("sink_1")
    assert extra.get_static_pad("src").link(pad) == Gst.PadLinkReturn.OK
    extra.sync_state_with_parent()
    assert wait_for(lambda: len(seen.numbers().get(1, [])) > 3)
    mux.release_request_pad(pad)
    extra.set_state(Gst.State.NULL)
    pipeline.remove(extra)
    count = len(seen.batches)
    assert wait_for(lambda: len(seen.batches) > count + 5)
    assert wait_for(lambda: {f.pad_index for f in seen.batches[-1].frames} == {0})
    pipeline.set_state(Gst.State.NULL)


def test_an_element_that_takes_nothing_is_named() -> None:
    outcome, _ = run(
        f"{source(5)} {MUX} batch-size=1 ! identity ! video/x-raw(memory:NVMM),width=7 ! fakesink name=out"
    )
    assert outcome.error.matches(Gst.CoreError.quark(), Gst.CoreError.NEGOTIATION)
    assert outcome.error.message.startswith("m: ")
    assert "width=(int)128" in outcome.debug


def test_room_is_made_when_others_end() -> None:
    """A source that waits for room must get the slots of one that ended with frames still queued."""
    for _ in range(15):
        lengths = [9, 30, 1, 22, 14, 3, 27, 8]
        sources = "".join(source(n, f"m.sink_{i}", 16, 16) for i, n in enumerate(lengths))
        outcome, seen = run(f"{sources} {MUX} batch-size=8 ! fakesink name=out")
        assert outcome.end == "eos"
        assert [len(n) for _, n in sorted(seen.numbers().items())] == lengths


def test_starting_and_stopping_again_and_again() -> None:
    for cycle in range(60):
        lengths = [3 + cycle % 5, 6, 2]
        sources = "".join(source(n if cycle % 3 else -1, f"m.sink_{i}", 32, 16) for i, n in enumerate(lengths))
        pipeline = Gst.parse_launch(f"{sources} {MUX} batch-size=3 ! queue ! fakesink name=out")
        if cycle % 3:
            assert finish(pipeline).end == "eos"
        else:  # abrupt, at another moment each time
            pipeline.set_state(Gst.State.PLAYING)
            time.sleep(cycle % 7 * 0.003)
            pipeline.set_state(Gst.State.NULL)


def test_a_pipeline_plays_twice() -> None:
    pipeline = Gst.parse_launch(f"{source(7)} {MUX} batch-size=1 ! fakesink name=out")
    seen = watch(pipeline, "out")
    assert finish(pipeline).end == "eos"
    assert finish(pipeline).end == "eos"
    assert seen.numbers() == {0: [*range(7), *range(7)]}


def test_no_element_is_kept() -> None:
    alive = []
    for _ in range(5):
        pipeline = Gst.parse_launch(
            f"{source(3)} {MUX} batch-size=1 ! nvvideoconvert ! nvstreamdemux name=d d.src_0 ! fakesink"
        )
        alive += [pipeline.get_by_name(name).weak_ref() for name in ("m", "d")]
        assert finish(pipeline).end == "eos"
        del pipeline
    gc.collect()
    assert [reference() for reference in alive if reference() is not None] == []


def test_properties_have_nvidias_defaults() -> None:
    mux = Gst.ElementFactory.make("nvstreammux")
    assert (mux.props.batched_push_timeout, mux.props.batch_size, mux.props.attach_sys_ts) == (-1, 0, True)
    assert mux.props.interpolation_method == 1  # Bilinear
    assert mux.props.frame_duration == 2**64 - 1
    assert isinstance(mux, NvStreamMux)


def test_properties_without_effect_are_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gstorch")
    properties = "batch-size=1 batched-push-timeout=99000 sync-inputs=1 max-latency=9"
    run(f"{source(2, 'm.sink_0')} {MUX} {properties} ! fakesink name=out")
    assert [m for m in caplog.messages if "no effect here" in m] == [
        "m (nvstreammux): no effect here: sync-inputs, max-latency"
    ]


@pytest.mark.parametrize(("lost", "times"), [(0, [0, 40, 80]), (1, [0, 40, 80]), (2, [0, 40, 80])])
def test_a_frame_without_a_timestamp_gets_one(lost: int, times: list[int], tmp_path: Path) -> None:
    """A camera's first frame may have none; mp4mux then failed with "Buffer has no PTS"."""
    pipeline = Gst.parse_launch(
        "appsrc name=s format=time caps=video/x-raw,format=I420,width=64,height=48,framerate=25/1 ! nvvideoconvert "
        f"! video/x-raw(memory:NVMM) ! m.sink_0 {MUX} batch-size=1 ! identity name=out ! nvstreamdemux name=d d.src_0 "
        f"! nvvideoconvert ! nvv4l2h264enc ! h264parse ! mp4mux ! filesink location={tmp_path}/x.mp4"
    )
    for number in range(3):
        buffer = Gst.Buffer.new_wrapped(bytes(64 * 48 * 3 // 2))
        buffer.pts = Gst.CLOCK_TIME_NONE if number == lost else number * 40 * Gst.MSECOND
        pipeline.get_by_name("s").emit("push-buffer", buffer)
    pipeline.get_by_name("s").emit("end-of-stream")
    seen = watch(pipeline, "out")
    assert finish(pipeline).end == "eos"
    assert [batch.frames[0].buffer_pts // Gst.MSECOND for batch in seen.batches] == times

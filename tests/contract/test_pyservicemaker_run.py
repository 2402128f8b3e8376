"""Running pipelines: probes at work, messages, the end, and what happens when user code fails."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from gi.repository import GLib, Gst, GstBase

from elements.base import keep_floating, sink_and_src
from elements.portable.carrier import batch_of, is_writable
from elements.portable.pyservicemaker import (
    BatchMetadataOperator,
    Buffer,
    BufferObserver,
    BufferOperator,
    EOSMessage,
    PipelineState,
    Probe,
    StateTransitionMessage,
    register_probe,
)
from tests.batches import MakePipeline, errors_of
from tests.waiting import LIMIT_S, wait_for


class Collector(BatchMetadataOperator):
    def __init__(self) -> None:
        super().__init__()
        self.frames: list[tuple[int, int]] = []

    def handle_metadata(self, batch_meta: Any) -> None:
        self.frames += [(f.source_id, f.frame_number) for f in batch_meta.frame_items]


class Counting(BufferOperator):
    def __init__(self, result: Any = True) -> None:
        super().__init__()
        self.result, self.timestamps = result, []

    def handle_buffer(self, buffer: Buffer) -> Any:
        self.timestamps.append(buffer.timestamp)
        return self.result


# --- probes -----------------------------------------------------------------------------------------------------------


def test_trap_16_every_buffer_is_seen_from_the_first(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "test_batcher", "fakesink", buffers=3)
    collector, plain = Collector(), Collector()
    pipeline.attach("test_batcher", Probe("batches", collector))
    pipeline.attach("videotestsrc", Probe("no batches here", plain))
    assert pipeline.start().wait() is pipeline
    assert collector.frames == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert plain.frames == []


def test_buffers_are_seen_while_only_prepared(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=2)
    counting = Counting()
    pipeline.attach("videotestsrc", Probe("p", counting)).prepare()
    wait_for(lambda: len(counting.timestamps) == 1)
    pipeline.activate().wait()
    assert len(counting.timestamps) == 2


@pytest.mark.parametrize(("result", "arrived"), [(True, 3), (1, 3), (None, 0), (False, 0)])
def test_trap_14_none_drops_buffers(make_pipeline: MakePipeline, result: object, arrived: int) -> None:
    pipeline = make_pipeline("videotestsrc", "identity", "fakesink")
    behind = Counting()
    pipeline.attach("videotestsrc", Probe("first", Counting(result))).attach("identity", Probe("second", behind))
    pipeline.start().wait()
    assert len(behind.timestamps) == arrived


def test_an_operator_writes_into_the_batch(make_pipeline: MakePipeline) -> None:
    class Detector(BatchMetadataOperator):
        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                made = batch_meta.acquire_object_meta()
                made.class_id = frame.source_id
                frame.append(made)

    class Reader(BatchMetadataOperator):
        seen: list[int]

        def handle_metadata(self, batch_meta: Any) -> None:
            self.seen = [item.class_id for frame in batch_meta.frame_items for item in frame.object_items]

    reader = Reader()
    pipeline = make_pipeline("videotestsrc", "test_batcher", "identity", "fakesink", buffers=1)
    pipeline.attach("test_batcher", Probe("d", Detector())).attach("identity", Probe("r", reader))
    pipeline.start().wait()
    assert reader.seen == [0, 1]


def test_a_probe_leaves_the_buffer_writable_for_the_next_element(make_pipeline: MakePipeline) -> None:
    class Element(GstBase.BaseTransform):
        __gtype_name__ = "TestInPlace"
        __gstmetadata__ = ("in place", "Generic", "notes whether its buffers are writable", "tests")
        __gsttemplates__ = sink_and_src("ANY")

        def __init__(self) -> None:
            super().__init__()
            keep_floating(self)
            self.set_in_place(True)

        def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
            writable.append((is_writable(buffer), batch_of(buffer).owner == hash(buffer)))
            return Gst.FlowReturn.OK

    writable: list[tuple[bool, bool]] = []
    Gst.Element.register(None, "test_in_place", 0, Element)
    pipeline = make_pipeline("videotestsrc", "test_batcher", "test_in_place", "fakesink")
    pipeline.attach("test_batcher", Probe("p", Collector())).start().wait()
    assert writable == [(True, True)] * 3


def test_pads_that_appear_later_are_linked(make_pipeline: MakePipeline) -> None:
    counting = Counting()
    pipeline = (
        make_pipeline("videotestsrc", "decodebin").add("compositor", "mux").add("fakesink", "sink", {"sync": False})
    )
    pipeline.link(("decodebin", "mux"), ("", "sink_%u")).link("mux", "sink").attach("mux", Probe("c", counting))
    pipeline.start().wait()
    assert counting.timestamps


def test_trap_3_metadata_is_stale_after_the_callback(make_pipeline: MakePipeline) -> None:
    class Keeper(BatchMetadataOperator):
        def handle_metadata(self, batch_meta: Any) -> None:
            self.kept = batch_meta

    keeper = Keeper()
    make_pipeline("videotestsrc", "test_batcher", "fakesink").attach("test_batcher", Probe("k", keeper)).start().wait()
    with pytest.raises(RuntimeError, match="stale"):
        _ = keeper.kept.frame_items


def test_registered_observer_with_properties(make_pipeline: MakePipeline) -> None:
    seen = []

    class Observer(BufferObserver):
        def handle_buffer(self, buffer: Buffer) -> None:
            seen.append(self.get_property("interval"))

    register_probe("contract_observer", Observer, {"interval": ("integer", 5)})
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=2)
    pipeline.attach("videotestsrc", "contract_observer", "o", properties={"interval": 7})
    pipeline.start().wait()
    assert seen == [7, 7]


# --- failing user code ------------------------------------------------------------------------------------------------


def test_trap_13_an_operators_exception_is_a_bus_error_and_ends_the_flow(make_pipeline: MakePipeline) -> None:
    class Broken(BatchMetadataOperator):
        def handle_metadata(self, batch_meta: Any) -> None:
            for frame in batch_meta.frame_items:
                if (frame.source_id, frame.frame_number) == (1, 2):
                    raise ValueError("no plate")

    pipeline = make_pipeline("videotestsrc", "test_batcher", "fakesink", buffers=100)
    before = Counting()
    pipeline.attach("videotestsrc", Probe("count", before)).attach("test_batcher", Probe("plates", Broken()))
    errors = errors_of(pipeline)
    pipeline.start()
    wait_for(lambda: len(errors) == 2)  # the second one is the source's: streaming stopped, reason error
    element, text, debug = errors[0]
    assert element == "test_batcher"
    assert (
        "operator 'plates' (Broken) failed at source 1, frame 2: ValueError: no plate [test_pyservicemaker_run.py:"
        in text
    )
    assert "Traceback" in debug
    assert errors[1][0] == "videotestsrc"
    assert len(before.timestamps) == 3


def test_a_missing_override_is_an_error(make_pipeline: MakePipeline) -> None:
    class Empty(BufferOperator):
        pass

    pipeline = make_pipeline("videotestsrc", "fakesink").attach("videotestsrc", Probe("e", Empty()))
    errors = errors_of(pipeline)
    pipeline.start()
    wait_for(lambda: errors)
    assert 'Tried to call pure virtual function "BufferOperator::handle_buffer"' in errors[0][1]


def test_trap_20_an_error_does_not_end_wait(make_pipeline: MakePipeline, caplog: pytest.LogCaptureFixture) -> None:
    pipeline = make_pipeline("filesrc", "fakesink")
    pipeline["filesrc"].set({"location": "/nowhere/a.mp4"})
    pipeline.gst_pipeline.get_by_name("filesrc").set_locked_state(True)  # so that only the message can end it
    pipeline.start()
    source = pipeline.gst_pipeline.get_by_name("fakesink")
    source.post_message(Gst.Message.new_error(source, _gerror("lens cap on"), ""))
    waiting = threading.Thread(target=pipeline.wait, daemon=True)
    waiting.start()
    wait_for(lambda: "lens cap on" in caplog.text)
    assert waiting.is_alive()
    pipeline.gst_pipeline.set_state(Gst.State.NULL)  # our extension: this does end it
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_final_errors_end_wait(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=-1).start()
    sink = pipeline.gst_pipeline.get_by_name("fakesink")
    sink.post_message(Gst.Message.new_error(sink, _gerror("Output window was closed"), ""))
    pipeline.wait()


def _gerror(text: str) -> GLib.Error:
    return GLib.Error.new_literal(Gst.StreamError.quark(), text, int(Gst.StreamError.FAILED))


def test_trap_21_a_start_that_fails_lets_wait_return(
    make_pipeline: MakePipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = make_pipeline("filesrc", "fakesink")
    pipeline["filesrc"].set({"location": "/nowhere/a.mp4"})
    pipeline.start().wait()
    assert "/nowhere/a.mp4" in caplog.text


def test_a_failing_message_callback_is_a_bus_error(make_pipeline: MakePipeline) -> None:
    def on_message(message: object) -> None:
        raise KeyError("oops")

    pipeline = make_pipeline("videotestsrc", "fakesink")
    errors = errors_of(pipeline)
    pipeline.start(on_message).wait()
    assert "on_message failed: KeyError: 'oops'" in errors[0][1]


# --- life cycle -------------------------------------------------------------------------------------------------------


def test_messages(make_pipeline: MakePipeline) -> None:
    seen: list[Any] = []
    threads = set()

    def on_message(message: Any) -> None:
        seen.append(message)
        threads.add(threading.current_thread())

    make_pipeline("videotestsrc", "fakesink").start(on_message).wait()
    assert isinstance(seen[-1], EOSMessage)
    played = [m.origin for m in seen if isinstance(m, StateTransitionMessage) and m.new_state == PipelineState.PLAYING]
    assert sorted(played) == ["fakesink", "test-0", "videotestsrc"]
    assert threading.main_thread() not in threads
    assert len(threads) == 1


def test_the_callback_must_be_callable(make_pipeline: MakePipeline) -> None:
    with pytest.raises(Exception, match=r"^Message callback is not callable$"):
        make_pipeline("videotestsrc", "fakesink").start("print")


def test_trap_19_pipelines_have_threads_of_their_own(make_pipeline: MakePipeline) -> None:
    threads: dict[str, set[str]] = {"a": set(), "b": set()}
    for name, seen in threads.items():
        make_pipeline("videotestsrc", "fakesink").start(
            lambda _message, seen=seen: seen.add(threading.current_thread().name)
        ).wait()
        assert seen, name
    assert threads["a"].isdisjoint(threads["b"])


def test_trap_23_a_second_start_raises(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink").start()
    with pytest.raises(RuntimeError, match="runs once"):
        pipeline.start()
    pipeline.wait()
    for again in (pipeline.start, pipeline.prepare):
        with pytest.raises(RuntimeError, match="runs once"):
            again()
    with pytest.raises(RuntimeError):
        pipeline.activate()
    assert pipeline.gst_pipeline.get_state(0).state == Gst.State.NULL


def test_activate_needs_prepare(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RuntimeError, match="prepare"):
        make_pipeline("videotestsrc", "fakesink").activate()


def test_stop_ends_an_endless_pipeline(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=-1)
    assert pipeline.stop() is pipeline  # not started: nothing happens
    counting = Counting()
    pipeline.attach("videotestsrc", Probe("c", counting)).start()
    wait_for(lambda: counting.timestamps)
    pipeline.stop().wait()


def test_stop_right_after_start_is_not_lost(make_pipeline: MakePipeline) -> None:
    make_pipeline("videotestsrc", "fakesink", buffers=-1).start().stop().wait()


class Starting(Gst.Bin):
    """Does `pausing` on its way to PAUSED."""

    __gtype_name__ = "TestStarting"

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)

    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        result = Gst.Bin.do_change_state(self, transition)
        return self.pausing() if transition == Gst.StateChange.READY_TO_PAUSED else result


class Opening(Starting):
    """Takes its time to reach PAUSED, as a file that has to be opened; `done` says so, as often as it is called."""

    __gtype_name__ = "TestOpening"

    def pausing(self) -> Gst.StateChangeReturn:
        self.post_message(Gst.Message.new_async_start(self))
        return Gst.StateChangeReturn.ASYNC

    def done(self) -> None:
        self.continue_state(Gst.StateChangeReturn.SUCCESS)
        self.post_message(Gst.Message.new_async_done(self, Gst.CLOCK_TIME_NONE))


class Camera(Starting):
    """Is live, and while it starts, a file in the same pipeline is opened."""

    __gtype_name__ = "TestCamera"
    file: Opening

    def pausing(self) -> Gst.StateChangeReturn:
        self.file.done()
        return Gst.StateChangeReturn.NO_PREROLL


def test_a_file_that_opens_while_a_camera_starts_does_not_cost_the_clock(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=-1)
    pipeline["fakesink"].set({"async": False})
    camera = Camera()
    camera.file = Opening()
    for element in (camera, camera.file):  # GStreamer starts the last first
        pipeline.gst_pipeline.add(element)
    again: list[bool] = []

    def when_paused(_bus: Gst.Bus, message: Gst.Message) -> Gst.BusSyncReply:
        """uridecodebin says it twice, too, now and then: itself and for what is in it."""
        of_pipeline = message.src is pipeline.gst_pipeline and message.type == Gst.MessageType.STATE_CHANGED
        if of_pipeline and message.parse_state_changed().newstate == Gst.State.PAUSED and not again:
            again.append(True)
            camera.file.done()
        return Gst.BusSyncReply.PASS

    pipeline.gst_pipeline.get_bus().set_sync_handler(when_paused)
    pipeline.start()
    wait_for(lambda: pipeline.gst_pipeline.get_state(0).state == Gst.State.PLAYING)
    clock = pipeline.gst_pipeline.get_by_name("videotestsrc").get_clock()
    pipeline.stop().wait()
    assert again
    assert clock is not None


def test_seek_before_the_start(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("videotestsrc", "fakesink", buffers=3)
    counting = Counting()
    pipeline.attach("videotestsrc", Probe("c", counting)).seek(2.0).start().wait()
    assert 2_000_000_000 in counting.timestamps


def test_trap_22_ctrl_c_is_seen_in_wait(make_pipeline: MakePipeline) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
    try:
        pipeline = make_pipeline("videotestsrc", "fakesink", buffers=-1).start()
        threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            pipeline.wait()
        pipeline.stop().wait()
    finally:
        signal.signal(signal.SIGINT, before)

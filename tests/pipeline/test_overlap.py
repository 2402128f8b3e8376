"""pyinfer with a model that works beside the host: order, events, errors and stopping with batches on their way."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from elements.base import Gst
from elements.metadata.detections import Detections
from elements.portable.carrier import batch_of
from elements.portable.stream_events import stream_eos
from tests.pipeline.test_pyinfer import Harness, batch
from tests.waiting import LIMIT_S, wait_for

DEVICE = f"{__name__}:Device"


class Device:
    """As a GPU: `submit` returns at once, `collect` waits until the test lets the batch be done."""

    names = ("thing",)
    overlaps = True
    done = threading.Semaphore(0)
    submitted: list[int]
    collected: list[int]
    fails_on = -1

    def load(self) -> None:
        cls = type(self)
        cls.done = threading.Semaphore(0)
        cls.submitted, cls.collected = [], []

    def submit(self, frames: Any) -> list[tuple[int, int, int]]:
        self.submitted.append(frames[0].frame_number)
        return [(f.frame_number, f.width, f.height) for f in frames]

    def collect(self, work: list[tuple[int, int, int]]) -> list[Detections]:
        self.done.acquire()
        self.collected.append(work[0][0])
        if work[0][0] == self.fails_on:
            raise ValueError("no such luck")
        return [Detections(np.array([[0, 0, w, h]]), np.ones(1), np.zeros(1)) for _, w, h in work]

    def infer(self, frames: Any) -> list[Detections]:
        self.done.release()
        return self.collect(self.submit(frames))

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "fails_on", -1)


class Stream(Harness):
    """Pushes from a thread of its own, as an upstream queue does, and records what reaches the sink, in order."""

    def __init__(self, **properties: Any) -> None:
        super().__init__(model_path=DEVICE, **properties)
        self.order: list[Any] = []
        self.flows: list[Gst.FlowReturn] = []
        self.copied = 0
        probe = Gst.PadProbeType.BUFFER | Gst.PadProbeType.EVENT_DOWNSTREAM
        self.element.get_static_pad("src").add_probe(probe, self._record)

    def __exit__(self, *_: Any) -> None:
        let(100)  # a failed test must not hang
        super().__exit__()

    def _record(self, _pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if info.type & Gst.PadProbeType.BUFFER:
            made = batch_of(info.get_buffer())
            self.copied += made.owner != hash(info.get_buffer())
            assert all(len(frame.objects) == frame.infer_done for frame in made.frames)
            self.order.append(made.frames[0].frame_number)
        else:
            self.order.append(info.get_event().type)
        return Gst.PadProbeReturn.OK

    def feed(self, items: list[Any]) -> threading.Thread:
        def push() -> None:
            for item in items:
                if isinstance(item, int):
                    self.flows.append(self.push(batch(0, 1, number=item)))
                else:
                    self.sink.send_event(item)

        thread = threading.Thread(target=push, daemon=True)
        thread.start()
        return thread

    @property
    def numbers(self) -> list[int]:
        return [item for item in self.order if not isinstance(item, Gst.EventType)]


def let(count: int) -> None:
    for _ in range(count):
        Device.done.release()


def test_batches_are_submitted_while_earlier_ones_are_on_their_way() -> None:
    with Stream() as run:
        thread = run.feed(list(range(5)))
        assert wait_for(lambda: Device.submitted == [0, 1, 2])  # and the fourth waits
        assert run.numbers == []
        let(1)
        assert wait_for(lambda: Device.submitted == [0, 1, 2, 3])
        assert wait_for(lambda: run.numbers == [0])
        let(4)
        assert wait_for(lambda: run.numbers == [0, 1, 2, 3, 4])
        thread.join()
        assert set(run.flows) == {Gst.FlowReturn.OK}
        assert run.element.get_property("frames-inferred") == 10


def test_a_batch_leaves_without_waiting_for_the_next() -> None:
    with Stream() as run:
        let(1)
        run.feed([0])
        assert wait_for(lambda: run.numbers == [0])


def test_events_stay_where_they_were() -> None:
    with Stream() as run:
        del run.order[:]
        thread = run.feed([0, 1, stream_eos(0), 2, Gst.Event.new_eos()])
        assert wait_for(lambda: Device.submitted == [0, 1])
        let(3)
        thread.join()
        assert run.order == [0, 1, Gst.EventType.CUSTOM_DOWNSTREAM, 2, Gst.EventType.EOS]


def test_frames_that_are_not_due_keep_their_place() -> None:
    with Stream(interval=1) as run:
        thread = run.feed([0, 1, 2])
        assert wait_for(lambda: len(run.flows) == 3)
        assert run.numbers == []
        let(2)
        thread.join()
        assert wait_for(lambda: run.numbers == [0, 1, 2])
        assert Device.submitted == [0, 2]


def test_a_failure_stops_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "fails_on", 1)
    with Stream() as run:
        let(5)
        run.feed(list(range(10))).join()
        assert run.numbers == [0]
        text, debug = run.error()
        assert "source 0, frame 1; source 1, frame 1: ValueError: no such luck" in text
        assert "in collect" in debug
        assert run.flows[-1] == Gst.FlowReturn.ERROR
        assert run.error() is None


def test_a_failure_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "fails_on", 1)
    with Stream(on_error="skip") as run:
        let(3)
        run.feed([0, 1, 2]).join()
        assert wait_for(lambda: run.numbers == [0, 1, 2])
        assert run.element.get_property("frames-failed") == 2
        assert run.element.get_property("frames-inferred") == 4
        assert "this frame is skipped" in run.warning()[0]


@pytest.mark.parametrize("flow", [Gst.FlowReturn.EOS, Gst.FlowReturn.ERROR, Gst.FlowReturn.NOT_LINKED])
def test_what_downstream_answers_reaches_upstream(flow: Gst.FlowReturn) -> None:
    run = Stream()
    run.element.unlink(run.pipeline.get_by_name("fakesink0") or run.pipeline.children[0])
    pad = Gst.Pad.new("taker", Gst.PadDirection.SINK)
    pad.set_chain_function_full(lambda *_: flow)
    pad.set_active(True)
    run.element.get_static_pad("src").link(pad)
    with run:
        let(10)
        run.feed(list(range(10))).join()
        assert run.flows[-1] == flow


@pytest.mark.parametrize("fed", [0, 1, 3, 10])
def test_stopping_with_batches_on_their_way(fed: int) -> None:
    run = Stream()
    with run:
        thread = run.feed(list(range(fed)))
        assert wait_for(lambda: len(Device.submitted) == min(fed, 3))
        stopping = threading.Thread(target=run.pipeline.set_state, args=[Gst.State.NULL])
        stopping.start()
        assert wait_for(lambda: run.element.get_static_pad("src").flags & Gst.PadFlags.FLUSHING)
        let(3)  # what the device has begun may be waited for, the rest is not
        stopping.join(LIMIT_S)
        assert not stopping.is_alive()
        thread.join(LIMIT_S)
        assert not thread.is_alive()
        assert len(Device.submitted) <= 6


def test_a_flush_drops_what_is_on_its_way_and_the_stream_goes_on() -> None:
    with Stream() as run:
        thread = run.feed(list(range(4)))
        assert wait_for(lambda: len(Device.submitted) == 3)
        run.sink.send_event(Gst.Event.new_flush_start())
        let(1)
        thread.join()
        assert Gst.FlowReturn.FLUSHING in run.flows
        run.sink.send_event(Gst.Event.new_flush_stop(True))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        run.sink.send_event(Gst.Event.new_segment(segment))
        let(2)
        run.feed([7, 8]).join()
        assert wait_for(lambda: run.numbers == [7, 8])


def test_many_batches_keep_their_order() -> None:
    with Stream() as run:
        let(40)
        run.feed(list(range(40))).join()
        assert wait_for(lambda: len(run.numbers) == 40)
        assert run.numbers == list(range(40))

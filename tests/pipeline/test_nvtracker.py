"""The nvtracker element on batches that a probe fills."""

import logging
from collections.abc import Callable

import pytest
from gi.repository import GLib

from elements.base import GObject, Gst, caps
from elements.portable.carrier import batch_of, new_batch_buffer
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta
from elements.portable.nvtracker import NvTracker
from elements.portable.stream_events import stream_eos

CAPS = "video/x-raw(memory:NVMM), format=NV12, width=640, height=360, framerate=10/1"
TIMEOUT = 5 * Gst.SECOND


class Harness:
    """Pushes batches straight into the element's sink pad and keeps what comes out of its src pad."""

    def __init__(self, **properties: object) -> None:
        self.pipeline = Gst.Pipeline.new()
        self.element = NvTracker()
        for name, value in properties.items():
            self.element.set_property(name.replace("_", "-"), value)
        self.pipeline.add(self.element)
        self.out: list[Gst.Buffer] = []
        self.events: list[Gst.Event] = []
        self._drain = Gst.Pad.new("drain", Gst.PadDirection.SINK)
        self._drain.set_chain_function(self._chain)
        self._drain.set_event_function(self._event)
        self._drain.set_active(True)
        self.element.get_static_pad("src").link(self._drain)
        self.sink = self.element.get_static_pad("sink")

    def _chain(self, pad: Gst.Pad, parent: object, buffer: Gst.Buffer) -> Gst.FlowReturn:
        self.out.append(buffer)
        return Gst.FlowReturn.OK

    def _event(self, pad: Gst.Pad, parent: object, event: Gst.Event) -> bool:
        self.events.append(event)
        return True

    def start(self) -> "Harness":
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, self.error()
        self.sink.send_event(Gst.Event.new_stream_start("test"))
        self.sink.send_event(Gst.Event.new_caps(caps(CAPS)))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        self.sink.send_event(Gst.Event.new_segment(segment))
        return self

    def push(self, *frames: FrameMeta) -> list[FrameMeta]:
        batch = BatchMeta(max_frames=len(frames), frames=list(frames))
        assert self.sink.chain(new_batch_buffer(batch, frames[0].buffer_pts, 0)) == Gst.FlowReturn.OK, self.error()
        result = batch_of(self.out[-1])
        assert result is not None
        return result.frames

    def error(self) -> str:
        message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        return message.parse_error()[0].message if message else ""

    def stop(self) -> None:
        self.pipeline.set_state(Gst.State.NULL)


@pytest.fixture
def harness():
    made: list[Harness] = []

    def make(**properties: object) -> Harness:
        made.append(Harness(**properties))
        return made[-1].start()

    yield make
    for one in made:
        one.stop()


def frame(number: int, *boxes: tuple[float, float, float, float], pad: int = 0, inferred: bool = True) -> FrameMeta:
    """Frame ``number`` of a source of 10 frames/s, with an object of class 0 per (left, top, width, height)."""
    meta = FrameMeta(pad, pad, 0, number, number * Gst.SECOND // 10, pipeline_width=640, pipeline_height=360)
    meta.infer_done = inferred
    for box in boxes:
        item = ObjectMeta(label="person", confidence=0.8, detector_box=box)
        item.rect.left, item.rect.top, item.rect.width, item.rect.height = box
        meta.objects.append(item)
    return meta


def ids(frames: list[FrameMeta]) -> list[list[int]]:
    return [[item.object_id for item in one.objects] for one in frames]


def test_each_source_counts_its_own_ids_from_one(harness: Callable[..., Harness]) -> None:
    tracker = harness()
    a, b = (10, 20, 50, 100), (300, 20, 50, 100)
    assert ids(tracker.push(frame(0, a, b), frame(0, b, pad=1))) == [[], []]
    assert ids(tracker.push(frame(1, a, b), frame(1, b, pad=1))) == [[1, 2], [1]]
    assert ids(tracker.push(frame(2, b, a), frame(2, b, pad=1))) == [[2, 1], [1]]


def test_frames_of_one_source_in_one_batch_are_taken_in_order(harness: Callable[..., Harness]) -> None:
    box = (10, 20, 50, 100)
    assert ids(harness().push(*(frame(n, box) for n in range(4)))) == [[], [1], [1], [1]]


def test_classes_that_are_not_operated_on_pass_untouched(harness: Callable[..., Harness]) -> None:
    tracker = harness(operate_on_class_ids="2;3")
    (out,) = tracker.push(frame(0, (10, 20, 50, 100)))
    assert [(o.object_id, o.text.display_text) for o in out.objects] == [(2**64 - 1, "")]


def test_stream_end_drops_its_tracks_and_the_event_goes_on(harness: Callable[..., Harness]) -> None:
    box = (10, 20, 50, 100)
    for mode, expected in ((0, 2), (2, 1), (3, 1)):
        tracker = harness(tracking_id_reset_mode=mode)
        tracker.push(frame(0, box), frame(0, box, pad=1))
        assert ids(tracker.push(frame(1, box), frame(1, box, pad=1))) == [[1], [1]]
        tracker.sink.send_event(stream_eos(0))
        assert tracker.events[-1].type == Gst.EventType.CUSTOM_DOWNSTREAM
        assert ids(tracker.push(frame(2, box), frame(2, box, pad=1))) == [[], [1]]
        assert ids(tracker.push(frame(3, box), frame(3, box, pad=1))) == [[expected], [1]], mode


def test_time_that_steps_back_begins_new_tracks(harness: Callable[..., Harness]) -> None:
    box = (10, 20, 50, 100)
    assert ids(harness().push(*(frame(n, box) for n in (8, 9, 0, 1)))) == [[], [1], [], [2]]


def test_a_flush_forgets_tracks(harness: Callable[..., Harness]) -> None:
    box = (10, 20, 50, 100)
    tracker = harness()
    tracker.push(frame(0, box), frame(1, box))
    tracker.sink.send_event(Gst.Event.new_flush_start())
    tracker.sink.send_event(Gst.Event.new_flush_stop(False))
    segment = Gst.Segment()
    segment.init(Gst.Format.TIME)
    tracker.sink.send_event(Gst.Event.new_segment(segment))
    assert ids(tracker.push(frame(2, box), frame(3, box))) == [[], [2]]


def test_frames_without_a_timestamp_count_at_30_per_second(harness: Callable[..., Harness]) -> None:
    tracker = harness()
    frames = [frame(n, (10, 20, 50, 100)) for n in range(4)]
    for one in frames:
        one.buffer_pts = 2**64 - 1
    assert ids([tracker.push(one)[0] for one in frames]) == [[], [], [1], [1]]  # three hits at 30 frames/s


def test_configuration_errors_stop_the_start(tmp_path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text("%YAML:1.0\nTargetManagement:\n  probationAge: soon\n")
    for properties, text in (
        (
            {"ll_config_file": str(bad)},
            f"{bad}:3: TargetManagement.probationAge = soon: a whole number from 0 is needed",
        ),
        ({"ll_config_file": "a.yml;b.yml"}, "name one"),
        ({"operate_on_class_ids": "0,2"}, 'operate-on-class-ids="0,2"'),
    ):
        harness = Harness(**properties)
        assert harness.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
        assert text in harness.error()
        harness.stop()


def test_no_batch_metadata_is_an_error_that_says_what_to_do(harness: Callable[..., Harness]) -> None:
    tracker = harness()
    assert tracker.sink.chain(Gst.Buffer.new_allocate(None, 64, None)) == Gst.FlowReturn.ERROR
    assert "put an nvstreammux before" in tracker.error()


def test_properties_as_deepstream_has_them(caplog: pytest.LogCaptureFixture) -> None:
    element = NvTracker()
    assert element.get_property("tracker-width") == 960
    assert element.get_property("tracker-height") == 544
    assert element.get_property("display-tracking-id") is True
    assert element.get_property("sub-batch-err-recovery-trial-cnt") == 0
    kinds = {spec.name: spec.value_type.name for spec in GObject.list_properties(NvTracker)}
    assert kinds["user-meta-pool-size"] == "guint"
    assert kinds["ll-lib-file"] == "gchararray"
    element.set_property("ll-lib-file", "/opt/libnvds_nvmultiobjecttracker.so")
    with caplog.at_level(logging.WARNING, "gstorch.elements"):
        element.set_state(Gst.State.PAUSED)
        element.set_state(Gst.State.NULL)
        element.set_state(Gst.State.PAUSED)
    element.set_state(Gst.State.NULL)
    assert [record.message.split(": ")[1] for record in caplog.records] == ["no effect here"]


def test_rgb_is_refused_as_by_deepstream() -> None:
    with pytest.raises(GLib.Error, match="could not link"):
        Gst.Element.register(None, "trackerundertest", 0, NvTracker)
        Gst.parse_launch("fakesrc ! video/x-raw(memory:NVMM),format=RGB ! trackerundertest ! fakesink")

"""Taking frames from the mux's pads without PyGObject: references, times, caps, several pads at once."""

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)

from elements.portable.intake import Intake, Intakes  # noqa: E402
from elements.portable.wrapping import buffer_at, buffer_times, caps_at  # noqa: E402


def open_intake(caps: str = "video/x-raw,format=RGB,width=4,height=2,framerate=30/1") -> Intake:
    intake = Intake(4)
    intake.open()
    send(intake, Gst.Event.new_stream_start("s"), Gst.Event.new_caps(Gst.Caps.from_string(caps)))
    segment = Gst.Segment()
    segment.init(Gst.Format.TIME)
    send(intake, Gst.Event.new_segment(segment))
    return intake


def send(intake: Intake, *events: Gst.Event) -> None:
    assert all(intake.pad.send_event(event) for event in events)


def give(intake: Intake, *times: int) -> None:
    for pts in times:
        buffer = Gst.Buffer.new_allocate(None, 24, None)
        buffer.pts = pts
        assert intake.pad.chain(buffer) == Gst.FlowReturn.OK


def test_a_buffer_by_its_address_has_a_reference_of_its_own() -> None:
    buffer = Gst.Buffer.new_allocate(None, 8, None)
    before = buffer.mini_object.refcount
    other = buffer_at(hash(buffer))
    assert isinstance(other, Gst.Buffer)
    assert hash(other) == hash(buffer)
    assert buffer.mini_object.refcount == before + 1
    del other
    assert buffer.mini_object.refcount == before


def test_times_are_those_that_pygobject_tells() -> None:
    buffer = Gst.Buffer.new_allocate(None, 8, None)
    buffer.pts, buffer.dts, buffer.duration = 40, 30, 20
    times = buffer_times(hash(buffer))
    assert (times.pts, times.dts, times.duration) == (40, 30, 20)
    times.pts = Gst.CLOCK_TIME_NONE
    assert buffer.pts == Gst.CLOCK_TIME_NONE
    assert buffer.dts == 30


def test_caps_by_their_address() -> None:
    caps = Gst.Caps.from_string("video/x-raw,width=4")
    assert caps_at(hash(caps)).is_equal(caps)


def test_one_frame_of_each_that_has_one() -> None:
    intakes = [open_intake() for _ in range(3)]
    give(intakes[0], 1, 2)
    give(intakes[2], 7)
    taker = Intakes()
    assert [frame and frame.pts for frame in taker.take(intakes)] == [1, None, 7]
    assert [frame and frame.pts for frame in taker.take(intakes)] == [2, None, None]
    give(intakes[1], 5)
    assert [frame and frame.pts for frame in taker.take(intakes[1:])] == [5, None]
    for intake in intakes:
        intake.close()


def test_caps_are_told_with_the_frame_that_has_them() -> None:
    intake, taker = open_intake(), Intakes()
    give(intake, 1)
    send(intake, Gst.Event.new_caps(Gst.Caps.from_string("video/x-raw,format=RGB,width=8,height=1,framerate=30/1")))
    give(intake, 2, 3)
    found = []
    for _ in range(3):
        (frame,) = taker.take([intake])
        found.append((frame.pts, intake.caps_changed, intake.caps[0].get_int("width").value))
    intake.close()
    assert found == [(1, True, 4), (2, True, 8), (3, False, 8)]


def test_a_closed_intake_has_nothing() -> None:
    intake = open_intake()
    give(intake, 1)
    intake.close()
    assert Intakes().take([intake]) == [None]
    assert intake.take(0.0) is None


def test_who_takes_a_frame_is_its_only_owner_when_the_next_was_taken() -> None:
    intake, taker = open_intake(), Intakes()
    give(intake, 1, 2)
    (first,) = taker.take([intake])
    before = first.mini_object.refcount
    (second,) = taker.take([intake])
    assert second.pts == 2
    assert first.mini_object.refcount == before - 1  # an appsink keeps the frame that was taken last
    intake.close()

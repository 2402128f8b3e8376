"""nveglglessink: chooses a window sink, says what is missing, survives that its window is closed."""

from __future__ import annotations

import pytest
from gi.repository import GLib, Gst

from elements.base import ElementError
from elements.portable import nveglglessink
from tests.media import finish, message_of
from tests.waiting import wait_for


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_display_it_says_what_to_do(no_display):
    outcome = finish(Gst.parse_launch("videotestsrc num-buffers=3 ! nveglglessink name=window"))
    assert outcome.error.message == (
        "window: there is no display (DISPLAY and WAYLAND_DISPLAY are not set); use fakesink, or the output 'null' in "
        "a pipeline definition"
    )


def test_missing_sinks_are_named(monkeypatch):
    monkeypatch.setattr(nveglglessink, "_X11_SINKS", ("nosuchsink",))
    with pytest.raises(ElementError, match="none of nosuchsink is installed; install"):
        nveglglessink.window_sink({"DISPLAY": ":0"})


def test_frames_reach_the_window_until_it_is_closed(monkeypatch):
    monkeypatch.setattr(nveglglessink, "window_sink", lambda: "fakesink")
    pipeline = Gst.parse_launch(
        "videotestsrc ! video/x-raw,format=I420 ! nvvideoconvert ! video/x-raw(memory:NVMM) "
        "! nveglglessink name=window sync=false"
    )
    element = pipeline.get_by_name("window")
    pipeline.set_state(Gst.State.PLAYING)
    (window,) = [child for child in element.children if child.get_name().startswith("fakesink")]
    rendered = lambda: window.get_property("stats").get_value("rendered")  # noqa: E731
    assert window.get_property("sync") is False
    assert wait_for(lambda: rendered() > 3)
    closed = GLib.Error.new_literal(Gst.ResourceError.quark(), "Output window was closed", 3)
    window.post_message(Gst.Message.new_error(window, closed, ""))
    wanted = Gst.MessageType.ERROR | Gst.MessageType.ELEMENT
    message = message_of(pipeline, wanted)
    assert message.get_structure().get_name() == "window-closed"
    assert pipeline.get_bus().pop_filtered(wanted) is None
    assert pipeline.get_state(Gst.CLOCK_TIME_NONE)[0] == Gst.StateChangeReturn.SUCCESS
    pipeline.set_state(Gst.State.NULL)

"""What goes wrong in a vfunc of Python reaches the application."""

from __future__ import annotations

from typing import Any

import pytest

from elements.base import Gst, GstBase, guarded, keep_floating, sink_and_src
from tests.waiting import LIMIT_S


class Scripted(GstBase.BaseTransform):
    """Does with each buffer what the test says."""

    __gtype_name__ = "TestGuarded"
    __gstmetadata__ = ("guarded", "Generic", "does what the test says", "tests")
    __gsttemplates__ = sink_and_src("ANY")
    answer: Any = staticmethod(lambda: Gst.FlowReturn.OK)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.set_in_place(True)

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        return type(self).answer()


def leave() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: None, "TypeError: do_transform_ip must return a Gst.FlowReturn, such as OK, not None"),
        (lambda: True, "TypeError: do_transform_ip must return a Gst.FlowReturn, such as OK, not True"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (leave, "SystemExit: 3"),
    ],
)
def test_what_becomes_an_error(monkeypatch: pytest.MonkeyPatch, answer: Any, message: str) -> None:
    monkeypatch.setattr(Scripted, "answer", staticmethod(answer))
    source, element = Gst.ElementFactory.make("fakesrc"), Scripted()
    source.set_property("num-buffers", 2)
    element.set_name("it")
    sink = Gst.ElementFactory.make("fakesink")
    pipeline = Gst.Pipeline.new()
    for each in (source, element, sink):
        pipeline.add(each)
    assert source.link(element)
    assert element.link(sink)
    pipeline.set_state(Gst.State.PLAYING)
    ended = pipeline.get_bus().timed_pop_filtered(LIMIT_S * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert ended is not None
    assert ended.type == Gst.MessageType.ERROR
    error, trace = ended.parse_error()
    assert error.message == f"it: {message}"
    assert "in do_transform_ip" in trace or "guard" in trace

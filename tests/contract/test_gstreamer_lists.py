"""Lists of GStreamer's objects: complete, and taken in a way that other threads may change them meanwhile."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

from gi.repository import Gst

from elements.base import all_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("app", "elements", "pipelines")
UNLOCKED = {"srcpads", "sinkpads", "numpads", "children"}  # fields of GstElement and GstBin
CHANGES = 300


def names(bin_: Gst.Bin) -> list[str]:
    return sorted(element.get_name() for element in all_of(bin_.iterate_elements()))


def test_a_change_meanwhile_begins_again() -> None:
    bin_ = Gst.Bin.new("bin")
    for name in "ab":
        bin_.add(Gst.ElementFactory.make("identity", name))
    iterator = bin_.iterate_elements()
    iterator.next()
    bin_.add(Gst.ElementFactory.make("identity", "c"))
    assert sorted(element.get_name() for element in all_of(iterator)) == ["a", "b", "c"]
    assert names(Gst.Bin.new("empty")) == []


def test_pads_that_come_and_go_do_not_end_the_process() -> None:
    tee = Gst.ElementFactory.make("tee", "tee")

    def come_and_go() -> None:
        for _ in range(CHANGES):
            tee.release_request_pad(tee.request_pad_simple("src_%u"))

    changing = threading.Thread(target=come_and_go)
    changing.start()
    while changing.is_alive():
        assert "sink" in [pad.get_name() for pad in all_of(tee.iterate_pads())]
    changing.join()
    assert [pad.get_name() for pad in all_of(tee.iterate_pads())] == ["sink"]


def test_no_code_reads_lists_that_gstreamer_guards_with_a_lock() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: .{node.attr}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in UNLOCKED
    ]
    assert found == []

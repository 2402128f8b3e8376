"""A stage on the objects of another, in DeepStream's own metadata."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from elements.base import Gst, caps
from elements.metadata.detections import Detections
from elements.pyinfer import PyInfer
from tests.contract.nvds_double.native import SKIP

pytestmark = pytest.mark.skipif(bool(SKIP), reason=SKIP)
if not SKIP:
    from tests.contract import nvds_double
    from tests.contract.nvds_double.batches import FrameSpec, Surfaces
    from tests.contract.nvds_double.models import PATH, Scripted
    from tests.contract.nvds_double.walk import walk

CAPS = "video/x-raw(memory:NVMM), format=RGB, width=64, height=64, framerate=25/1"
OUTER = [[8, 8, 40, 24], [0, 32, 16, 64]]


@pytest.fixture(autouse=True)
def deepstream(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyservicemaker", nvds_double)
    monkeypatch.setattr(Scripted, "find", staticmethod(lambda frame: Detections(OUTER, [0.9, 0.8], [0, 1])))
    monkeypatch.setattr(Scripted, "names", ("car", "person"))


def run(second, source=(64, 64)):
    """The objects of one frame behind a first stage and ``second``, in the order in which they were added.

    The test's own reference makes GStreamer copy the buffer, once for each of the two elements.
    """
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[8:24, 8:40, 0] = 255  # red where the car is
    pictures = Surfaces([FrameSpec(picture, source)])
    pipeline = Gst.Pipeline.new()
    elements = [PyInfer(), PyInfer(), Gst.ElementFactory.make("fakesink")]
    first = {"model-path": PATH, "unique-id": 3}
    for element, properties in zip(elements, (first, {"unique-id": 4, "name": "second", **second}), strict=False):
        for name, value in properties.items():
            element.set_property(name, value)
    found = []
    elements[2].set_property("signal-handoffs", True)
    elements[2].set_property("async", False)
    elements[2].connect("handoff", lambda _sink, buffer, _pad: found.append(walk(buffer)))
    for element in elements:
        pipeline.add(element)
    elements[0].link(elements[1])
    elements[1].link(elements[2])
    try:
        assert pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        sink = elements[0].get_static_pad("sink")
        for event in (Gst.Event.new_stream_start("t"), Gst.Event.new_caps(caps(CAPS)), Gst.Event.new_segment(segment)):
            sink.send_event(event)
        assert sink.chain(pictures.buffer()) == Gst.FlowReturn.OK
    finally:
        pipeline.set_state(Gst.State.NULL)
    (frame,) = found[-1]["frames"]
    return sorted(frame["objects"], key=lambda item: (item["component_id"], item["class_id"]))


def test_labels_of_a_classifier():
    car, person = run({"model-path": "tests.cascade_models:Colour", "operate-on": '{"id": 3, "classes": ["car"]}'})
    assert car["classifiers"] == [{"type": "second", "component_id": 4, "labels": [("crimson", 0, 0.875)]}]
    assert person["classifiers"] == []


def test_objects_in_objects_know_their_parents():
    car, person, *middles = run({"model-path": "tests.cascade_models:Middle", "operate-on": '{"id": 3}'})
    assert sorted(item["rect"] for item in middles) == [(4, 40, 8, 16), (16, 12, 16, 8)]
    assert {item["rect"]: item["parent"] for item in middles} == {
        (16, 12, 16, 8): car["at"],
        (4, 40, 8, 16): person["at"],
    }
    assert (car["parent"], person["parent"]) == (0, 0)
    assert {item["component_id"] for item in middles} == {4}


def test_vectors():
    car, _ = run({"model-path": "tests.cascade_models:Vector", "operate-on": '{"id": 3}'})
    assert [json.loads(text) for _, text in car["user"]] == [[1.0, 0.0, 0.0]]


def test_a_class_offset():
    found = run({"model-path": PATH, "class-offset": 7})
    assert [(item["component_id"], item["class_id"], item["label"]) for item in found] == [
        (3, 0, "car"), (3, 1, "person"), (4, 7, "car"), (4, 8, "person"),
    ]  # fmt: skip

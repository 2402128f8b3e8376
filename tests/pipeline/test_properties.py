"""Properties are as the graph has them, or somebody is told: NVIDIA's pyservicemaker itself says nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from elements.base import Gst, GstBase, Property, PropertyTable, gproperties, keep_floating, sink_and_src
from pipelines.assemble import AssemblyError, assemble
from pipelines.definition import definition_from_mapping, load_definition
from pipelines.graph import Graph, Node
from pipelines.runtime import load_runtime


class Stubborn(PropertyTable, GstBase.BaseTransform):
    """Halves what it is given."""

    __gtype_name__ = "TestStubborn"
    __gstmetadata__ = ("stubborn", "Generic", "keeps half of what it is told", "tests")
    __gsttemplates__ = sink_and_src("ANY")
    PROPERTIES = (Property("size", int, 0, "halved"),)
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()

    def property_changed(self, name: str, value: int) -> None:
        self.values[name] = value // 2


def assembled(factory: str, properties: dict, secret: frozenset[str] = frozenset()) -> Gst.Element:
    runtime = load_runtime("portable")
    if Gst.ElementFactory.find("test_stubborn") is None:
        Gst.Element.register(None, "test_stubborn", 0, Stubborn)
    graph = Graph("g")
    graph.add(Node("it", factory, properties, secret, "stages.0"))
    where = {"stages.0": "door.yaml:7: stages[0]"}.__getitem__
    return assemble(graph, runtime, where=where).gst.get_by_name("it")


@pytest.mark.parametrize(
    ("factory", "properties"),
    [
        ("identity", {"sleep-time": 5, "silent": False, "drop-probability": 0.3}),
        ("queue", {"leaky": 2, "max-size-time": 10**12}),  # an enum by number; 64 bit
        ("queue", {"max-size-time": 2**64 - 1}),
        ("capsfilter", {"caps": "video/x-raw(memory:NVMM), format=RGB, width=[1, 100]"}),
        ("filesink", {"location": "/tmp/x", "buffer-mode": 2}),
        ("videotestsrc", {"foreground-color": 0xFFFF0000}),  # more than 31 bits
    ],
)
def test_what_an_element_can_have_it_has(factory, properties, caplog):
    caplog.set_level(logging.WARNING, "gstorch")
    element = assembled(factory, properties)
    for name, value in properties.items():
        has = element.get_property(name)
        if name == "caps":
            assert has.is_equal(Gst.Caps.from_string(value))
        else:
            assert has == pytest.approx(value, abs=1e-6) if isinstance(value, float) else has == value
    assert caplog.text == ""


@pytest.mark.filterwarnings("ignore::gi.repository.GObject.Warning")  # GLib tells it as well
@pytest.mark.parametrize(
    ("factory", "properties", "problem"),
    [
        ("identity", {"sleeptime": 5}, "property 'sleeptime' should be 5, but the element has no such property"),
        ("queue", {"leaky": "downstream"}, "'leaky' should be 'downstream', but pyservicemaker takes the number"),
        ("identity", {"drop-probability": 7.0}, "'drop-probability' should be 7.0, but the element takes 0.0 to 1.0"),
        ("queue", {"max-size-buffers": -3}, "'max-size-buffers' should be -3, but the element takes 0 to 4294967295"),
        ("queue", {"max-size-bytes": 2**40}, "'max-size-bytes' should be 1099511627776, but the element takes 0 to"),
        ("capsfilter", {"caps": "video/x-raw, width=(int"}, "should be 'video/x-raw, width=(int', but that is no caps"),
        ("queue", {"current-level-buffers": 3}, "'current-level-buffers' should be 3, but it is read-only"),
        ("identity", {"sink_0::xpos": 3}, "'sink_0::xpos' should be 3, but the element has no such property"),
    ],
)
def test_what_it_cannot_have_stops_the_assembly(factory, properties, problem):
    with pytest.raises(AssemblyError) as raised:
        assembled(factory, properties)
    assert str(raised.value).startswith(f"door.yaml:7: stages[0]: 'it' ({factory}): property ")
    assert problem in str(raised.value)


def test_what_came_out_different_is_told(caplog):
    caplog.set_level(logging.WARNING, "gstorch")
    assembled("test_stubborn", {"size": 8})
    assert caplog.messages == [
        "door.yaml:7: stages[0]: 'it' (test_stubborn): property 'size' should be 8, but after it was set it is 4"
    ]


def test_a_secret_is_not_told(caplog):
    caplog.set_level(logging.WARNING, "gstorch")
    assembled("test_stubborn", {"size": 8}, frozenset({"size"}))
    assert "should be ***, but after it was set it is ***" in caplog.text


def test_the_place_in_the_definition(tmp_path: Path):
    file = tmp_path / "door.yaml"
    file.write_text("pipeline: x\nsources:\n  - door.mp4\nstages:\n  - node:\n      factory: identity\n")
    definition = load_definition(file)
    assert definition.where("stages.0") == f"{file}:5: stages[0]"
    assert definition.where("sources.0") == f"{file}:3: sources[0]"
    assert definition.where("mux") == "mux"  # which is not written there
    made = definition_from_mapping({"pipeline": "x", "sources": ["door.mp4"]}, tmp_path)
    assert made.where("sources.0") == "command line: sources[0]"

"""What is said of an error of the bus."""

from __future__ import annotations

import pytest

from pipelines.bus import BusEvent
from pipelines.failure import describe
from pipelines.graph import Graph, Node


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "infer: source 1: model 'night.onnx': no such file",
            "infer: source 'yard': model 'night.onnx': no such file (p.yaml: sources.1.infer.infer.model)",
        ),
        (
            "infer: model 'm', source 0: classes: no",
            "infer: model 'm', source 'door': classes: no (p.yaml: sources.0.infer.infer.classes)",
        ),
        ("infer: source 1, frame 4: no luck", "infer: source 'yard', frame 4: no luck"),
    ],
)
def test_what_is_wrong_with_an_option_of_a_source_names_its_place(text, told):
    graph = Graph("p")
    graph.add(Node("infer", "pyinfer"))
    event = BusEvent("error", ("infer", "pipeline"), text)
    assert describe(event, graph, ["door", "yard"], lambda origin: f"p.yaml: {origin}") == (told, "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("infer: source 1, frame 4: no luck", "infer: source 'yard', frame 4: no luck"),
        ("infer: model 'm', source 0: classes: no", "infer: model 'm', source 'door': classes: no"),
        ("infer: source 7, frame 4: no luck", "infer: source 7, frame 4: no luck"),
    ],
)
def test_sources_are_called_by_name(text, told):
    assert describe(BusEvent("error", text=text), Graph("p"), ["door", "yard"]) == (told, "")

"""Definition to graph. The golden files in golden/ are what `gstorch explain` would print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.branches import canvas_size, grid
from pipelines.builder import build_graph, mux_pads, mux_size
from pipelines.definition import Definition, analyze_checks, definition_from_mapping
from pipelines.draft import Facts
from pipelines.render import as_text

GOLDEN = Path(__file__).parent / "golden"
BASE = Path("/videos")
STAGES = [{"infer": {"model": "m.onnx", "confidence": 0.4}}, {"track": {}}, {"draw": {}}]
STAND_INS = frozenset({"nvstreammux", "nvtracker"})


@pytest.fixture(autouse=True)
def model_file(monkeypatch):
    """The loader checks that named files are there; these definitions name none that is."""
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    monkeypatch.setattr(analyze_checks, "load_nvds_config", lambda path: None)


def definition(**keys) -> Definition:
    return definition_from_mapping({"pipeline": "p", "sources": ["a.mp4"], **keys}, BASE)


CASES = {
    "one-file": (
        definition,
        {"outputs": [{"file": {"path": "o.mp4"}}, {"events": {"path": "e.jsonl"}}]},
        ((768, 432),),
    ),
    "two-files-tiled": (
        definition,
        {"sources": ["a.mp4", "b.mp4"], "outputs": [{"file": {"path": "o.mp4"}}]},
        ((1280, 720), (720, 1280)),
    ),
    "file-per-source": (
        definition,
        {"sources": ["a.mp4", "b.mp4"], "outputs": [{"file": {"path": "out-{source}.mp4", "tile": "off"}}]},
        ((1280, 720), (427, 241)),
    ),
    "camera": (
        definition,
        {
            "sources": [{"uri": "rtsp://cam/1", "username": "u", "password": "secret"}],
            "outputs": [{"events": {"path": "-"}}],
        },
        (None,),
    ),
    "two-videos": (
        definition,
        {"outputs": [{"file": {"path": "o.mp4"}}, {"display": {}}]},
        ((640, 360),),
    ),
    "analytics": (
        definition,
        {
            "sources": ["a.mp4", "b.mp4"],
            "stages": [
                *STAGES[:2],
                {
                    "analyze": {
                        "zones": [{"name": "exit", "polygon": [[0.8, 0], [1, 0], [1, 1]], "sources": ["a"]}],
                        "lines": [{"name": "door", "points": [[0.5, 0], [0.5, 1]], "towards": [0.9, 0.5]}],
                    }
                },
                {"analyze": {"name": "as-deepstream", "config": "analytics.txt"}},
                STAGES[2],
            ],
            "outputs": [{"file": {"path": "o.mp4"}}],
        },
        ((1280, 720), (1280, 720)),
    ),
    "messages": (
        definition,
        {
            "stages": [
                STAGES[0],
                {"message": {"broker": "nats", "connection": "nats://u:secret@broker:4222/found"}},
                STAGES[2],
            ],
            "outputs": [{"file": {"path": "o.mp4"}}],
        },
        ((640, 360),),
    ),
    "prompt": (
        definition,
        {
            "stages": [
                *STAGES[:2],
                {
                    "prompt": {
                        "endpoint": "http://localhost:8000/v1", "model": "vl", "api_key": "a secret", "name": "carries",
                        "text": "What does the {label} carry?", "frames": 3, "params": {"seed": "secret"},
                        "trigger": {"classes": ["person"], "interval": "5s"}, "budget": {"requests_per_minute": 30},
                    }
                },
                STAGES[2],
            ]
        },
        ((640, 360),),
    ),
    "cascade": (
        definition,
        {
            "stages": [
                {"infer": {"name": "detector", "model": "m.onnx", "labels": ["person", "car"]}},
                {"infer": {"name": "more", "model": "n.onnx", "merge_with": "detector", "class_offset": 2}},
                {"infer": {"name": "plates", "model": "p.onnx", "operate_on": {"stage": "detector"}}},
                {"track": {}},
                {
                    "infer": {
                        "name": "colour", "model": "tests.own_models:Tuned", "params": {"size": 3},
                        "operate_on": {
                            "stage": "detector", "classes": ["car", 0], "min_size": 32, "max_objects_per_frame": 40,
                            "refresh": "5s", "rate": "90/min",
                        },
                    }
                },
                {"infer": {"name": "read", "model": "r.onnx", "postprocess": "tests.own_models:read"}},
            ]
        },
        ((640, 360),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_graph_equals_the_golden_one(name):
    make, keys, sizes = CASES[name]
    text = as_text(build_graph(make(**{"stages": STAGES, **keys}), Facts(sizes, stand_ins=STAND_INS)), STAND_INS) + "\n"
    assert "secret" not in text
    assert text == (GOLDEN / f"{name}.txt").read_text()


def test_the_mux_holds_every_source_and_is_even():
    d = definition(sources=["a.mp4", "b.mp4", "c.mp4"])
    assert mux_size(d, Facts(((1281, 720), (720, 1279), (4000, 4000)), failed=frozenset({2}))) == (1282, 1280)
    assert mux_size(d, Facts(((640, 360), None, None))) == (1920, 1080)
    assert mux_size(definition(mux={"width": 800, "height": 600}), Facts(((640, 360),))) == (800, 600)


def test_sources_that_cannot_be_opened_take_no_pad():
    assert mux_pads(4, frozenset({1})) == {0: 0, 2: 1, 3: 2}


def test_files_share_a_batch_so_that_every_core_has_a_frame():
    d = definition()
    assert build_graph(d, Facts(((640, 360),), workers=4)).nodes["mux"].properties["batch-size"] == 4
    camera = definition(sources=["rtsp://cam/1"])
    assert build_graph(camera, Facts((None,), workers=4)).nodes["mux"].properties["batch-size"] == 1


def test_nvidias_tracker_gets_its_library_and_the_stand_in_does_not():
    d = definition(stages=STAGES)
    real = build_graph(d, Facts(((640, 360),))).nodes["track"].properties
    assert real["ll-lib-file"].endswith("libnvds_nvmultiobjecttracker.so")
    assert "ll-lib-file" not in build_graph(d, Facts(((640, 360),), stand_ins=STAND_INS)).nodes["track"].properties


def test_what_a_camera_is_waited_for():
    reconnect = {"delay": "250ms", "max_delay": "8s", "attempts": 5}
    d = definition(sources=[{"uri": "rtsp://cam/1", "latency": "1.5s", "timeout": "3.2s", "reconnect": reconnect}])
    deepstreams = {
        "latency": 1500,
        "rtsp-reconnect-interval": 4,
        "init-rtsp-reconnect-interval": 4,
        "rtsp-reconnect-attempts": 5,
    }
    ours = {"gstorch-reconnect-backoff-min": 0.25, "gstorch-reconnect-backoff-max": 8.0}
    real = build_graph(d, Facts((None,))).nodes["source-0"].properties
    assert deepstreams.items() <= real.items()
    assert not ours.keys() & real.keys()
    stand_in = build_graph(d, Facts((None,), stand_ins=frozenset({"nvurisrcbin"}))).nodes["source-0"].properties
    assert (deepstreams | ours).items() <= stand_in.items()


def test_what_sources_have_otherwise_goes_by_id_and_stage():
    own = {
        "infer": {"confidence": 0.6, "region": [0, 0.5, 1, 1]},
        "plates": {"model": "night.onnx", "classes": ["car"]},
    }
    stages = [{"infer": {"model": "m.onnx"}}, {"infer": {"model": "p.onnx", "name": "plates"}}]
    nodes = build_graph(
        definition(sources=["a.mp4", {"uri": "b.mp4", "infer": own}], stages=stages), Facts(((64, 48), (64, 48)))
    ).nodes
    region = [[0, 0.5], [1, 0.5], [1, 1], [0, 1]]
    assert json.loads(nodes["infer"].properties["source-options"]) == {"1": {"confidence": 0.6, "region": region}}
    plates = {"1": {"classes": ["car"], "model": str(BASE / "night.onnx")}}
    assert json.loads(nodes["plates"].properties["source-options"]) == plates
    assert "source-options" not in build_graph(definition(stages=stages), Facts(((64, 48),))).nodes["infer"].properties


def test_a_network_is_compiled_for_the_batches_of_the_mux():
    graph = build_graph(
        definition(
            sources=["a.mp4"] * 3,
            stages=[{"infer": {"model": "m.pt2", "compile": True}}, {"infer": {"model": "n.pt2"}}],
        ),
        Facts(((1280, 720),) * 3, STAND_INS),
    )
    compiled, other = graph.nodes["infer"].properties, graph.nodes["infer-2"].properties
    assert (compiled["compile"], compiled["batch-size"]) == (True, 3)
    assert not {"compile", "batch-size"} & set(other)


def test_how_a_new_model_proves_itself():
    swap = {"shadow": 8, "keep": "1m", "max_latency": "40ms"}
    stages = [{"infer": {"model": "m.onnx", "swap": swap, "reload": "watch"}}]
    properties = build_graph(definition(stages=stages), Facts(((64, 48),))).nodes["infer"].properties
    assert json.loads(properties["swap-options"]) == {"shadow": 8, "keep": 60.0, "max_latency": 0.04}
    assert properties["reload"] == "watch"


@pytest.mark.parametrize(
    ("sources", "rows_columns"), [(0, (1, 1)), (1, (1, 1)), (2, (1, 2)), (3, (2, 2)), (5, (2, 3)), (9, (3, 3))]
)
def test_automatic_grid(sources, rows_columns):
    assert grid("auto", sources) == rows_columns


def test_the_canvas_keeps_the_shape_of_its_tiles():
    assert canvas_size((1280, 720), 2, 2) == (1920, 1080)
    assert canvas_size((1280, 1280), 1, 2) == (1920, 960)
    assert canvas_size((320, 240), 1, 2) == (640, 240)


def test_direct_delivery_branches_off_and_hides_the_connection():
    config = Path(__file__).resolve().parents[2] / "configs/messages/msgconv.txt"
    stage = {
        "schema": "minimal", "delivery": "direct", "broker": "amqp", "connection": "broker;5672;u;secret",
        "topic": "found", "config": str(config), "frame_interval": 30,
    }  # fmt: skip
    graph = build_graph(definition(stages=[STAGES[0], {"message": stage}, STAGES[2]]), Facts(((640, 360),)))
    assert "secret" not in as_text(graph, STAND_INS)
    assert list(graph.successors("message-tee")) == ["message-direct-queue", "message-queue"]
    assert graph.nodes["message-direct-queue"].properties["leaky"] == 2
    assert graph.nodes["message-convert"].properties == {
        "config": str(config), "payload-type": 1, "msg2p-newapi": True, "frame-interval": 30,
    }  # fmt: skip
    broker = graph.nodes["message"].properties
    assert broker["proto-lib"].endswith("libnvds_amqp_proto.so")
    assert (broker["conn-str"], broker["topic"], broker["new-api"]) == ("broker;5672;u;secret", "found", True)
    assert list(graph.successors("message-queue")) == ["sink"]

"""What a definition means: defaults, names, units, variables, overrides."""

from pathlib import Path

import pytest
from pydantic import Secret, ValidationError

from pipelines.definition import (
    DrawStage,
    EventsOutput,
    FileOutput,
    InferStage,
    MessageStage,
    Mux,
    NodeStage,
    Reconnect,
    Runtime,
    TrackStage,
    definition_from_mapping,
    load_definition,
)
from tests.unit.definition_files import infer, load

# --- the whole --------------------------------------------------------------------------------------------------------


def test_example_of_the_design(tmp_path: Path) -> None:
    text = """
pipeline: entrance
sources:
  - {name: door, uri: clips/door.mp4}
  - name: yard
    uri: rtsp://192.0.2.10/stream1
    username: ${YARD_USER}
    password: ${YARD_PASSWORD}
mux: {width: 1280, height: 720, timeout: 40ms}
stages:
  - infer: {model: model.onnx, task: detect, confidence: 0.4}
  - track: {config: tracker.yml}
  - draw: {}
outputs:
  - file: {path: out/entrance.mp4, tile: auto}
  - events: {path: out/entrance.jsonl}
"""
    definition = load(tmp_path, text, YARD_USER="me", YARD_PASSWORD="p@ss")
    door, yard = definition.sources
    assert (definition.pipeline, door.name, yard.name) == ("entrance", "door", "yard")
    assert yard.gst_uri.get_secret_value() == "rtsp://me:p%40ss@192.0.2.10/stream1"
    assert definition.mux == Mux(width=1280, height=720)
    assert definition.mux.timeout == 0.04
    assert definition.stages == (
        InferStage(model=tmp_path / "model.onnx", task="detect", confidence=0.4, name="infer", unique_id=1),
        TrackStage(config=tmp_path / "tracker.yml"),
        DrawStage(),
    )
    assert definition.outputs == (
        FileOutput(path=tmp_path / "out/entrance.mp4"),
        EventsOutput(path=tmp_path / "out/entrance.jsonl"),
    )


def test_defaults(tmp_path: Path) -> None:
    definition = load(tmp_path, "")
    assert (definition.stages, definition.outputs) == ((), ())
    mux, runtime, source = definition.mux, definition.runtime, definition.sources[0]
    assert (mux.width, mux.height, mux.batch_size, mux.live) == (None, None, None, None)
    assert (mux.timeout, mux.padding) == (0.04, True)
    assert (runtime.prefer, runtime.stop_timeout, runtime.stall_timeout) == ("auto", 8.0, 30.0)
    assert runtime.on_source_error == "continue"
    assert (source.latency, source.timeout, source.loop) == (0.1, 10.0, False)
    assert source.reconnect == Reconnect(delay="1s", max_delay="30s", attempts=-1)
    stage = infer(tmp_path, "")
    assert (stage.confidence, stage.iou, stage.interval, stage.device) == (0.25, 0.45, 0, "auto")
    assert (stage.batch_size, stage.pad, stage.input_size, stage.labels, stage.classes) == (None,) * 5


def test_a_key_without_options_means_the_defaults(tmp_path: Path) -> None:
    definition = load(tmp_path, "mux:\nruntime:\nstages:\n  - draw:\noutputs:\n  - display:\n  - null:\n")
    assert (definition.mux, definition.runtime) == (Mux(), Runtime())
    assert definition.stages == (DrawStage(),)
    assert [output.KEY for output in definition.outputs] == ["display", "null"]


def test_definitions_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        load(tmp_path, "").mux.width = 640  # type: ignore[misc]


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes("\ufeffpipeline: entrance\r\nsources:\r\n  - door.mp4\r\n".encode())
    assert load_definition(file).sources[0].location == str(tmp_path / "door.mp4")


def test_merge_keys_and_aliases(tmp_path: Path) -> None:
    text = """
sources:
  - &camera {uri: rtsp://192.0.2.1/a, latency: 200ms, reconnect: &patient {max_delay: 5m}}
  - {<<: *camera, uri: rtsp://192.0.2.2/a}
  - {<<: [{timeout: 1m}, *camera], uri: rtsp://192.0.2.3/a, latency: 1s, reconnect: *patient}
"""
    sources = load(tmp_path, text).sources
    assert [s.location[7:16] for s in sources] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert [s.latency for s in sources] == [0.2, 0.2, 1.0]
    assert [s.timeout for s in sources] == [10.0, 10.0, 60.0]
    assert [s.reconnect.max_delay for s in sources] == [300.0] * 3


# --- text and units ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["no", "on", "1:30", "010", "1.50", "1e5", "true", "0x1F", "東門", "بوابة", "a b"])
def test_text_is_what_was_typed(tmp_path: Path, name: str) -> None:
    definition = load(tmp_path, f"pipeline: {name}\nsources: [{{uri: rtsp://h/a, name: {name}, password: {name}}}]")
    source = definition.sources[0]
    assert source.password is not None
    assert (definition.pipeline, source.name, source.password.get_secret_value()) == (name, name, name)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("40ms", 0.04),
        ("10s", 10.0),
        ("1m30s", 90.0),
        ("2h", 7200.0),
        ("1.5s", 1.5),
        ("5min", 300.0),
        ("250us", 0.00025),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert Mux(timeout=text).timeout == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "rate"), [("4M", 4_000_000), ("800k", 800_000), ("2.5M", 2_500_000)])
def test_bit_rates(text: str, rate: int) -> None:
    assert FileOutput(path="a.mp4", bitrate=text).bitrate == rate


def test_tiles() -> None:
    assert [FileOutput(path="a.mp4", tile=tile).tile for tile in ("auto", "off", "2x3")] == ["auto", "off", (2, 3)]


# --- stages and outputs -----------------------------------------------------------------------------------------------


def test_options_of_infer(tmp_path: Path) -> None:
    stage = infer(
        tmp_path, "labels: [person, 2], classes: [person, 2, '2'], input_size: 640x384, pad: 9, device: cuda:1"
    )
    assert stage.labels == ("person", "2")
    assert stage.classes == ("person", 2, "2")
    assert (stage.input_size, stage.pad, stage.device) == ((640, 384), 9, "cuda:1")
    assert infer(tmp_path, "labels: labels.txt, input_size: 640").labels == tmp_path / "labels.txt"
    assert infer(tmp_path, "input_size: 640").input_size == (640, 640)
    assert infer(tmp_path, "input_size: auto, pad: auto, batch_size: auto").input_size is None


def test_model_may_be_a_python_class(tmp_path: Path) -> None:
    stage = load(tmp_path, "stages: [infer: {model: my_package.models:Plates}]").stages[0]
    assert isinstance(stage, InferStage)
    assert stage.model == "my_package.models:Plates"


def test_names_and_ids_of_infer_stages(tmp_path: Path) -> None:
    text = """
stages:
  - infer: {model: model.onnx}
  - infer: {model: model.onnx, unique_id: 1}
  - infer: {model: model.onnx, name: infer}
"""
    stages = [s for s in load(tmp_path, text).stages if isinstance(s, InferStage)]
    assert [(s.name, s.unique_id) for s in stages] == [("infer-2", 2), ("infer-3", 1), ("infer", 3)]


def test_node_properties_keep_their_type(tmp_path: Path) -> None:
    text = """
stages:
  - node:
      factory: videobalance
      properties: {a: 1, b: 1.5, c: true, d: no, e: '1', f: "${NUMBER}", g: "${NUMBER}px"}
"""
    stage = load(tmp_path, text, NUMBER="7").stages[0]
    assert isinstance(stage, NodeStage)
    assert stage.name == "videobalance"
    values = dict(stage.properties)
    secrets = [values.pop("f"), values.pop("g")]
    assert values == {"a": 1, "b": 1.5, "c": True, "d": "no", "e": "1"}
    assert [s.get_secret_value() for s in secrets if isinstance(s, Secret)] == [7, "7px"]


def test_outputs(tmp_path: Path) -> None:
    text = """
outputs:
  - file: {path: "out/{source}.mp4", tile: off, bitrate: 2M}
  - events: {path: "-"}
"""
    file, events = load(tmp_path, text).outputs
    assert isinstance(file, FileOutput)
    assert file.path_for("東門") == tmp_path / "out/東門.mp4"
    assert isinstance(events, EventsOutput)
    assert events.to_stdout
    assert events.path == Path("-")


# --- environment ------------------------------------------------------------------------------------------------------


def test_variables(tmp_path: Path) -> None:
    text = """
pipeline: ${SITE}-${GATE:-north}-$$5-$x
mux:
  width: ${WIDTH}
  height: "${HEIGHT:-720}"
  batch_size: ${EMPTY:-4}
sources:
  - {uri: rtsp://h/a, username: "${EMPTY}", password: "${WIDTH}"}
"""
    definition = load(tmp_path, text, SITE="${GATE}", WIDTH="1280", EMPTY="")
    assert definition.pipeline == "${GATE}-north-$5-$x"
    assert (definition.mux.width, definition.mux.height, definition.mux.batch_size) == (1280, 720, 4)
    source = definition.sources[0]
    assert source.username is None
    assert source.password is not None
    assert source.password.get_secret_value() == "1280"


# --- overrides --------------------------------------------------------------------------------------------------------

OVERRIDABLE = """
sources:
  - clips/door.mp4
  - {name: cam.1, uri: rtsp://192.0.2.10/a}
stages:
  - infer: {model: model.onnx}
  - draw:
outputs:
  - events: {path: a.jsonl}
"""


def test_overrides(tmp_path: Path) -> None:
    definition = load(
        tmp_path,
        OVERRIDABLE,
        "pipeline=exit: north #1",
        "mux.width=640",
        "mux.height=480",
        "sources.door.loop=true",
        "sources[1].reconnect.delay=2s",
        "sources.cam.1.uri=rtsps://192.0.2.11/*",
        "sources.cam.1.password=${PW}",
        "stages.infer.confidence=0.5",
        "stages.infer.classes=[person, 2]",
        "stages.draw.boxes=false",
        'outputs.events.path="-"',
        "runtime={stop_timeout: 3s}",
        PW="7",
    )
    door, camera = definition.sources
    assert definition.pipeline == "exit: north #1"
    assert definition.mux == Mux(width=640, height=480)
    assert (door.name, door.loop, door.location) == ("door", True, str(tmp_path / "clips/door.mp4"))
    assert (camera.reconnect.delay, camera.location) == (2.0, "rtsps://192.0.2.11/*")
    assert camera.password is not None
    assert camera.password.get_secret_value() == "7"
    stage, draw = definition.stages
    assert isinstance(stage, InferStage)
    assert (stage.confidence, stage.classes) == (0.5, ("person", 2))
    assert draw == DrawStage(boxes=False)
    assert definition.outputs == (EventsOutput(path="-"),)
    assert definition.runtime.stop_timeout == 3.0


def test_an_override_replaces_what_was_wrong(tmp_path: Path) -> None:
    text = "sources: [{uri: '${CAMERA}', latency: 5, reconnect: {delays: 1}}]"
    definition = load(tmp_path, text, "sources.0={uri: a.mp4}")
    assert definition.sources[0].name == "a"


# --- without a file ---------------------------------------------------------------------------------------------------


def test_a_mapping_is_taken_as_it_is(tmp_path: Path) -> None:
    data = {
        "pipeline": "true",
        "sources": ["${HOME}/$$.mp4", {"uri": Path("b.mp4")}],
        "mux": {"width": 640, "padding": False},
        "stages": [{"node": {"factory": "queue", "properties": {"max-size-buffers": 2}}}],
        "outputs": [{"events": {"path": "-"}}],
    }
    definition = definition_from_mapping(data, tmp_path, ["mux.height=480"])
    assert definition.pipeline == "true"
    assert [s.location for s in definition.sources] == [str(tmp_path / "${HOME}/$$.mp4"), str(tmp_path / "b.mp4")]
    assert definition.mux == Mux(width=640, height=480, padding=False)


@pytest.mark.parametrize(("text", "size"), [("500M", 500_000_000), ("1.5G", 1_500_000_000), ("2000k", 2_000_000)])
def test_outbox_and_file_are_beside_the_definition(tmp_path: Path, text: str, size: int) -> None:
    stage = f"{{message: {{broker: file, connection: out.jsonl, outbox: {{max_size: {text}}}}}}}"
    (message,) = load(tmp_path, f"stages: [{stage}]").stages
    assert isinstance(message, MessageStage)
    assert message.outbox.max_size == size
    assert message.outbox_file("entrance") == tmp_path / "outbox/entrance-message.db"
    assert message.broker_connection().path == str(tmp_path / "out.jsonl")


def test_what_a_message_stage_hides(tmp_path: Path) -> None:
    text = 'stages: [{message: {broker: amqp, connection: "h;5672;u;${P}", topic: t, password: "${P}"}}]'
    definition = load(tmp_path, text, P="hunter2")
    assert "hunter2" not in repr(definition)
    assert definition.stages[0].broker_connection().secret == "hunter2"  # type: ignore[union-attr]

"""Every way to get a definition wrong that we know of, and what is said about it."""

import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.definition import Definition, DefinitionError, definition_from_mapping, load_definition
from tests.unit.definition_catalog import FakeCatalog

CORPUS = Path(__file__).with_name("definition_corpus")
CASES = sorted(CORPUS.glob("*.yaml"))
ENVIRON = {"WIDTH": "hunter2", "EMPTY": "", "DIR": "hunter2"}


def problems_of(path: Path | str, *overrides: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(DefinitionError) as error:
        load_definition(path, overrides, environ or {}, FakeCatalog())
    return [str(problem) for problem in error.value.problems]


def write(folder: Path, text: str) -> Path:
    file = folder / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def valid(tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").touch()
    text = """
pipeline: entrance
sources:
  - clips/door.mp4
  - {name: yard, uri: rtsp://192.0.2.10/a}
stages:
  - infer: {model: model.onnx}
  - infer: {model: model.onnx, name: plates}
  - draw:
outputs:
  - file: {path: out.mp4}
"""
    return write(tmp_path, text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_corpus(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a case that begin with ``#!`` are the exact messages that it must give."""
    monkeypatch.chdir(CORPUS)
    lines = case.read_bytes().decode("latin-1").splitlines()
    expected = [line.removeprefix("#! ") for line in lines if line.startswith("#! ")]
    with pytest.raises(DefinitionError) as error:
        load_definition(case.name, environ=ENVIRON, catalog=FakeCatalog())
    assert str(error.value).replace(str(CORPUS), "<here>").split("\n") == expected


def test_corpus_is_large() -> None:
    assert len(CASES) >= 50


# --- files ------------------------------------------------------------------------------------------------------------


def test_file_that_is_not_there(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "x.yaml") == [f"{tmp_path}/x.yaml: cannot be read: No such file or directory"]


def test_an_engine_that_is_not_made_yet(valid: Path) -> None:
    valid.write_text(valid.read_text().replace("{model: model.onnx}", "{model: model.engine}"))
    onnx = valid.parent / "model.onnx"
    hint = f"no file 'model.engine' (make it for this machine: gstorch models build {onnx})"
    assert problems_of(valid) == [f"{valid}:7:20: stages[0].infer.model: {hint}"]


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]


def test_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "clip.yaml"
    file.write_bytes(bytes((1 << 20) + 1))
    assert problems_of(file) == [f"{file}: is larger than 1 MiB (is it a pipeline definition?)"]


@pytest.mark.parametrize(("stage", "key"), [(0, "infer.model"), (3, "analyze.config"), (4, "message.config")])
def test_name_that_no_file_can_have(valid: Path, stage: int, key: str) -> None:
    text = valid.read_text().replace(
        "draw:", "track:\n  - analyze: {config: a.txt}\n  - message: {broker: file, connection: a, config: a.txt}"
    )
    valid.write_text(text)
    problems = problems_of(valid, f"stages.{stage}.{key}={'x' * 300}")
    place = f"stages.{stage}.{key}: stages[{stage}].{key}"
    assert f"--set {place}: '{'x' * 59}…' cannot be read: File name too long" in problems


# --- --set ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("mux.width=wide", "--set mux.width: mux.width: 'wide' is not a whole number"),
        ("mux.widht=640", "--set mux.widht: mux.widht: unknown key 'widht' (did you mean 'width'?)"),
        ("mux.width", "--set mux.width: has no key or no '=' (write --set path.to.key=value)"),
        ("=640", "--set : has no key or no '=' (write --set path.to.key=value)"),
        ("mux..width=640", "--set mux..width: has an empty key (write --set path.to.key=value)"),
        ("sources.2.uri=a.mp4", "--set sources.2.uri: there is no sources[2] (it has 2 items, counted from 0)"),
        ("sources.dor.uri=a.mp4", "--set sources.dor.uri: no 'dor' in sources (did you mean 'door'?)"),
        ("stages.track.width=64", "--set stages.track.width: no 'track' in stages (there are: infer, infer, draw)"),
        (
            "stages.infer.iou=0.5",
            "--set stages.infer.iou: 'infer' is ambiguous (use stages.0.infer or stages.1.infer)",
        ),
        ("pipeline.name=x", "--set pipeline.name: 'pipeline' is a single value: there is no key below it"),
        ("sources.0.uri.x=1", "--set sources.0.uri.x: 'uri' is a single value: there is no key below it"),
        (
            "mux={width: 640",
            "--set mux: a bracket is not closed before this, or a ',' is missing (put the value in quotes)",
        ),
        ("mux={width: 4}", "--set mux: mux.width: '4' is too small (at least 16)"),
        (
            "stages.0.infer.confidence=2",
            "--set stages.0.infer.confidence: stages[0].infer.confidence: '2' is too large (at most 1)",
        ),
        (
            "mux.timeout=${X}",
            "--set mux.timeout: mux.timeout: environment variable X is not set (set it, or write ${X:-default})",
        ),
        (
            "stages.0.infer.model=x.onnx",
            "--set stages.0.infer.model: stages[0].infer.model: no file 'x.onnx' (looked in <here>)",
        ),
    ],
)
def test_wrong_override(valid: Path, override: str, message: str) -> None:
    found = [problem.replace(str(valid.parent), "<here>") for problem in problems_of(valid, override)]
    assert found == [message]


def test_problems_of_the_file_come_before_those_of_overrides(valid: Path) -> None:
    valid.write_text(valid.read_text().replace("file:", "files:"))
    assert problems_of(valid, "mux.width=4", "mux.hight=640") == [
        f"{valid}:11:5: outputs[0].files: unknown output 'files' (did you mean 'file'?)",
        "--set mux.hight: mux.hight: unknown key 'hight' (did you mean 'height'?)",
        "--set mux.width: mux.width: '4' is too small (at least 16)",
    ]


def test_a_camera_may_be_replaced_by_a_file_for_a_run(valid: Path) -> None:
    """Its keys in the file have no effect then and stay; one that is set for the same run is told."""
    text = valid.read_text().replace("/a}", "/a, username: me, latency: 1s}").replace("clips/door.mp4", "${DOOR}")
    valid.write_text(text)
    environ = {"DOOR": "door.mp4"}
    replaced = ["sources.yard.uri=yard.mp4", "sources.yard.loop=true"]
    assert load_definition(valid, replaced, environ).sources[1].kind == "file"
    assert load_definition(valid, ["sources.0.latency=1s"], environ).sources[0].kind == "file"
    assert problems_of(valid, *replaced, "sources.yard.timeout=5s", environ=environ) == [
        "--set sources.yard.timeout: sources[1].timeout: has no effect on a file "
        "(remove it, or write a camera's address as uri)"
    ]


# --- without a file ---------------------------------------------------------------------------------------------------


def test_problems_of_a_mapping_name_the_option(tmp_path: Path) -> None:
    data = {
        "pipeline": "gstorch",
        "sources": [{"uri": "a.mp4"}, {"uri": "rtps://192.0.2.1/a"}],
        "stages": [{"infer": {"model": "m.onnx", "confidence": 40.0}}],
        "mux": {"width": True},
    }
    origins = {"sources[1].uri": "SOURCE", "stages[0].infer": "--model", "stages[0].infer.confidence": "--confidence"}
    with pytest.raises(DefinitionError) as error:
        definition_from_mapping(data, tmp_path, origins=origins)
    assert str(error.value).split("\n") == [
        "command line: mux.width: 'True' is not a whole number",
        "SOURCE: sources[1].uri: 'rtps://192.0.2.1/a' has an unknown scheme (did you mean 'rtsp://'?)",
        "--confidence: stages[0].infer.confidence: '40.0' is too large (at most 1)",
        f"--model: stages[0].infer.model: no file 'm.onnx' (looked in {tmp_path})",
    ]


# --- secrets ----------------------------------------------------------------------------------------------------------

SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        "sources: [{uri: rtsp://u:hunter2@192.0.2.1/a, password: x}]",
        "sources: ['rtps://u:hunter2@192.0.2.1/a']",
        "sources: ['rtsp://u:hunt/hunter2@192.0.2.1/a']",
        "sources: ['rtsp://u:hunter2@192.0.2.1/a', {uri: a.mp4, nme: b}]",
        "sources: [{uri: rtsp://192.0.2.1/a, password: [hunter2]}]",
        "sources: [{uri: rtsp://192.0.2.1/a, password: hunter2, loop: 1}]",
        "sources: [{uri: rtsp://192.0.2.1/a, password: '${PW}', latency: '${PW}', name: '${PW}/'}]",
        "sources: ['rtsps://u:${PW}@', 'x${PW}://a']",
        "sources: [a.mp4]\nmux: {width: '${PW}', timeout: '${PW}', live: '${PW}'}",
        "sources: [a.mp4]\nstages: [{infer: {model: '${PW}', engine: '${PW}', device: '${PW}', input_size: '${PW}'}}]",
        "sources: [a.mp4]\nstages: [{infer: {model: '/${PW}/m.onnx', labels: '${PW}'}}, {track: {config: '${PW}'}}]",
        "sources: [a.mp4]\nstages: [{node: {factory: '${PW}'}}, node: {factory: queue, properties: {leaky: '${PW}'}}]",
        "sources: [a.mp4]\noutputs: [{file: {path: '${PW}'}}, {events: {path: '${PW}'}}, {events: {path: '${PW}'}}]",
        "sources: ['http://192.0.2.1/a?user=u&password=hunter2', {uri: 'rtsp://192.0.2.1/?pwd=hunter2', timeout: 1}]",
    ],
)
def test_secrets_are_not_in_messages(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, f"pipeline: x\nbad: 1\n{text}\n")
    messages = "\n".join(problems_of(file, environ={"PW": SECRET}))
    assert SECRET not in messages
    assert messages.count("\n") >= 1 or "nme" not in text


def test_override_of_a_secret_is_not_in_messages(valid: Path) -> None:
    assert problems_of(valid, "sources.yard.password=[hunter2]", "sources.yard.latency=5") == [
        "--set sources.yard.latency: sources[1].latency: '5' has no unit (write 5ms or 5s)",
        "--set sources.yard.password: sources[1].password: takes a single value, not a list",
    ]


# --- anything else ----------------------------------------------------------------------------------------------------

TOKENS = """
pipeline sources mux stages outputs runtime infer track draw node file events display null uri name model path
timeout width labels classes properties factory reconnect door.mp4 rtsp://u:p@h/a 40ms 40 0.5 true no ~ - : , [ ]
{ } & * << ? | > ' " # % @ ! !!int &a *a ${A} ${B:-1} ${ $$ --- ... \\ 010 1:30 0x10 1e999 .nan é 中
"""
WORDS = st.sampled_from([*TOKENS.split(), "\t", "\x00", "\u2028"])
SPACES = st.sampled_from(["\n", "\n  ", "\n    ", "\n  - ", ": ", " ", "", ", ", "\n- "])
YAML_ISH = st.lists(st.tuples(WORDS, SPACES).map("".join), max_size=40).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def load_or_reject(file: Path, *overrides: str) -> None:
    try:
        definition = load_definition(file, overrides, {"A": "1"}, FakeCatalog())
    except DefinitionError as error:
        assert all(re.match(r".+: .+", line) for line in str(error).split("\n"))
        str(error).encode()
    else:
        assert isinstance(definition, Definition)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=YAML_ISH | st.text(), override=st.tuples(YAML_ISH, YAML_ISH).map("=".join))
def test_any_text_is_a_definition_or_a_definition_error(tmp_path: Path, text: str, override: str) -> None:
    file = tmp_path / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    load_or_reject(file)
    file.write_bytes(f"pipeline: x\nsources: [a.mp4]\n{text}".encode("utf-8", "surrogatepass"))
    load_or_reject(file, override)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.fixed_dictionaries(
        {"pipeline": VALUES, "sources": VALUES, "stages": VALUES, "mux": VALUES, "outputs": VALUES}
    )
)
def test_any_structure_is_a_definition_or_a_definition_error(tmp_path: Path, data: dict[str, object]) -> None:
    file = tmp_path / "any.yaml"
    file.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8", errors="surrogatepass")
    load_or_reject(file, "sources.0.loop=true", "stages.infer.iou=1", "mux.width=640")
    try:
        definition_from_mapping(data, os.curdir)
    except DefinitionError as error:
        assert error.problems

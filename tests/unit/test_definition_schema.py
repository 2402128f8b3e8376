"""The JSON Schema that editors use: published, complete, and of one mind with the loader."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pipelines.definition import definition_schema, load_definition
from pipelines.definition.scalars import resolve
from pipelines.definition.yaml_text import parse_yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
PUBLISHED = CONFIGS / "schema" / "definition.schema.json"
VALIDATOR = Draft202012Validator(definition_schema())


def plain(value: Any) -> Any:
    """A document's data as any YAML 1.2 reader gives it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else resolve(value)


def keys(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that the schema describes."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if schema.get("type") in ("object", ["object", "null"]) and isinstance(properties, dict):
            yield from properties.items()
        for value in schema.values():
            yield from keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys(value)


def test_published_schema_is_the_generated_one() -> None:
    """If this fails: gstorch schema > configs/schema/definition.schema.json."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == definition_schema()


def test_schema_is_valid_and_strict() -> None:
    schema = definition_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False


def test_every_key_is_described() -> None:
    described = list(keys(definition_schema()))
    assert len(described) > 60
    definitions = definition_schema()["$defs"]
    for name, schema in described:
        target = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
        assert schema.get("description"), name
        assert schema.get("title") or target.get("title"), name


@pytest.mark.parametrize("name", ["example.yaml", "demo.yaml", "camera.yaml"])
def test_shipped_definitions_fit_the_schema(name: str) -> None:
    document = parse_yaml((CONFIGS / name).read_text(encoding="utf-8"), name)
    assert [error.message for error in VALIDATOR.iter_errors(plain(document.data))] == []


def test_example_loads(tmp_path: Path) -> None:
    """Beside stand-ins for the model, which is not part of the test."""
    shutil.copytree(CONFIGS, tmp_path / "configs", ignore=shutil.ignore_patterns("models"))
    (tmp_path / "configs/models").mkdir()
    (tmp_path / "configs/models/street.onnx").touch()
    definition = load_definition(tmp_path / "configs/example.yaml", environ={})
    assert [source.name for source in definition.sources] == ["door", "yard", "lobby"]
    assert [stage.KEY for stage in definition.stages] == ["infer", "track", "node", "draw"]
    assert [output.KEY for output in definition.outputs] == ["file", "file", "events", "record"]


def test_example_shows_every_key() -> None:
    text = (CONFIGS / "example.yaml").read_text(encoding="utf-8")
    missing = [name for name, _ in keys(definition_schema()) if f"{name}:" not in text]
    assert missing == []


@pytest.mark.parametrize(
    "change",
    [
        {"mux": {"widht": 640}},
        {"mux": {"timeout": 40}},
        {"mux": {"width": "wide"}},
        {"sources": []},
        {"stages": [{"infer": {"model": "a"}, "draw": {}}]},
        {"stages": [{"infer": {}}]},
        {"stages": [{"infr": {"model": "a"}}]},
        {"outputs": [{"file": {"path": "a.mp4", "bitrate": "4"}}]},
        {"runtime": {"prefer": "fast"}},
    ],
)
def test_schema_refuses_what_the_loader_refuses(change: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid({"pipeline": "x", "sources": ["a.mp4"], **change})


@pytest.mark.parametrize(
    "change",
    [
        {"mux": {"width": "${WIDTH}", "height": "auto", "timeout": "1m30s", "live": True}},
        {"mux": None, "stages": [{"draw": None}], "outputs": [{"null": None}]},
        {"sources": ["a.mp4", {"uri": "rtsp://h/a", "reconnect": {"attempts": 3}}]},
        {"stages": [{"infer": {"model": "a", "classes": ["person", 2], "input_size": 640, "pad": 0}}]},
        {"outputs": [{"file": {"path": "a.mp4", "tile": "2x3", "codec": "${CODEC:-h264}"}}]},
    ],
)
def test_schema_takes_what_the_loader_takes(change: dict[str, Any]) -> None:
    assert [error.message for error in VALIDATOR.iter_errors({"pipeline": "x", "sources": ["a.mp4"], **change})] == []

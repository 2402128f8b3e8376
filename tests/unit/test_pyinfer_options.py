"""pyinfer's options against what people write into its file and properties: one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from elements.inference.errors import ModelError
from elements.inference.model import open_model
from elements.pyinfer_options import PROPERTIES, resolve_options


def refused(**properties: object) -> str:
    names = {name.replace("_", "-"): value for name, value in properties.items()}
    values = {p.name: p.default for p in PROPERTIES} | names
    with pytest.raises(ModelError) as raised:
        resolve_options(values, set(names))
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected lines like 'model: people.onnx'"),
        ("- model", "expected lines like 'model: people.onnx'"),
        ("model: [", "is no YAML: while parsing a flow node; "),
        ("!!python/object/apply:os.getcwd []", "is no YAML: could not determine a constructor"),
        ("modle: m.onnx", "unknown key 'modle': did you mean 'model'?"),
        ("model: 5", "path: 5 is no text"),
        ("confidence: high", "confidence: 'high' is no number"),
        ("confidence: true", "confidence: True is no number"),
        ("confidence: .nan", "confidence: nan is not between 0 and 1"),
        ("pad: grey", "pad: 'grey' is no whole number"),
        ("batch_size: 1.5", "batch_size: 1.5 is no whole number"),
        ("batch_size: -1", "batch_size: -1 is below 0"),
        ("classes: 5", "classes: 5 is no list of names"),
        ("classes: {car: 1}", "classes: {'car': 1} is no list of names"),
        ("labels: {car: 1}", "labels: {'car': 1} is no list of names"),
        ("labels: [1, 2]", "labels: [1, 2] is no list of names"),
        ("device: 0", "device: 0 is no text"),
        ("device: [cuda]", "device: ['cuda'] is no text"),
        ("layout: 8", "layout: 8 is no text"),
        ("weights: 5", "weights: 5 is no text"),
        ("postprocess: 5", "postprocess: 5 is no text"),
        ("input_size: {width: 640}", "is not a size: write 640 or 640x384"),
        ("trust: yess", "trust: 'yess' is neither true nor false"),
        ("interval: true", "interval: 'True' is not a whole number"),
        ("unique_id: 99999999999", "unique_id: '99999999999' is not a whole number from 0 to 2147483647"),
        ("operate_on: {id: 1, classes: car}", "operate-on: classes: 'car' is no list of names and numbers"),
        ("operate_on: {id: 1, classes: [[]]}", "operate-on: classes: ([],) is no list of names and numbers"),
        ("operate_on: {id: 1, max_objects: 0.5}", "operate-on: max_objects: 0.5 is not a whole number"),
        ("source_names: [1, 2]", "source-names: '[1, 2]' is no list of texts"),
    ],
)
def test_what_a_file_cannot_say(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "infer.yaml"
    file.write_text(text if text.startswith("model") else f"{text}\n")
    given = {} if text.startswith("model: 5") else {"model_path": "m.onnx"}
    assert problem in refused(config_file_path=str(file), **given)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "infer.yaml").write_bytes(b"\xff\xfe")
    assert "is no YAML: 'utf-8' codec" in refused(config_file_path=str(tmp_path / "infer.yaml"))
    assert refused(config_file_path=str(tmp_path)) == f"config-file-path '{tmp_path}': Is a directory"


def test_a_name_that_is_too_long() -> None:
    path = f"{'a' * 1000}.onnx"
    values = {p.name: p.default for p in PROPERTIES} | {"model-path": path}
    model = open_model(resolve_options(values, {"model-path"}).model)
    with pytest.raises(ModelError, match="there is no such file: check model-path"):
        model.load()

"""``gstorch models inspect`` and ``gstorch models layouts``."""

import json

import cv2
import pytest
from typer.testing import CliRunner

from app.main import cli
from elements.inference.config import ModelConfig
from elements.inference.decoders import Decoder
from elements.inference.errors import ModelError
from elements.inference.inspect import inspect
from tests.onnx_heads import head
from tests.onnx_models import finder, save, unknown_layout
from tests.pictures import NAMES, boxes_in, frame_of


def test_facts(tmp_path):
    metadata = {"names": str(list(NAMES)), "task": "pose", "kpt_shape": "[3, 3]", "stride": "32"}
    path = save(head("yolov8", "pose", (320, 320), metadata), tmp_path / "m.onnx")
    facts = inspect(ModelConfig(path))
    assert (facts.engine, facts.task, facts.layout, facts.problem) == ("onnx", "pose", "yolov8", None)
    assert [(port.name, port.shape, port.dtype) for port in facts.inputs] == [("image", (1, 3, 320, 320), "float32")]
    assert [(port.name, port.shape) for port in facts.outputs] == [("output", (1, 16, 2100))]
    assert (facts.names, facts.input_size, facts.metadata) == (NAMES, (320, 320), metadata)
    assert facts.file["opset"] == "ai.onnx 13"
    assert facts.preprocess["letterbox"] == "center"


def test_free_dimensions_have_their_names(tmp_path):
    facts = inspect(ModelConfig(save(finder("yolov8", None, batch=None), tmp_path / "m.onnx"), labels=NAMES))
    assert facts.inputs[0].shape == ("batch", 3, "height", "width")


def test_why_a_model_cannot_be_used(tmp_path):
    facts = inspect(ModelConfig(save(unknown_layout(), tmp_path / "m.onnx")))
    assert "no layout known here" in facts.problem
    assert [port.shape for port in facts.outputs] == [(1, 7, 7, 30)]
    assert facts.layout is None
    with pytest.raises(ModelError, match="no such file"):
        inspect(ModelConfig(str(tmp_path / "other.onnx")))


def test_command_as_json_with_a_picture(tmp_path, capfd):
    frame = frame_of(641, 359)
    cv2.imwrite(str(tmp_path / "picture.png"), frame.pixels[..., ::-1])
    path = save(head("end2end", "segment", (320, 320)), tmp_path / "m.onnx")
    result = CliRunner().invoke(
        cli,
        ["models", "inspect", path, "--image", str(tmp_path / "picture.png"), "--labels", ",".join(NAMES), "--json"],
    )
    assert result.exit_code == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["layout"], answer["task"]) == ("end2end", "segment")
    found = {item["label"]: item for item in answer["found"]}
    assert set(found) == set(NAMES)
    for name, box in zip(NAMES, boxes_in(641, 359).values(), strict=True):
        assert found[name]["bbox"] == pytest.approx(box, abs=1)
        assert found[name]["mask_pixels"] == pytest.approx((box[2] - box[0]) * (box[3] - box[1]), rel=0.05)


def test_command_says_what_is_wrong(tmp_path, capfd):
    result = CliRunner().invoke(cli, ["models", "inspect", save(unknown_layout(), tmp_path / "m.onnx")])
    assert result.exit_code == 1
    text = capfd.readouterr()
    assert "(1, 7, 7, 30)" in text.out
    assert "declare it with 'layout'" in " ".join((text.err + result.stderr).split())


def test_a_class_of_ones_own(capfd):
    result = CliRunner().invoke(cli, ["models", "inspect", "tests.own_models:Good", "--json"])
    assert result.exit_code == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["engine"], answer["task"], answer["names"]) == ("class of your own", "detect", ["thing"])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "no file is given"),
        ("nosuch.module:Class", "no module 'nosuch'"),
        ("tests.own_models:Nope", "has no class 'Nope'"),
        ("tests.own_models:FailsToLoad", "fails to load: RuntimeError: weights are bad"),
        ("tests.own_models:ExitsInLoad", "fails to load: SystemExit: 7"),
    ],
)
def test_what_cannot_be_inspected_is_one_line(capfd, path, text):
    result = CliRunner().invoke(cli, ["models", "inspect", path])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    said = (capfd.readouterr().err + result.stderr).strip()
    assert text in said
    assert "\n" not in said


def test_layouts_are_listed():
    result = CliRunner().invoke(cli, ["models", "layouts"])
    assert result.exit_code == 0
    for layout in Decoder.registry:
        assert layout in result.stdout

"""The OpenVINO engine: the same boxes as ONNX Runtime, and errors that say what to do. Skips without OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.model import DetectionModel
from tests.onnx_models import finder, save
from tests.pictures import NAMES, SIZES, assert_finds, frame_of

openvino = pytest.importorskip("openvino", reason="needs OpenVINO: pip install openvino")


def loaded(path, **options):
    model = DetectionModel(ModelConfig(path, labels=NAMES, **options))
    model.load()
    return model


def ir(onnx_path, target):
    openvino.save_model(openvino.Core().read_model(onnx_path), target, compress_to_fp16=False)
    return str(target)


@pytest.mark.parametrize("layout", ["yolov5", "yolov8", "yolox"])
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "free"])
def test_boxes_of_an_onnx_file(tmp_path, layout, fixed):
    path = save(finder(layout, (640, 640) if fixed else None), tmp_path / "m.onnx")
    model = loaded(path, engine="openvino", input_size=(640, 640))
    for width, height in SIZES:
        assert_finds(model.infer([frame_of(width, height)])[0], width, height)


def test_an_xml_file_needs_no_engine_key(tmp_path):
    path = ir(save(finder("yolov8"), tmp_path / "m.onnx"), tmp_path / "m.xml")
    assert_finds(loaded(path).infer([frame_of(640, 360)])[0], 640, 360)


def test_many_frames_at_the_same_time(tmp_path):
    model = loaded(save(finder("yolov8", (320, 320)), tmp_path / "m.onnx"), engine="openvino")
    for found in model.infer([frame_of(640, 360)] * 16):
        assert_finds(found, 640, 360, tolerance=1.5)


def test_the_same_numbers_as_onnx_runtime(tmp_path):
    path = save(finder("yolov8", (320, 320)), tmp_path / "m.onnx")
    one, other = (loaded(path, engine=engine).infer([frame_of(640, 360)])[0] for engine in ("onnx", "openvino"))
    np.testing.assert_allclose(one.boxes, other.boxes, atol=0.05)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-3)


def test_names_in_the_file_beside_it(tmp_path):
    path = ir(save(finder("yolov8"), tmp_path / "m.onnx"), tmp_path / "m.xml")
    (tmp_path / "metadata.yaml").write_text("names: {0: cat, 1: dog, 2: cow}\ntask: detect\nstride: 32\n")
    model = DetectionModel(ModelConfig(path))
    model.load()
    assert model.names[:2] == ("cat", "dog")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device": "cuda"}, "device: cuda was asked for, but OpenVINO runs on the CPU"),
        ({"precision": "fp16"}, "precision: fp16 was asked for"),
    ],
)
def test_what_it_cannot_do(tmp_path, options, text):
    path = save(finder("yolov8"), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=text):
        loaded(path, engine="openvino", **options)


def test_files_that_are_broken(tmp_path):
    path = ir(save(finder("yolov8"), tmp_path / "m.onnx"), tmp_path / "m.xml")
    (tmp_path / "m.bin").unlink()
    with pytest.raises(ModelError, match=r"its weights 'm.bin' are missing"):
        loaded(path)
    (tmp_path / "n.xml").write_text("<net>")
    (tmp_path / "n.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="OpenVINO cannot read it"):
        loaded(str(tmp_path / "n.xml"))

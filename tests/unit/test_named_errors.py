"""What a user is told when a model and this machine do not fit: one paragraph that names the fix."""

from __future__ import annotations

import json
import logging
import re
import sys
import types
from pathlib import Path
from typing import Any

import onnx
import pytest

from elements.inference.config import ModelConfig
from elements.inference.engines import tensorrt as engine_module
from elements.inference.engines import tensorrt_api
from elements.inference.engines.fingerprint import Fingerprint, SideCar, sha256, write_side_car
from elements.inference.engines.onnx import _providers
from elements.inference.errors import ModelError
from elements.inference.model import open_model
from tests import fake_tensorrt
from tests.onnx_models import finder, save

PROFILE = {"input": [-1, 3, 64, 64], "profile": [[1, 3, 64, 64], [4, 3, 64, 64], [8, 3, 64, 64]]}
FREE_SIZE = {"input": [-1, 3, -1, -1], "profile": [[1, 3, 320, 320], [4, 3, 640, 640], [8, 3, 640, 640]]}


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with an H200 and TensorRT 10.13.3."""
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt.module("10.13.3"))
    fake_torch = fake_tensorrt.TorchWithGpu("NVIDIA H200")
    for place in (engine_module, tensorrt_api):
        monkeypatch.setattr(place, "import_torch", lambda: fake_torch)
    monkeypatch.setattr(engine_module, "torch_device", lambda config: types.SimpleNamespace(type="cuda"))


def engine_file(folder: Path, **content: Any) -> Path:
    path = folder / "people.engine"
    path.write_bytes(json.dumps({"outputs": {"output0": [7, 84]}, **content}).encode())
    return path


def told(path: Path | str, **options: Any) -> str:
    """The error of loading a model. It is one paragraph and names the file first."""
    with pytest.raises(ModelError) as raised:
        open_model(ModelConfig(path=str(path), **options)).load()
    text = str(raised.value)
    assert text.startswith(f"model '{path}': ")
    assert "\n" not in text
    return text


def test_cuda_is_asked_for_and_onnxruntime_has_none(tmp_path, monkeypatch):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    path = save(finder("yolov8", (64, 64)), tmp_path / "m.onnx")
    text = told(path, device="cuda:1")
    assert "device: cuda:1 was asked for, but the installed onnxruntime" in text
    assert "install onnxruntime-gpu" in text
    assert "or set device to cpu or auto" in text
    assert _providers("auto") == ["CPUExecutionProvider"]


@pytest.mark.parametrize(("precision", "may_round"), [("auto", 1), ("fp32", 0)])
def test_a_gpu_is_told_whether_it_may_round_to_tf32(monkeypatch, precision, may_round):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert _providers("cuda:1", precision)[0] == ("CUDAExecutionProvider", {"device_id": 1, "use_tf32": may_round})


@pytest.mark.parametrize(
    ("gpus", "there"), [(1, "the only GPU is cuda:0"), (2, "there are cuda:0 to cuda:1")], ids=["one", "two"]
)
def test_a_gpu_that_is_not_there(monkeypatch, gpus, there):
    from elements.inference.engines import base

    cuda = types.SimpleNamespace(is_available=lambda: True, device_count=lambda: gpus)
    monkeypatch.setattr(base, "import_torch", lambda: types.SimpleNamespace(cuda=cuda))
    with pytest.raises(ModelError) as raised:
        base.torch_device(ModelConfig("m.pt", device="cuda:7"))
    assert str(raised.value) == (f"device: cuda:7 was asked for, but {there}: set device to one that is there, or auto")


def test_weights_without_a_class(tmp_path):
    path = save(finder("yolov8", (64, 64)), tmp_path / "m.onnx")
    assert "weights are for a class of your own, and engine onnx runs a file" in told(path, weights="w.pt")


def test_an_engine_that_is_not_there(tmp_path):
    path = tmp_path / "people.engine"
    assert told(path).endswith("there is no such file: check model-path")
    onnx = save(finder("yolov8", (64, 64)), tmp_path / "people.onnx")
    assert told(path).endswith(
        f"there is no such file yet: make it for this machine with gstorch models build '{onnx}'"
    )


def test_an_engine_for_another_gpu_and_tensorrt(tmp_path, tensorrt):
    onnx = Path(save(finder("yolov8", (64, 64)), tmp_path / "people.onnx"))
    path = engine_file(tmp_path, **PROFILE)
    built = Fingerprint(sha256(onnx), "10.3.0", "NVIDIA T4", "7.5", "fp16", (1, 4, 8), (64, 64))
    write_side_car(path, SideCar(built, onnx.name))
    text = told(path)
    assert "TensorRT: built for 10.3.0, here is 10.13.3" in text
    assert "GPU: built for NVIDIA T4, here is NVIDIA H200" in text
    assert "build it again here: gstorch models build people.onnx" in text


def test_an_engine_that_tensorrt_refuses(tmp_path, tensorrt):
    """Made by other hands, so that nobody noted what for."""
    path = tmp_path / "people.engine"
    path.write_bytes(b"made elsewhere")
    text = told(path)
    assert "TensorRT 10.13.3 cannot load the engine" in text
    assert "made by another version, for another GPU, or is cut: build it again here: gstorch models build" in text


def test_a_batch_larger_than_the_profile(tmp_path, tensorrt):
    text = told(engine_file(tmp_path, **PROFILE), batch_size=32)
    assert "batch-size 32 is asked for, but it takes at most 8 frames: set batch-size to 8 or less" in text
    assert "gstorch models build --batch 1:8:32" in text


def test_a_batch_larger_than_a_fixed_one(tmp_path):
    path = save(finder("yolov8", (64, 64), batch=2), tmp_path / "m.onnx")
    text = told(path, batch_size=3)
    assert "batch-size 3 is asked for, but it takes at most 2 frames: set batch-size to 2 or less" in text


def test_an_engine_of_dynamic_size(tmp_path, tensorrt):
    path = engine_file(tmp_path, **FREE_SIZE)
    assert "its input has a dynamic size (320x320 to 640x640): set 'input_size' to one in it" in told(path)
    text = told(path, input_size=(1280, 720))
    assert "input_size 1280x720 is outside what it was built for (320x320 to 640x640)" in text


def test_an_onnx_file_of_dynamic_size(tmp_path, caplog):
    """It runs at the usual size, and the user is told."""
    caplog.set_level(logging.WARNING, "gstorch")
    path = save(finder("yolov8", None), tmp_path / "m.onnx")
    model = open_model(ModelConfig(path=str(path)))
    model.load()
    model.close()
    said = f"model '{path}' takes pictures of any size and does not say which is best: 640 x 640 is used; set "
    assert caplog.messages[0] == f"{said}'input_size'"


def test_rgba_on_the_pad():
    """NVIDIA's `extract` gives a void tensor for anything but RGB."""
    from elements.base import ElementError
    from elements.frames import ExtractedFrame

    buffer = types.SimpleNamespace(extract=lambda batch_id: None)
    names = ("batch_id", "pad_index", "source_id", "source_width", "source_height", "frame_number", "buffer_pts")
    meta = types.SimpleNamespace(**dict.fromkeys((*names, "ntp_timestamp"), 0))
    with pytest.raises(ElementError) as raised:
        ExtractedFrame(buffer, meta, padded=False).resized(64, 64)
    text = str(raised.value)
    assert "only RGB frames in GPU memory can be read, not RGBA" in text
    assert "put nvvideoconvert and the capsfilter video/x-raw(memory:NVMM),format=RGB before this element" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("imgsz", "size"),
    [("[1000000, 1000000]", "1000000x1000000"), ("-64", "640x640"), ("1e400", "640x640"), ("0", "640x640")],
)
def test_sizes_that_cannot_be(tmp_path, imgsz, size):
    """One that is too large for the memory is told; what is no size at all counts as not said."""
    path = save(finder("yolov8", None, metadata={"imgsz": imgsz}), tmp_path / "m.onnx")
    if size == "640x640":
        model = open_model(ModelConfig(path=path))
        model.load()
        model.close()
    else:
        assert f"it fails on a {size} input: " in told(path)


@pytest.mark.parametrize("kind", ["text", "list"])
def test_outputs_that_are_no_tensors_of_numbers(tmp_path, kind):
    make, number = onnx.helper, onnx.TensorProto.FLOAT
    image = make.make_tensor_value_info("image", number, [1, 3, 64, 64])
    if kind == "text":
        word = make.make_tensor("word", onnx.TensorProto.STRING, [1], [b"car"])
        node = make.make_node("Constant", [], ["output"], value=word)
        output = make.make_tensor_value_info("output", onnx.TensorProto.STRING, [1])
    else:
        node = make.make_node("SequenceConstruct", ["image"], ["output"])
        output = make.make_tensor_sequence_value_info("output", number, None)
    model = make.make_model(make.make_graph([node], "g", [image], [output]), opset_imports=[make.make_opsetid("", 17)])
    model.ir_version = 9
    text = told(save(model, tmp_path / "m.onnx"))
    assert re.search(r"its outputs output \w+\(.*\) are no tensors of numbers: export it without them", text)

"""The ultralytics engine: a checkpoint with random weights, and the guard around TensorRT's shapes."""

import importlib
import sys
import types

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.engines import ultralytics as engine_module
from elements.inference.engines.base import open_engine
from elements.inference.errors import ModelError
from tests import fake_tensorrt
from tests.fake_tensorrt import Dims
from tests.pictures import frame_of


def test_shapes_are_read_by_index(monkeypatch):
    """Both places where ultralytics' versions keep their TensorRT code."""
    source = "def read(dims): return tuple(dims), isinstance((1,), (list, tuple)), isinstance([], tuple)"
    for name in engine_module._TENSORRT_MODULES:
        module = types.ModuleType(name)
        exec(source, module.__dict__)
        monkeypatch.setitem(sys.modules, name, module)
    engine_module.guard_dims()
    for name in engine_module._TENSORRT_MODULES:
        read = importlib.import_module(name).read
        assert read(Dims([1, 3, 640, 640])) == ((1, 3, 640, 640), True, False)
        assert read([4, 5])[0] == (4, 5)


def checkpoint(folder):
    """A tiny YOLO11 with random weights, as ultralytics saves it."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tasks = pytest.importorskip("ultralytics.nn.tasks", reason="needs ultralytics")
    torch.manual_seed(0)
    model = tasks.DetectionModel("yolo11n.yaml", nc=3, verbose=False)
    model.names = {0: "red", 1: "green", 2: "blue"}
    model.args, model.task = {}, "detect"
    path = folder / "yolo.pt"
    torch.save({"model": model, "train_args": {}}, path)
    return path


def test_a_checkpoint_runs(tmp_path):
    path = checkpoint(tmp_path)
    from elements.inference.model import DetectionModel

    options = {"engine": "ultralytics", "device": "cpu", "trust": True, "input_size": (320, 320)}
    model = DetectionModel(ModelConfig(str(path), confidence=0.0, **options))
    model.load()
    assert model.names == ("red", "green", "blue")
    assert model._network.decoder.layout == "yolov8"
    (found,) = model.infer([frame_of(640, 360)])
    assert len(found) > 0
    assert np.isfinite(found.boxes).all()


@pytest.mark.parametrize(
    ("name", "task"), [("yolo11n-seg", "segment"), ("yolo11n-pose", "pose"), ("yolo11n-cls", "classify")]
)
def test_checkpoints_of_other_tasks(tmp_path, name, task):
    ultralytics = pytest.importorskip("ultralytics", reason="needs ultralytics")
    from elements.inference.model import DetectionModel

    ultralytics.YOLO(f"{name}.yaml").save(tmp_path / "m.pt")
    options = {"engine": "ultralytics", "device": "cpu", "trust": True, "input_size": (64, 64), "confidence": 0.0}
    model = DetectionModel(ModelConfig(str(tmp_path / "m.pt"), **options))
    model.load()
    assert model.task == task
    (found,) = model.infer([frame_of(640, 360)])
    assert (found.masks is not None, found.keypoints is not None) == (task == "segment", task == "pose")


def test_a_checkpoint_needs_trust(tmp_path):
    path = checkpoint(tmp_path)
    with pytest.raises(ModelError, match="set trust: true"):
        open_engine(ModelConfig(str(path), engine="ultralytics"))
    with pytest.raises(ModelError, match="set engine: ultralytics"):
        open_engine(ModelConfig(str(path)))


def test_nothing_is_installed_for_a_checkpoint(tmp_path, monkeypatch):
    """ultralytics would install whatever module a pickle names."""
    checkpoint(tmp_path)
    import subprocess

    from ultralytics.utils import checks

    module = types.ModuleType("gstorch_not_there")
    module.Thing = type("Thing", (), {"__module__": "gstorch_not_there"})
    monkeypatch.setattr(checks, "AUTOINSTALL", True)
    monkeypatch.setattr(checks, "ONLINE", True)
    with monkeypatch.context() as there:
        there.setitem(sys.modules, "gstorch_not_there", module)
        importlib.import_module("torch").save({"model": module.Thing()}, tmp_path / "m.pt")
    asked = []
    monkeypatch.setattr(subprocess, "check_output", lambda command, **_: asked.append(command))
    with pytest.raises(ModelError, match="cannot load it: ModuleNotFoundError: No module named 'gstorch_not_there'"):
        open_engine(ModelConfig(str(tmp_path / "m.pt"), engine="ultralytics", device="cpu", trust=True))
    assert asked == []


@pytest.mark.parametrize(
    ("tensorrt", "message"),
    [(None, "TensorRT cannot be imported .*pip install tensorrt"), ("10.13.3", "runs on an NVIDIA GPU only")],
)
def test_what_an_engine_needs_is_said(tmp_path, monkeypatch, tensorrt, message):
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt and fake_tensorrt.module(tensorrt))
    monkeypatch.setattr(engine_module, "torch_device", lambda config: types.SimpleNamespace(type="cpu"))
    (tmp_path / "m.engine").touch()
    with pytest.raises(ModelError, match=message):
        open_engine(ModelConfig(str(tmp_path / "m.engine"), engine="ultralytics"))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "m.onnx").touch()
    with pytest.raises(ModelError, match=r"for \.pt and \.engine files: set engine to auto"):
        open_engine(ModelConfig(str(tmp_path / "m.onnx"), engine="ultralytics"))

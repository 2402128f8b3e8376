"""TensorRT loading and building against a stand-in for the package: what is called, and what is refused.

The real TensorRT was not run: it needs a GPU and libraries that cannot be had here.
"""

import json
import sys
import types
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from app.models import models
from elements.inference.config import ModelConfig
from elements.inference.engines import tensorrt as engine_module
from elements.inference.engines import tensorrt_api, tensorrt_build
from elements.inference.engines.base import open_engine
from elements.inference.engines.fingerprint import read_side_car, side_car_path
from elements.inference.engines.tensorrt_build import BuildOptions, build
from elements.inference.errors import ModelError
from tests import fake_tensorrt, onnx_models

DYNAMIC = {
    "input": [-1, 3, 64, 64],
    "profile": [[2, 3, 64, 64], [4, 3, 64, 64], [8, 3, 64, 64]],
    "outputs": {"output0": [7, 84]},
}
STATIC = {"input": [4, 3, 64, 64], "profile": [[4, 3, 64, 64]] * 3, "outputs": {"output0": [7, 84]}}
FREE_SIZE = {
    "input": [-1, 3, -1, -1],
    "profile": [[1, 3, 320, 320], [4, 3, 640, 640], [8, 3, 640, 640]],
    "outputs": {"output0": [7, 84]},
}


@pytest.fixture
def torch():
    """Needed to hand memory over."""
    return pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture(params=["10.13.3", "11.4.1"], autouse=True)
def tensorrt(request, monkeypatch):
    return use(monkeypatch, request.param)


def use(monkeypatch, version="10.13.3", gpu="NVIDIA H200"):
    module = fake_tensorrt.module(version)
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    fake_torch = fake_tensorrt.TorchWithGpu(gpu)
    for place in (engine_module, tensorrt_api):
        monkeypatch.setattr(place, "import_torch", lambda: fake_torch)
    for place in (engine_module, tensorrt_build):
        monkeypatch.setattr(place, "torch_device", lambda config: types.SimpleNamespace(type="cuda"))
    return module


def engine_file(folder, content, header=None):
    path = folder / "m.engine"
    head = json.dumps(header).encode() if header else b""
    path.write_bytes((len(head).to_bytes(4, "little") + head if header else b"") + json.dumps(content).encode())
    return path


def opened(path, **options):
    return open_engine(ModelConfig(str(path), **options))


# --- running ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [DYNAMIC, STATIC], ids=["dynamic", "static"])
@pytest.mark.parametrize("dtype", ["FLOAT", "HALF"])
def test_memory_shapes_and_stream_are_handed_over(tmp_path, content, dtype, torch):
    engine = opened(engine_file(tmp_path, {**content, "dtype": dtype}))
    assert engine.spec.dtype == {"FLOAT": np.float32, "HALF": np.float16}[dtype]
    for value in (0.25, 0.5):
        batch = torch.full((4, 3, 64, 64), value, dtype=torch.float16 if dtype == "HALF" else torch.float32)
        batch[1] = 1
        (output,) = engine.forward(batch)
        assert output.shape == (4, 7, 84)
        assert output[:, 0, 0].tolist() == [value, 1, value, value]
    assert engine._context.streams == [fake_tensorrt.STREAM] * 2
    assert engine.output_names == ["output0"]


def test_batch_of_the_profile(tmp_path, torch):
    engine = opened(engine_file(tmp_path, DYNAMIC))
    assert (engine.spec.batch, engine.spec.min_batch, engine.spec.max_batch) == (None, 2, 8)
    assert engine.forward(torch.zeros(8, 3, 64, 64))[0].shape == (8, 7, 84)
    with pytest.raises(RuntimeError, match=r"refuses the input \[9, 3, 64, 64\]: .*out of range"):
        engine.forward(torch.zeros(9, 3, 64, 64))
    assert opened(engine_file(tmp_path, STATIC)).spec.batch == 4


def test_size_of_the_profile(tmp_path):
    path = engine_file(tmp_path, FREE_SIZE)
    with pytest.raises(ModelError, match=r"dynamic size \(320x320 to 640x640\).*set 'input_size'.*models build --size"):
        opened(path)
    with pytest.raises(ModelError, match="800x800 is outside what it was built for"):
        opened(path, input_size=(800, 800))
    assert opened(path, input_size=(640, 384)).spec.size == (640, 384)


def test_header_of_ultralytics(tmp_path):
    engine = opened(engine_file(tmp_path, STATIC, header={"names": {"0": "red"}, "task": "detect"}))
    assert engine.metadata == {"names": "{'0': 'red'}", "task": "detect"}


def test_failures_are_told(tmp_path, torch):
    engine = opened(engine_file(tmp_path, {**STATIC, "fails": True}))
    with pytest.raises(RuntimeError, match="TensorRT fails"):
        engine.forward(torch.zeros(4, 3, 64, 64))
    depends = engine_file(tmp_path, {**STATIC, "outputs": {"boxes": [-1, 4]}})
    with pytest.raises(RuntimeError, match="depends on the picture: build the model without NMS"):
        opened(depends).forward(torch.zeros(4, 3, 64, 64))


def test_a_cut_engine(tmp_path):
    (tmp_path / "m.engine").write_bytes(b"cut")
    with pytest.raises(ModelError, match=r"not compatible with this version.*gstorch models build"):
        opened(tmp_path / "m.engine")


@pytest.mark.parametrize(
    ("device", "why"),
    [
        ("auto", "and there is none here, or use the ONNX file it was made from"),
        ("cpu", "and device: cpu was asked for: set device to cuda, or use the ONNX file it was made from"),
    ],
)
def test_without_a_gpu(tmp_path, monkeypatch, device, why):
    monkeypatch.setattr(engine_module, "torch_device", lambda config: types.SimpleNamespace(type="cpu"))
    with pytest.raises(ModelError, match=f"runs on an NVIDIA GPU only, {why}"):
        opened(engine_file(tmp_path, STATIC), device=device)


def test_without_tensorrt(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(ModelError, match=r"TensorRT cannot be imported .*pip install tensorrt"):
        opened(engine_file(tmp_path, STATIC))


# --- building ---------------------------------------------------------------------------------------------------------


def onnx_file(folder, name="m.onnx", **options):
    path = folder / name
    onnx_models.save(onnx_models.finder("yolov8", **{"size": (64, 64), "batch": None, **options}), path)
    return path


def test_built_once_and_again_when_something_changed(tmp_path, monkeypatch):
    path = onnx_file(tmp_path, metadata={"names": "['red', 'green', 'blue']"})
    first = build(BuildOptions(path))
    assert (first.path, first.fresh) == (tmp_path / "m.engine", True)
    side_car = read_side_car(first.path)
    assert side_car.fingerprint.size == (64, 64)
    assert side_car.fingerprint.batch == (1, 8, 16)
    assert side_car.metadata["names"] == "['red', 'green', 'blue']"
    assert not build(BuildOptions(path)).fresh
    assert build(BuildOptions(path, force=True)).fresh
    changed = build(BuildOptions(path, batch=(1, 4, 32)))
    assert changed.fresh
    assert changed.changes == ("batch (fewest, best, most): built for (1, 8, 16), here is (1, 4, 32)",)
    use(monkeypatch, "11.9.0", gpu="NVIDIA T4")
    assert [change.split(":")[0] for change in build(BuildOptions(path, precision="fp32", batch=(1, 4, 32))).changes][
        :2
    ] == ["TensorRT", "GPU"]


def test_built_engine_runs(tmp_path, torch):
    path = build(BuildOptions(onnx_file(tmp_path))).path
    engine = opened(path)
    assert engine.spec.max_batch == 16
    assert engine.forward(torch.ones(3, 3, 64, 64))[0].shape == (3, 7, 84)


def test_foreign_and_stale_engines_say_what_differs(tmp_path, monkeypatch):
    source = onnx_file(tmp_path)
    path = build(BuildOptions(source)).path
    onnx_file(tmp_path, size=(96, 96))
    with pytest.raises(ModelError, match=r"does not fit: another ONNX file; .*gstorch models build m\.onnx"):
        opened(path)
    source.unlink()
    opened(path)
    wrong = "fp16" if read_side_car(path).fingerprint.precision == "fp32" else "fp32"
    with pytest.raises(ModelError, match=f"precision: built for .*, here is {wrong}"):
        opened(path, precision=wrong)
    use(monkeypatch, "10.99.0", gpu="NVIDIA T4")
    with pytest.raises(ModelError) as raised:
        opened(path)
    assert "GPU: built for NVIDIA H200, here is NVIDIA T4" in str(raised.value)
    assert "here is 10.99.0" in str(raised.value)
    side_car_path(path).write_text("{}")
    with pytest.raises(ModelError, match="cannot be read"):
        opened(path)


def test_a_side_car_of_wrong_types(tmp_path):
    path = build(BuildOptions(onnx_file(tmp_path))).path
    content = json.loads(side_car_path(path).read_text())
    for changed in ({"metadata": 5}, {"metadata": [1]}, {"fingerprint": []}):
        side_car_path(path).write_text(json.dumps({**content, **changed}))
        with pytest.raises(ModelError, match=r"m\.engine\.json' beside it cannot be read .*: build the engine again"):
            opened(path)
    assert build(BuildOptions(tmp_path / "m.onnx")).changes == ("what it was built for cannot be read",)
    for source in (5, "x" * 5000, "nul\0"):  # nothing that is there
        side_car_path(path).write_text(json.dumps({**content, "source": source}))
        opened(path)


def test_weights_beside_the_onnx_file_count(tmp_path):
    path = onnx_file(tmp_path)
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(300, np.float32), "more"))
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=256)
    engine = build(BuildOptions(path)).path
    assert not build(BuildOptions(path)).fresh
    (tmp_path / "weights.bin").write_bytes(b"\1" * 1200)
    with pytest.raises(ModelError, match="does not fit: another ONNX file"):
        opened(engine)
    assert build(BuildOptions(path)).changes == ("another ONNX file",)
    (tmp_path / "weights.bin").unlink()
    opened(engine)  # as where the ONNX file is not there: nothing can be told


def test_engines_of_another_make_are_not_replaced(tmp_path):
    path = onnx_file(tmp_path)
    (tmp_path / "m.engine").write_bytes(b"made by trtexec")
    with pytest.raises(ModelError, match=r"m\.engine' is there and was not made by gstorch: .*--output, .*--force"):
        build(BuildOptions(path))
    assert (tmp_path / "m.engine").read_bytes() == b"made by trtexec"
    assert build(BuildOptions(path, force=True)).fresh


def test_precision_by_version(tmp_path, tensorrt):
    """Before 11 a float32 file may be built in half precision; since 11 the file decides."""
    path = onnx_file(tmp_path)
    old = tensorrt.__version__.startswith("10.")
    build(BuildOptions(path))
    made = fake_tensorrt.Builder.made[-1]
    assert (made.networks, made.flags) == (([0], ["TF32", "FP16"]) if old else ([2], ["TF32"]))
    assert read_side_car(tmp_path / "m.engine").fingerprint.precision == ("fp16" if old else "fp32")
    if not old:
        with pytest.raises(ModelError, match=r"--precision fp16 .*holds fp32 and TensorRT 11.* export it in fp16"):
            build(BuildOptions(path, precision="fp16"))
    half = onnx_file(tmp_path, "half.onnx", dtype="float16")
    assert build(BuildOptions(half)).fresh
    assert fake_tensorrt.Builder.made[-1].networks == [2]
    assert fake_tensorrt.Builder.made[-1].flags == ["TF32"]
    build(BuildOptions(path, precision="fp32", force=True))
    assert fake_tensorrt.Builder.made[-1].flags == []


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ({"size": None}, {}, "input size is dynamic: set --size"),
        ({}, {"size": (32, 32)}, "--size 32x32 is set, but its input is fixed to 64x64"),
        ({}, {"batch": (4, 2, 8)}, "must not fall"),
        ({}, {"output": Path("nowhere/m.engine")}, "there is no folder 'nowhere' for the engine: make it"),
        ({}, {"output": Path("/")}, "'/' is a folder: write the engine's file name"),
    ],
)
def test_what_cannot_be_built(tmp_path, file, options, message):
    with pytest.raises(ModelError, match=message):
        build(BuildOptions(onnx_file(tmp_path, **file), **options))


def test_a_damaged_onnx_file_is_not_built(tmp_path):
    path = onnx_file(tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="it is not a complete ONNX file: export or copy it again"):
        build(BuildOptions(path))


def test_command(tmp_path):
    path = onnx_file(tmp_path)
    run = CliRunner().invoke
    assert run(models, ["build", str(path), "--batch", "1:4"]).output == f"built {tmp_path / 'm.engine'}\n"
    assert run(models, ["build", str(path), "--batch", "1:4:4"]).output.endswith("is up to date\n")
    changed = run(models, ["build", str(path), "--batch", "8"])
    assert changed.output.startswith("changed: batch (fewest, best, most): built for (1, 4, 4), here is (8, 8, 8)\n")
    wrong = run(models, ["build", str(path), "--batch", "many"])
    assert wrong.exit_code == 1
    assert "'many' is not a batch" in wrong.output

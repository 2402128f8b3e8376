"""Torch engines on the CPU: every layout and kind of file gives the boxes that the ONNX finders give."""

import copy
import re
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.engines import torch as torch_engine  # noqa: E402
from elements.inference.engines.torch_files import LoadedModule, load_module  # noqa: E402
from elements.inference.errors import FrameError, ModelError  # noqa: E402
from elements.inference.frame import ArrayFrame  # noqa: E402
from elements.inference.gpu import path as device_path  # noqa: E402
from elements.inference.gpu.runners import Runner  # noqa: E402
from tests.pictures import SIZES, assert_finds, assert_finds_ellipses, ellipses, frame_of, picture  # noqa: E402
from tests.torch_files import CLASS, exported, loaded, scripted  # noqa: E402
from tests.torch_models import LAYOUTS, Finder, TensorFrame  # noqa: E402

# --- boxes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_of_every_layout(tmp_path, layout):
    model = loaded(scripted(tmp_path, layout), layout=layout)
    found = model.infer([frame_of(*size) for size in SIZES])
    for detections, size in zip(found, SIZES, strict=True):
        assert_finds(detections, *size)


def test_the_same_as_onnx(tmp_path):
    onnx_models = pytest.importorskip("tests.onnx_models", reason="needs onnx")
    path = onnx_models.save(onnx_models.finder("yolov8", (640, 640)), tmp_path / "m.onnx")
    there, here = loaded(path), loaded(CLASS)
    frames = [frame_of(*size) for size in SIZES]
    for ours, theirs in zip(here.infer(frames), there.infer(frames), strict=True):
        np.testing.assert_array_equal(ours.class_ids, theirs.class_ids)
        np.testing.assert_allclose(ours.boxes, theirs.boxes, atol=0.5)


@pytest.mark.parametrize("letterbox", ["center", "top-left", "stretch"])
def test_every_letterbox(letterbox):
    for detections, size in zip(
        loaded(CLASS, letterbox=letterbox).infer([frame_of(*s) for s in SIZES]), SIZES, strict=True
    ):
        assert_finds(detections, *size)


def test_pixels_stay_on_the_device():
    frames = [TensorFrame(frame_of(*size).pixels) for size in SIZES]
    for detections, size in zip(loaded(CLASS).infer(frames), SIZES, strict=True):
        assert_finds(detections, *size)


def test_a_16_to_9_frame_needs_no_square_input():
    model = loaded(CLASS)
    assert model._network.stride == 32
    assert [run.size for run in model._plan([frame_of(1920, 1080)], model._network)] == [(640, 384)]


def test_thresholds_and_classes_take_effect():
    model = loaded(CLASS, classes=("blue", 0))
    frame = frame_of(641, 359)
    assert sorted(model.infer([frame])[0].class_ids) == [0, 2]
    model.confidence = 0.95
    assert len(model.infer([frame])[0]) == 0


class FinderWithBrokenRows(Finder):
    def __init__(self):
        super().__init__(broken_rows=True)


def test_broken_rows_are_counted():
    model = loaded(f"{__name__}:FinderWithBrokenRows")
    assert_finds(model.infer([frame_of(641, 359)])[0], 641, 359)
    assert model.stats.nan == 2


def test_masks():
    model = loaded("tests.torch_models:MaskFinder", task="segment", layout="yolov8")
    for detections, size in zip(model.infer([ellipses(*size)[0] for size in SIZES]), SIZES, strict=True):
        assert_finds_ellipses(detections, *size)


def test_what_the_device_does_not_decode_is_decoded_on_the_host():
    model = loaded("tests.torch_models:MostColor", task="classify", input_size=(64, 64), confidence=0.5)
    pictures = [picture(100, 60, {color: (10, 5, 90, 55)}) for color in (2, 0, 1)]
    found = model.infer([ArrayFrame(pixels) for pixels in pictures])
    assert [(one.class_ids.tolist(), one.boxes.tolist()) for one in found] == [
        ([color], [[0, 0, 100, 60]]) for color in (2, 0, 1)
    ]


def test_room_is_made_for_a_crowd():
    model = loaded("tests.torch_models:Crowd", labels=("person",), letterbox="stretch")
    assert model._device._most == device_path.CANDIDATES == 512
    for _ in range(2):
        found = model.infer([ArrayFrame(np.zeros((640, 640, 3), np.uint8))] * 2)
        assert [len(one) for one in found] == [600, 600]
    assert model._device._most == 1024


# --- files ------------------------------------------------------------------------------------------------------------


def test_metadata_of_torchscript(tmp_path):
    metadata = {"names": {0: "r", 1: "g", 2: "b"}, "stride": 32, "task": "detect", "imgsz": [320, 320]}
    path = scripted(tmp_path, size=(320, 320), **{"config.txt": metadata})
    model = loaded(path, labels=None, input_size=None)
    assert model.names == ("r", "g", "b")
    assert model._network.size == (320, 320)


def test_convolutions_of_torchscript_stay_in_float32(tmp_path):
    """Traced ones may round their input to TF32 on a GPU; loaded they may not, and copies of them neither."""
    path, picture = tmp_path / "network.torchscript", torch.rand(1, 3, 8, 8)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Sequential(torch.nn.ConvTranspose2d(4, 4, 2)))
    torch.jit.save(torch.jit.trace(network.eval(), picture), path)
    module = load_module(ModelConfig(str(path)), torch.device("cpu")).module
    assert [may_round(torch.jit.load(path)), may_round(module), may_round(copy.deepcopy(module))] == [
        {True},
        {False},
        {False},
    ]
    assert torch.equal(module(picture), network(picture))


def may_round(module):
    graph = module.inlined_graph  # its nodes do not outlive it
    convolutions = graph.findAllNodes("aten::_convolution")
    assert len(convolutions) == 2
    return {list(node.inputs())[-1].toIValue() for node in convolutions}


@pytest.mark.parametrize(("batch", "most", "expected"), [(4, None, (4, None)), (4, 8, (None, 8))])
def test_exported_program_tells_its_input(tmp_path, batch, most, expected):
    model = loaded(exported(tmp_path, batch=batch, most=most), input_size=None, trust=True)
    spec = model._network.engine.spec
    assert (spec.batch, spec.max_batch, spec.size) == (*expected, (320, 320))
    sizes = [(640, 360)] * 5 + [(360, 640)] * 5
    for detections, size in zip(model.infer([frame_of(*size) for size in sizes]), sizes, strict=True):
        assert_finds(detections, *size, tolerance=1.5)


class OneAtATime(Finder):
    def forward(self, image):
        assert len(image) == 1
        return super().forward(image)


def test_a_model_that_takes_one_frame_at_a_time():
    model = loaded(f"{__name__}:OneAtATime")
    for detections in model.infer([frame_of(641, 359)] * 3):
        assert_finds(detections, 641, 359)


def test_weights_of_an_own_class(tmp_path):
    torch.save({"score": torch.tensor(0.5)}, tmp_path / "weights.pt")
    model = loaded(CLASS, weights=str(tmp_path / "weights.pt"))
    np.testing.assert_allclose(model.infer([frame_of(641, 359)])[0].scores, 0.5)


def state_dict(path):
    torch.save(Finder().state_dict(), path)


def text(path):
    path.write_text("no model")


def cut_script(path):
    content = scripted(path.parent).read_bytes()
    path.write_bytes(content[: len(content) // 2])


def damaged_script(path):
    content = bytearray(scripted(path.parent).read_bytes())
    content[content.rfind(b"PK\x01\x02")] = 0  # in the archive's directory
    path.write_bytes(content)


def program_without_graph(path):
    with zipfile.ZipFile(exported(path.parent)) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            if not name.endswith("models/model.json"):
                target.writestr(name, source.read(name))


class Other(torch.nn.Module):
    @torch.jit.export
    def look(self, image):
        return image


def script_without_forward(path):
    torch.jit.script(Other()).save(path)


REFUSED = {
    "no file": ("m.pt", lambda path: None, {}, ["there is no such file"]),
    "state dict": ("m.pt", state_dict, {}, ["holds weights without the network", "package.module:Class", "'weights'"]),
    "trusted state dict": ("m.pt", state_dict, {"trust": True}, ["holds weights without the network"]),
    "no torch file": ("m.pt", text, {}, ["it is no file of torch, or cut"]),
    "empty file": ("m.pt", lambda path: path.touch(), {"trust": True}, ["it is no file of torch, or cut"]),
    "cut script": ("m.pt", cut_script, {}, ["it is no file of torch, or cut"]),
    "damaged script": ("m.pt", damaged_script, {}, ["its archive is damaged"]),
    "script without forward": ("m.pt", script_without_forward, {}, ["Method 'forward' is not defined"]),
    "no program": ("m.pt2", text, {}, ["not a complete exported program"]),
    "no program, trusted": ("m.pt2", text, {"trust": True}, ["not a complete exported program"]),
    "part of a program": ("m.pt2", program_without_graph, {"trust": True}, ["cannot load the exported program"]),
    "weights with a file": ("m.pt", state_dict, {"weights": "w.pt"}, ["leave them out"]),
    "fp16 on the CPU": (CLASS, None, {"precision": "fp16"}, ["needs a GPU"]),
    "compiled on the CPU": (CLASS, None, {"compile": True}, ["compile: true needs a GPU", "leave compile out"]),
    "no weights": (CLASS, None, {"weights": __file__}, ["are no state dict, or damaged: save it with torch.save("]),
    "missing weights": (CLASS, None, {"weights": "nowhere.pt"}, ["weights 'nowhere.pt': there is no such file"]),
    "device": (CLASS, None, {"device": "gpu"}, ["'gpu' is not auto, cpu, cuda"]),
    "size": (f"{__name__}:NoSize", None, {}, ["fails on a 640x640 input", "set 'input_size'"]),
    "no tensor": (f"{__name__}:NoTensor", None, {}, ["returns list without a tensor"]),
}


class NoSize(torch.nn.Module):
    def forward(self, image):
        raise RuntimeError("wrong size")


class NoTensor(torch.nn.Module):
    def forward(self, image):
        return []


@pytest.mark.parametrize(("name", "write", "options", "parts"), REFUSED.values(), ids=REFUSED)
def test_refused_at_start(tmp_path, name, write, options, parts):
    path = name if write is None else tmp_path / name
    if write:
        write(path)
    with pytest.raises(ModelError) as raised:
        loaded(path, **options)
    message = str(raised.value)
    assert message.startswith(f"model '{path}': ")
    for part in parts:
        assert part in message
    assert "\n" not in message


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_that_is_not_there():
    with pytest.raises(ModelError, match=r"cuda:0 was asked for, but torch .*set device to cpu or auto"):
        loaded(CLASS, device="cuda:0")


def test_weights_that_do_not_fit(tmp_path):
    torch.save({"other": torch.zeros(1)}, tmp_path / "w.pt")
    with pytest.raises(ModelError, match=r"do not fit the class: .*Missing key.*score"):
        loaded(CLASS, weights=str(tmp_path / "w.pt"))


# --- failing frames ---------------------------------------------------------------------------------------------------


def test_the_failing_frame_is_named():
    model = loaded(CLASS)
    rgba = TensorFrame(np.zeros((64, 64, 3), np.uint8), source_id=3)
    rgba.tensor = torch.zeros((64, 64, 4), dtype=torch.uint8)
    with pytest.raises(FrameError, match=r"RGBA.*format=RGB before pyinfer") as raised:
        model.infer([frame_of(641, 359), rgba])
    assert raised.value.frame is rgba
    assert_finds(model.infer([frame_of(641, 359)])[0], 641, 359)


def test_a_failing_network_is_said(monkeypatch):
    model = loaded(CLASS)

    def fail(self):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Runner, "run", fail)
    with pytest.raises(FrameError, match="RuntimeError: out of memory"):
        model.infer([frame_of(641, 359)])


def test_close_frees(tmp_path):
    model = loaded(CLASS)
    model.infer([frame_of(641, 359)])
    model.close()
    with pytest.raises(RuntimeError, match=r"call load\(\) first"):
        model.infer([])


# --- compiled ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiler(monkeypatch):
    """Shapes that the compiler was given. It stands in for torch's, which takes minutes on a CPU."""
    shapes = []

    def compile_network(graph, inputs):
        shapes.extend(tuple(value.shape) for value in inputs if tuple(value.shape)[1:2] == (3,))
        return graph.forward

    monkeypatch.setattr(torch_engine, "COMPILER", compile_network)
    monkeypatch.setattr(torch_engine, "_check_compile", lambda *_: None)
    torch.compiler.reset()
    yield shapes
    torch.compiler.reset()


def test_the_full_batch_is_compiled_and_no_other(compiler):
    model = loaded(CLASS, compile=True, batch_size=2, input_size=(640, 384))
    assert compiler == [(2, 3, 384, 640)]
    for count in (2, 1):
        for found in model.infer([frame_of(1280, 720)] * count):
            assert_finds(found, 1280, 720)
    assert_finds(model.infer([frame_of(360, 640)])[0], 360, 640)  # laid into the whole input, as all are
    assert set(model._device._runners) == {(count, (640, 384), device_path.CANDIDATES) for count in (1, 2)}
    assert compiler == [(2, 3, 384, 640)]


def test_networks_that_are_gone_do_not_count(compiler):
    """Torch compiles one function 8 times at most, and then refuses."""
    engine = torch_engine.ModuleEngine(LoadedModule(torch.nn.ReLU()), torch.device("cpu"), "fp32")
    for height in range(1, 11):
        assert engine.compiled()(-torch.ones(1, 3, height, 4))[0].max() == 0
    assert [shape[2] for shape in compiler] == list(range(1, 11))


def test_a_network_that_cannot_be_compiled(compiler):
    with pytest.raises(ModelError) as raised:
        loaded(f"{__name__}:Looking", compile=True, batch_size=1)
    assert re.fullmatch(r"model '.*:Looking': it cannot be compiled: .*\. Leave compile out", str(raised.value))


class Looking(Finder):
    def forward(self, image):
        if float(image.sum()) < 0:
            return image
        return super().forward(image)


def test_what_compiling_needs(tmp_path, monkeypatch):
    gpu = torch.device("cuda")
    module, script = Finder(), torch.jit.load(str(scripted(tmp_path)))
    monkeypatch.setattr("elements.inference.gpu.letterbox.has_triton", lambda: True)
    check, config = torch_engine._check_compile, ModelConfig(CLASS, compile=True, batch_size=4)
    check(config, module, gpu)
    with pytest.raises(ModelError, match=r"cannot read TorchScript: export .* leave compile out"):
        check(config, script, gpu)
    with pytest.raises(ModelError, match=r"one number of frames: set batch-size"):
        check(ModelConfig(CLASS, compile=True), module, gpu)
    monkeypatch.setattr("elements.inference.gpu.letterbox.has_triton", lambda: False)
    with pytest.raises(ModelError, match=r"needs Triton: pip install triton"):
        check(config, module, gpu)

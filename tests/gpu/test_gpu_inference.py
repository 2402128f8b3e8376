"""Inference on a CUDA GPU: the same answers as on the CPU, one copy to the host per batch, memory that stays flat."""

import copy
import gc
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.engines.torch import ModuleEngine  # noqa: E402
from elements.inference.engines.torch_files import LoadedModule, load_module  # noqa: E402
from elements.inference.errors import FrameError, ModelError  # noqa: E402
from elements.inference.frame import ArrayFrame  # noqa: E402
from elements.inference.gpu import path as device_path  # noqa: E402
from elements.inference.gpu.nms import suppress  # noqa: E402
from elements.inference.gpu.runners import GraphRunner  # noqa: E402
from elements.inference.model import DetectionModel, open_model  # noqa: E402
from elements.portable.color import BT709  # noqa: E402
from tests.device_checks import (  # noqa: E402
    LETTERBOXES,
    TASKS,
    PlanarFrame,
    check_detect,
    check_letterbox,
    check_planar_letterbox,
)
from tests.pictures import NAMES, SIZES, assert_finds, assert_finds_ellipses, ellipses, frame_of, picture  # noqa: E402
from tests.torch_models import LAYOUTS, Finder, FixedFinder, TensorFrame  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

CLASS = "tests.torch_models:Finder"
DTYPES = [torch.float32, torch.float16, torch.uint8]
COPIES_TO_HOST = "Memcpy DtoH"
WAITS = ("cudaEventSynchronize", "cudaStreamSynchronize")  # the profiler itself waits for the device


def loaded(path=CLASS, **options):
    options = {"labels": NAMES, "device": "cuda", "input_size": (640, 640), "precision": "fp32", **options}
    model = open_model(ModelConfig(str(path), **options))
    assert isinstance(model, DetectionModel)
    model.load()
    return model


def gpu_frames(sizes=SIZES):
    return [TensorFrame(frame_of(*size).pixels, "cuda", source_id=i) for i, size in enumerate(sizes)]


def suppression(fused):
    if not fused:
        return suppress
    from elements.inference.gpu.nms_triton import suppress_fused

    return suppress_fused


@pytest.mark.parametrize("fused", [False, True], ids=["torch", "triton"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("options", LETTERBOXES, ids=lambda o: f"{o.letterbox}-{o.color}-{o.scale}")
def test_letterbox_is_that_of_the_host(options, dtype, fused):
    check_letterbox("cuda", options, dtype, fused)
    check_letterbox("cuda", options, dtype, fused, channels_last=True)


@pytest.mark.parametrize("fused", [False, True], ids=["torch", "triton"])
@pytest.mark.parametrize("options", LETTERBOXES, ids=lambda o: f"{o.letterbox}-{o.color}-{o.scale}")
def test_letterbox_of_planes_is_that_of_the_host(options, fused):
    check_planar_letterbox("cuda", options, torch.float32, fused)
    check_planar_letterbox("cuda", options, torch.float16, fused)


@pytest.mark.parametrize("fused", [False, True], ids=["torch", "triton"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_objects_as_numpy(layout, fused):
    for seed in range(5):
        check_detect("cuda", layout, suppression(fused), seed)
    check_detect("cuda", layout, suppression(fused), 0, keep=frozenset({0, 2, 3}))


@pytest.mark.parametrize("fused", [False, True], ids=["torch", "triton"])
@pytest.mark.parametrize(("layout", "task"), TASKS)
def test_what_a_task_adds_is_the_same_as_numpy(layout, task, fused):
    check_detect("cuda", layout, suppression(fused), 0, task=task)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_masks(precision):
    model = loaded("tests.torch_models:MaskFinder", task="segment", layout="yolov8", precision=precision)
    assert all(isinstance(runner, GraphRunner) for runner in model._device._runners.values())
    frames = [TensorFrame(ellipses(*size)[0].pixels, "cuda") for size in SIZES]
    for _ in range(2):
        for detections, size in zip(model.infer(frames), SIZES, strict=True):
            assert_finds_ellipses(detections, *size)


def test_what_the_device_does_not_decode_is_decoded_on_the_host():
    model = loaded("tests.torch_models:MostColor", task="classify", input_size=(64, 64), confidence=0.5)
    frames = [TensorFrame(picture(100, 60, {color: (10, 5, 90, 55)}), "cuda") for color in (2, 0, 1)]
    assert [one.class_ids.tolist() for one in model.infer(frames)] == [[2], [0], [1]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes_of_every_layout(layout, monkeypatch):
    monkeypatch.setattr(Finder.__init__, "__defaults__", (layout, False))
    model = loaded(layout=layout)
    assert all(isinstance(runner, GraphRunner) for runner in model._device._runners.values())
    for detections, size in zip(model.infer(gpu_frames()), SIZES, strict=True):
        assert_finds(detections, *size)


def test_boxes_are_those_of_the_cpu():
    here, there = loaded(), loaded(device="cpu")
    for ours, theirs in zip(here.infer(gpu_frames()), there.infer([frame_of(*s) for s in SIZES]), strict=True):
        np.testing.assert_array_equal(ours.class_ids, theirs.class_ids)
        np.testing.assert_allclose(ours.boxes, theirs.boxes, atol=0.5)


def test_half_precision():
    model = loaded(precision="auto")
    assert model._network.engine.spec.dtype == np.float16
    for detections, size in zip(model.infer(gpu_frames()), SIZES, strict=True):
        assert_finds(detections, *size, tolerance=2.0, score_tolerance=2e-3)  # 0.25 input pixels, 3 times enlarged


def test_graphs_of_many_shapes_do_not_disturb_each_other():
    """The finder keeps state per shape and drops it when another comes, as many heads do."""
    model = loaded()
    rng = np.random.default_rng(0)
    for _ in range(30):
        sizes = [SIZES[i] for i in rng.integers(0, len(SIZES), rng.integers(1, 10))]
        for detections, size in zip(model.infer(gpu_frames(sizes)), sizes, strict=True):
            assert_finds(detections, *size)
    assert all(isinstance(runner, GraphRunner) for runner in model._device._runners.values())
    assert {key[0] for key in model._device._runners} <= {1, 2, 3, 4, 8, 12}


def test_thresholds_take_effect_in_captured_graphs():
    model = loaded()
    frames = gpu_frames([(641, 359)])
    assert len(model.infer(frames)[0]) == 3
    model.confidence = 0.95
    assert len(model.infer(frames)[0]) == 0


def test_frames_of_the_host_go_through_too():
    frames = [frame_of(*SIZES[0]), *gpu_frames(SIZES[1:])]
    for detections, size in zip(loaded().infer(frames), SIZES, strict=True):
        assert_finds(detections, *size)


def test_without_triton(monkeypatch, caplog):
    monkeypatch.setattr(device_path, "has_triton", lambda: False)
    model = loaded()
    assert "pip install triton" in caplog.text
    for detections, size in zip(model.infer(gpu_frames()), SIZES, strict=True):
        assert_finds(detections, *size)


def test_a_network_that_cannot_be_captured(caplog):
    model = loaded("tests.torch_models:Waiting")
    assert caplog.text.count("cannot run from a CUDA graph") == 1
    for detections, size in zip(model.infer(gpu_frames()), SIZES, strict=True):
        assert_finds(detections, *size)
    assert caplog.text.count("cannot run from a CUDA graph") == 1


def test_torchscript(tmp_path):
    path = tmp_path / "finder.torchscript"
    traced = torch.jit.trace(FixedFinder().eval().cuda(), torch.rand(2, 3, 640, 640, device="cuda"))
    torch.jit.save(traced, str(path), _extra_files={"config.txt": json.dumps({"names": list(NAMES)})})
    model = loaded(path, labels=None)
    for detections, size in zip(model.infer(gpu_frames()), SIZES, strict=True):
        assert_finds(detections, *size)


def test_a_traced_network_is_captured(tmp_path):
    from benchmarks.network import Detector

    traced = torch.jit.trace(Detector().eval().cuda(), torch.rand(2, 3, 640, 640, device="cuda"), check_trace=False)
    torch.jit.save(traced, tmp_path / "m.torchscript")
    model = loaded(tmp_path / "m.torchscript", labels=None, layout="yolov8", precision="auto", confidence=0.0001)
    assert all(isinstance(runner, GraphRunner) for runner in model._device._runners.values())
    captured = [len(found) for found in model.infer(gpu_frames(SIZES[:2]))]
    model._device._runners.clear()
    model._network.engine.can_capture = False
    assert captured == [len(found) for found in model.infer(gpu_frames(SIZES[:2]))]
    assert max(captured) > 0


def test_exported_program_moves_to_the_gpu(tmp_path):
    free = ({0: torch.export.Dim("batch", min=1, max=8)},)
    program = torch.export.export(FixedFinder().eval(), (torch.rand(4, 3, 640, 640),), dynamic_shapes=free)
    torch.export.save(program, tmp_path / "finder.pt2")
    model = loaded(tmp_path / "finder.pt2", precision="auto", trust=True)
    for detections, size in zip(model.infer(gpu_frames(SIZES * 3)), SIZES * 3, strict=True):
        assert_finds(detections, *size)


def profiled(work):
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
        work()
        torch.cuda.synchronize()
    return profile.events()


def test_one_copy_to_the_host_and_one_wait_per_batch():
    model = loaded(letterbox="stretch")
    frames = gpu_frames([(1920, 1080)] * 16)
    model.infer(frames)
    events = profiled(lambda: model.infer(frames))
    copies = [event for event in events if COPIES_TO_HOST in event.name]
    assert len(copies) == 1, [event.name for event in events if "Memcpy" in event.name]
    waits = [event.name for event in events if event.name in WAITS]
    assert waits == ["cudaEventSynchronize"]
    (shape,) = (shape for shape, dtype in model._device._spare if dtype == torch.float32)
    assert 4 * np.prod(shape) < 256 * 1024  # detections, not pixels


def test_pictures_of_both_kinds_go_through_together():
    """Five frames, in the rows of a larger graph; each is found as it is alone."""
    model = loaded()
    sizes = [*SIZES, (640, 360)]
    frames = gpu_frames(sizes)
    for place in (0, 3):
        frames[place] = PlanarFrame("NV12", sizes[place], BT709, "cuda", frame_of(*sizes[place]).pixels)
    together = model.infer(frames)
    for frame, found in zip(frames, together, strict=True):
        (alone,) = model.infer([frame])
        assert len(alone) > 0
        np.testing.assert_array_equal(found.class_ids, alone.class_ids)
        np.testing.assert_allclose(found.boxes, alone.boxes, atol=0.05)
    model.close()


def test_memory_stays_flat():
    model = loaded(precision="auto")
    batches = [gpu_frames(SIZES[:count]) for count in (1, 3, 4)]
    for frames in batches * 5:
        model.infer(frames)
    gc.collect()  # models of other tests
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    for frames in batches * 200:
        model.infer(frames)
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before


def test_models_that_are_gone_leave_no_memory():
    """Each has a stream of its own, and torch keeps what one has freed for that stream alone."""
    frames, reserved = gpu_frames(), []
    for _ in range(5):
        model = loaded("tests.torch_models:Waiting")  # runs outside of graphs, whose memory goes with them
        model.infer(frames)
        model.close()
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[-1] <= reserved[0]


@pytest.mark.parametrize("traced", [False, True])
def test_float32_is_not_rounded_to_tf32(tmp_path, traced):
    torch.manual_seed(0)
    network, pictures = torch.nn.Conv2d(3, 16, 5).eval(), torch.rand(2, 3, 64, 64)
    expected = copy.deepcopy(network).double()(pictures.double())
    module = network
    if traced:
        torch.jit.save(torch.jit.trace(network, pictures), tmp_path / "network.torchscript")
        module = load_module(ModelConfig(str(tmp_path / "network.torchscript")), torch.device("cuda")).module
    engine = ModuleEngine(LoadedModule(module.cuda()), torch.device("cuda"), "fp32")
    for run in (engine.forward, engine.twin()):
        (found,) = run(pictures.cuda())
        assert (found.detach().cpu() - expected).abs().max() < 1e-5  # with TF32 about 3e-4


def test_batches_may_overlap():
    model = loaded(letterbox="stretch")
    path, frames = model._device, [gpu_frames([size] * 2) for size in SIZES]
    pending = [path.submit(batch, (640, 640), 0.25, 0.45) for batch in frames]
    for one, size in zip(pending, SIZES, strict=True):
        for detections in path.collect(one)[0]:
            assert_finds(detections, *size)


def test_pictures_that_cannot_be_used_are_named():
    model = loaded()
    frame = TensorFrame(np.zeros((64, 64, 3), np.uint8), "cuda", source_id=3)
    frame.tensor = torch.zeros((64, 64, 4), dtype=torch.uint8, device="cuda")
    with pytest.raises(FrameError, match=r"RGBA.*format=RGB before pyinfer") as raised:
        model.infer([*gpu_frames(), frame])
    assert raised.value.frame is frame


def test_a_gpu_that_is_not_there():
    with pytest.raises(ModelError, match=r"cuda:64 was asked for, but (the only GPU is cuda:0|there are cuda:0 to)"):
        loaded(device="cuda:64")


def test_crowds_are_complete():
    model = loaded("tests.torch_models:Crowd", labels=("person",), letterbox="stretch", precision="auto")
    for _ in range(2):
        found = model.infer([ArrayFrame(np.zeros((640, 640, 3), np.uint8))] * 2)
        assert [len(one) for one in found] == [600, 600]

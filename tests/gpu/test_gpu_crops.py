"""Objects cut out of frames that lie in GPU memory, and what models of one's own see there."""

from __future__ import annotations

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.crops import CropBatch, CropFrame
from elements.inference.model import DetectionModel
from elements.inference.own_frame import OwnFrame
from elements.portable.color import BT601, BT709
from tests.pictures import NAMES, picture

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")
pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA GPU", allow_module_level=True)

from elements.inference.gpu.rgb import to_rgb  # noqa: E402
from tests.device_checks import PLANAR_SOURCES, PlanarFrame  # noqa: E402
from tests.torch_models import TensorFrame  # noqa: E402

BOXES = {0: (100.0, 80.0, 180.0, 240.0), 1: (300.0, 60.0, 420.0, 120.0), 2: (500.0, 200.0, 560.0, 260.0)}


@pytest.fixture
def frame():
    return TensorFrame(picture(640, 360, BOXES), "cuda")


def crops(frame):
    return [CropFrame(frame, tuple(round(edge) for edge in box)) for box in BOXES.values()]


def test_crops_of_all_shapes_are_one_run(frame) -> None:
    config = ModelConfig(
        "tests.torch_models:MostColor", task="classify", labels=("red", "green", "blue"), input_size=(64, 64),
        device="cuda",
    )  # fmt: skip
    model = DetectionModel(config)
    model.load()
    work = model.submit(crops(frame))
    assert len(work.runs) == 1
    found = model.collect(work)
    assert [one.class_ids.tolist() for one in found] == [[0], [1], [2]]
    assert all(one.scores[0] > 0.9 for one in found)
    assert found[0].boxes.tolist() == [[0, 0, 80, 160]]
    model.close()


def test_crops_of_planes() -> None:
    """Frames of two sizes and layouts; what is cut out is RGB made of their planes."""
    frames = [
        PlanarFrame("I420", (640, 360), BT709, "cuda", picture(640, 360, BOXES)),
        PlanarFrame("NV12", (641, 361), BT601, "cuda", picture(641, 361, BOXES)),
    ]
    regions = np.array([*BOXES.values(), *BOXES.values()], np.int64)
    model = DetectionModel(
        ModelConfig("tests.torch_models:MostColor", task="classify", labels=NAMES, input_size=(64, 64), device="cuda")
    )
    model.load()
    found = model.infer(CropBatch(frames, np.repeat([0, 1], 3), regions))
    assert [one.class_ids.tolist() for one in found] == [[0], [1], [2]] * 2
    model.close()


@pytest.mark.parametrize("source", PLANAR_SOURCES, ids=str)
def test_rgb_of_planes_is_that_of_the_host(source) -> None:
    frame = PlanarFrame(*source, "cuda")
    (rgb,) = to_rgb([frame.device_planes])
    np.testing.assert_array_equal(rgb.cpu().numpy(), frame.resized(frame.width, frame.height))


def test_a_tensor_is_a_copy_on_the_gpu_and_an_array_one_on_the_host(frame) -> None:
    shown = OwnFrame(frame, {})
    assert (shown.tensor.device.type, tuple(shown.tensor.shape)) == ("cuda", (360, 640, 3))
    before = frame.tensor.cpu().numpy().copy()
    np.testing.assert_array_equal(shown.array, before)
    shown.tensor.zero_()
    np.testing.assert_array_equal(frame.tensor.cpu().numpy(), before)

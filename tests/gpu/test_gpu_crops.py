"""Objects cut out of frames that lie in GPU memory, and what models of one's own see there."""

from __future__ import annotations

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.crops import CropFrame
from elements.inference.model import DetectionModel
from elements.inference.own_frame import OwnFrame
from tests.pictures import picture

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")
pytestmark = pytest.mark.gpu
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA GPU", allow_module_level=True)

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


def test_a_tensor_is_a_copy_on_the_gpu_and_an_array_one_on_the_host(frame) -> None:
    shown = OwnFrame(frame, {})
    assert (shown.tensor.device.type, tuple(shown.tensor.shape)) == ("cuda", (360, 640, 3))
    before = frame.tensor.cpu().numpy().copy()
    np.testing.assert_array_equal(shown.array, before)
    shown.tensor.zero_()
    np.testing.assert_array_equal(frame.tensor.cpu().numpy(), before)

"""Letterbox, decoding and suppression on a torch device (here the CPU) against the NumPy code.

Triton's kernels take part where its interpreter is on: TRITON_INTERPRET=1 pytest tests/unit/test_device_parts.py.
"""

import ctypes
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from elements.inference.gpu.letterbox import Pixels  # noqa: E402
from elements.inference.gpu.nms import suppress  # noqa: E402
from tests.device_checks import LETTERBOXES, TASKS, check_detect, check_letterbox, check_planar_letterbox  # noqa: E402
from tests.torch_models import LAYOUTS  # noqa: E402

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
FUSED = [False, pytest.param(True, marks=pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1"))]


def suppression(fused):
    if not fused:
        return suppress
    from elements.inference.gpu.nms_triton import suppress_fused

    return suppress_fused


@pytest.mark.parametrize("fused", FUSED, ids=["torch", "triton"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8], ids=str)
@pytest.mark.parametrize("options", LETTERBOXES, ids=lambda o: f"{o.letterbox}-{o.color}-{o.scale}")
def test_letterbox_is_that_of_the_host(options, dtype, fused):
    check_letterbox("cpu", options, dtype, fused)
    check_letterbox("cpu", options, dtype, fused, channels_last=True)


@pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1")  # plain torch: test_resampling.py
@pytest.mark.parametrize("options", LETTERBOXES, ids=lambda o: f"{o.letterbox}-{o.color}-{o.scale}")
def test_letterbox_of_planes_is_that_of_the_host(options):
    check_planar_letterbox("cpu", options, torch.float16, fused=True)


@pytest.mark.parametrize("fused", FUSED, ids=["torch", "triton"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_objects_as_numpy(layout, fused):
    for seed in range(1 if fused else 3):
        check_detect("cpu", layout, suppression(fused), seed)


@pytest.mark.parametrize(("layout", "task"), TASKS)
def test_what_a_task_adds_is_the_same_as_numpy(layout, task):
    check_detect("cpu", layout, suppress, 0, task=task)


@pytest.mark.parametrize("layout", ["yolov8", "end2end"])
def test_classes_are_picked(layout):
    check_detect("cpu", layout, suppress, 0, keep=frozenset({0, 2, 3}))


@pytest.mark.parametrize("fused", FUSED, ids=["torch", "triton"])
def test_suppression_follows_chains(fused):
    """Each box overlaps only the next one: the first stays, takes the second, so the third stays …"""
    left = torch.arange(7.0) * 4
    boxes = torch.stack([left, 0 * left, left + 10, 0 * left + 10], 1)[None].repeat(2, 1, 1)
    classes = torch.zeros((2, 7), dtype=torch.int64)
    classes[1, 1::2] = 1
    counts = torch.tensor([7, 4])
    kept = suppression(fused)(boxes, classes, counts, torch.tensor(0.3))
    assert kept.int().tolist() == [[1, 0, 1, 0, 1, 0, 1], [1, 1, 1, 1, 0, 0, 0]]


def test_the_pixels_of_a_part_lie_in_the_picture():
    """Red is the column, green the row; rows have padding."""
    rows, columns = torch.meshgrid(torch.arange(12), torch.arange(20), indexing="ij")
    picture = torch.zeros((12, 24, 3), dtype=torch.uint8)[:, :20]
    picture[..., 0], picture[..., 1] = columns, rows
    part = Pixels.of(picture).part(5, 3, 9, 10)
    assert (part.width, part.height, part.pitch) == (4, 7, 72)
    first = np.ctypeslib.as_array((ctypes.c_uint8 * 3).from_address(part.address))
    last = np.ctypeslib.as_array((ctypes.c_uint8 * 3).from_address(part.address + 6 * part.pitch + 3 * 3))
    assert (first.tolist(), last.tolist()) == ([5, 3, 0], [8, 9, 0])

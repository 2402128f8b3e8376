"""Letterbox, decoding and suppression on a torch device (here the CPU) against the NumPy code.

Triton's kernels take part where its interpreter is on: TRITON_INTERPRET=1 pytest tests/unit/test_device_parts.py.
"""

import ctypes
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from elements.inference.crops import crop_regions, scaled_regions  # noqa: E402
from elements.inference.frame import DevicePlanes  # noqa: E402
from elements.inference.gpu.letterbox import (  # noqa: E402
    NOTHING,
    PACKED,
    PLANAR,
    TABLE_COLUMNS,
    Pixels,
    fill_table,
)
from elements.inference.gpu.nms import suppress  # noqa: E402
from elements.inference.letterbox import place_all  # noqa: E402
from elements.inference.preprocess import Preprocess  # noqa: E402
from elements.portable.color import BT709  # noqa: E402
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


def crops_in(picture):
    """Rows of `fill_table` for boxes in and about a frame of twice the picture's size, one for each that is seen."""
    corners = np.random.default_rng(0).integers(-60, 220, (200, 2, 2))
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1) + 0.5
    regions = crop_regions(boxes, np.array([160, 96]))
    seen = regions[(regions[:, 2:] > regions[:, :2]).all(axis=1)]
    assert 100 < len(seen) < 200
    return Pixels.of(picture).parts(scaled_regions(seen, (160, 96), (80, 48)))


@pytest.mark.parametrize("planar", [(0, 2), (0, 1, 2), ()])
def test_the_table_says_of_each_row_what_its_picture_is(planar):
    planes = DevicePlanes(1000, 2000, 3000, 8, 4, 1, 2, 8, 6, BT709.to_rgb_fixed)
    rgb = Pixels(4000, 24, 8, 6)
    places = place_all(np.array([(8, 6)] * 3), (16, 16), "center")
    table = np.full((5, TABLE_COLUMNS), -1)
    pictures = [planes if place in planar else rgb for place in range(3)]
    assert fill_table(pictures, places, table, torch.device("cpu")) == 3 - len(planar)
    assert table[:, -1].tolist() == [PLANAR if p in planar else PACKED for p in range(3)] + [NOTHING, NOTHING]
    for row in table[[place for place in range(3) if place not in planar]]:
        assert row[:8].tolist() == [*rgb, 0, 2, 16, 12]
    for row in table[list(planar)]:
        assert row[:11].tolist() == [*planes[:7], 0, 2, 16, 12]
        matrix = np.ctypeslib.as_array((ctypes.c_int32 * 12).from_address(int(row[15])))
        assert tuple(matrix.tolist()) == BT709.to_rgb_fixed


def test_parts_of_any_box_lie_in_the_picture():
    picture = torch.zeros((48, 100, 3), dtype=torch.uint8)[:, :80]
    address, pitch, width, height = crops_in(picture).T
    row, byte = np.divmod(address - picture.data_ptr(), pitch)
    assert (row >= 0).all() and (row + height <= 48).all() and (height > 0).all()
    assert (byte >= 0).all() and (byte + 3 * width <= 3 * 80).all() and (width > 0).all()


@pytest.mark.skipif(not INTERPRETED, reason="needs TRITON_INTERPRET=1")
def test_nothing_beyond_the_picture_is_read():
    """The picture is 7 all over, what lies around it 255."""
    from elements.inference.gpu.letterbox_triton import letterbox_fused

    around = torch.full((50, 100, 3), 255, dtype=torch.uint8)
    picture = around[1:49, 1:81]
    picture[:] = 7
    rows = crops_in(picture)[::30]
    table = torch.zeros((len(rows), TABLE_COLUMNS), dtype=torch.int64)
    placements = place_all(rows[:, 2:], (32, 16), "stretch")
    packed = fill_table(rows, placements, table.numpy(), torch.device("cpu"))
    out = torch.zeros((len(rows), 3, 16, 32)).contiguous(memory_format=torch.channels_last)
    letterbox_fused(table, packed, len(rows), out, Preprocess(letterbox="stretch", scale="0-255"))
    assert out.unique().tolist() == [7]

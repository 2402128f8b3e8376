"""Geometry of the letterbox: values worked out by hand, and the exact inverse."""

import numpy as np
import pytest

from elements.inference.crops import CropBatch
from elements.inference.errors import FrameError
from elements.inference.frame import ArrayFrame
from elements.inference.letterbox import place, place_all, smallest_input
from elements.inference.preprocess import InputSpec, Preprocess, Preprocessor

SIZES = [(1920, 1080), (720, 1280), (998, 483), (641, 359)]


@pytest.mark.parametrize(
    ("source", "mode", "expected"),
    [
        ((1920, 1080), "center", (0, 140, 640, 360)),
        ((1920, 1080), "top-left", (0, 0, 640, 360)),
        ((720, 1280), "center", (140, 0, 360, 640)),
        ((641, 359), "center", (0, 141, 640, 358)),
        ((427, 241), "center", (0, 139, 640, 361)),  # 361.2
        ((640, 361), "top-left", (0, 0, 640, 361)),
        ((1000, 567), "center", (0, 138, 640, 363)),  # 362.88
        ((1000, 567), "top-left", (0, 0, 640, 362)),
        ((100, 50), "stretch", (0, 0, 640, 640)),
        ((1920, 1080), "crop", (-248, 0, 1137, 640)),
        ((720, 1280), "crop", (0, -248, 640, 1137)),
        ((5000, 2), "top-left", (0, 0, 640, 1)),
    ],
)
def test_place(source, mode, expected):
    placed = place(source, (640, 640), mode)
    assert (placed.left, placed.top, placed.width, placed.height) == expected


@pytest.mark.parametrize("source", SIZES)
@pytest.mark.parametrize("mode", ["center", "top-left", "stretch"])
def test_inverse_is_exact(source, mode):
    placed = place(source, (640, 384), mode)
    boxes = np.array([[0, 0, *source], [10.25, 20.5, 300.75, 200.125]], np.float32)
    np.testing.assert_allclose(placed.to_source(placed.to_mux(boxes)), boxes, atol=2e-3)


@pytest.mark.parametrize(
    ("source", "mode", "expected"),
    [
        ((1920, 1080), "top-left", (416, 256)),  # 416 x 234
        ((768, 432), "center", (416, 256)),
        ((720, 1280), "center", (256, 416)),
        ((500, 500), "center", (416, 416)),
        ((4000, 10), "center", (416, 32)),
        ((1920, 1080), "stretch", (416, 416)),
        ((1920, 1080), "crop", (416, 416)),
    ],
)
def test_smallest_input(source, mode, expected):
    assert smallest_input(source, (416, 416), 32, mode) == expected


def _filled(options: Preprocess, dtype=np.float32, channels_last=False):
    """A red 4x2 picture with a blue right half, laid into 8x8."""
    red_blue = np.zeros((2, 4, 3), np.uint8)
    red_blue[:, :2, 0] = red_blue[:, 2:, 2] = 255
    preprocessor = Preprocessor(InputSpec("image", np.dtype(dtype), channels_last, 1, (8, 8)), options)
    tensor = preprocessor.tensor(1, (8, 8))
    placement = preprocessor.fill(ArrayFrame(red_blue), tensor[0], (8, 8))
    assert (placement.width, placement.height) == (8, 4)
    return tensor


def test_planar_rgb_from_0_to_1():
    tensor = _filled(Preprocess("center", "rgb", "0-1", 114))
    assert tensor.shape == (1, 3, 8, 8)
    assert tensor[0, :, 0, 0] == pytest.approx([114 / 255] * 3)
    assert tensor[0, :, 3, 0] == pytest.approx([1, 0, 0])
    assert tensor[0, :, 3, 7] == pytest.approx([0, 0, 1])
    assert tensor[0, :, 7, 7] == pytest.approx([114 / 255] * 3)


def test_planar_bgr_from_0_to_255_top_left():
    tensor = _filled(Preprocess("top-left", "bgr", "0-255", 0))
    assert tensor[0, :, 0, 0].tolist() == [0, 0, 255]
    assert tensor[0, :, 0, 7].tolist() == [255, 0, 0]
    assert not tensor[0, :, 4:].any()


def test_channels_last_bytes():
    tensor = _filled(Preprocess("top-left", "rgb", "0-255", 9), np.uint8, channels_last=True)
    assert tensor.dtype == np.uint8
    assert tensor.shape == (1, 8, 8, 3)
    assert tensor[0, 0, 0].tolist() == [255, 0, 0]
    assert tensor[0, 7, 0].tolist() == [9, 9, 9]


def test_half_precision():
    tensor = _filled(Preprocess("top-left", "rgb", "0-1", 255), np.float16)
    assert tensor.dtype == np.float16
    assert tensor[0, :, 0, 0].tolist() == [1, 0, 0]


def test_padding_stays_when_sources_take_turns():
    preprocessor = Preprocessor(InputSpec("image", np.dtype(np.float32), False, 1, (8, 8)), Preprocess(pad=51))
    wide, tall = ArrayFrame(np.full((2, 4, 3), 255, np.uint8)), ArrayFrame(np.full((4, 2, 3), 255, np.uint8))
    tensor = preprocessor.tensor(1, (8, 8))
    for frame in (wide, tall, wide):
        preprocessor.fill(frame, tensor[0], (8, 8))
    assert tensor[0, 0, :, 0] == pytest.approx([0.2, 0.2, 1, 1, 1, 1, 0.2, 0.2])


@pytest.mark.parametrize(
    ("scale", "white", "black"),
    [
        ("0-1", (1, 1, 1), (0, 0, 0)),
        ("0-255", (255, 255, 255), (0, 0, 0)),
        ("-1-1", (1, 1, 1), (-1, -1, -1)),
        ("imagenet", (2.2489, 2.4286, 2.6400), (-2.1179, -2.0357, -1.8044)),
    ],
)
@pytest.mark.parametrize("color", ["rgb", "bgr"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_value_range(scale, white, black, color, channels_last):
    preprocessor = Preprocessor(
        InputSpec("image", np.dtype(np.float32), channels_last, 1, (4, 4)), Preprocess("stretch", color, scale)
    )
    for level, expected in ((255, white), (0, black)):
        slot = preprocessor.tensor(1, (4, 4))[0]
        preprocessor.fill(ArrayFrame(np.full((4, 4, 3), level, np.uint8)), slot, (4, 4))
        pixel = slot[1, 1] if channels_last else slot[:, 1, 1]
        np.testing.assert_allclose(pixel, expected[::-1] if color == "bgr" else expected, atol=1e-4)


def test_what_is_over_is_cut_off_on_both_sides():
    stripes = np.zeros((2, 8, 3), np.uint8)
    stripes[:, 3:5] = 255  # the middle two of eight columns
    preprocessor = Preprocessor(
        InputSpec("image", np.dtype(np.uint8), True, 1, (2, 2)), Preprocess("crop", scale="0-255")
    )
    slot = preprocessor.tensor(1, (2, 2))[0]
    preprocessor.fill(ArrayFrame(stripes), slot, (2, 2))
    assert slot.tolist() == [[[255] * 3] * 2] * 2


@pytest.mark.parametrize("mode", ["center", "top-left", "stretch", "crop"])
def test_many_are_placed_as_each_one_is(mode):
    rng = np.random.default_rng(0)
    sources = np.concatenate([SIZES, rng.integers(1, 2000, (500, 2)), [(5000, 2), (2, 5000), (1, 1)]])
    placed = place_all(sources, (640, 384), mode)
    assert list(placed) == [place((width, height), (640, 384), mode) for width, height in sources.tolist()]


@pytest.mark.parametrize("mode", ["center", "stretch", "crop"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_crops_are_laid_in_together_as_one_by_one(mode, channels_last):
    rng = np.random.default_rng(0)
    frames = [ArrayFrame(rng.integers(0, 256, (90, 120, 3), np.uint8)) for _ in range(2)]
    starts, sizes = rng.integers(0, 40, (7, 2)), rng.integers(2, 50, (7, 2))
    crops = CropBatch(frames, np.array([0, 0, 0, 1, 1, 1, 1]), np.concatenate([starts, starts + sizes], axis=1))
    spec = InputSpec("image", np.dtype(np.float32), channels_last, None, (16, 12))
    preprocessor = Preprocessor(spec, Preprocess(mode, "bgr", "imagenet"))
    together, alone = np.zeros((2, *spec.shape(9, (16, 12))), np.float32)
    placed = preprocessor.fill_all(crops, together, (16, 12))
    assert list(placed) == [preprocessor.fill(crop, slot, (16, 12)) for crop, slot in zip(crops, alone, strict=False)]
    np.testing.assert_array_equal(together, alone)
    assert together[:7].any(axis=(1, 2, 3)).all()
    assert not together[7:].any()


@pytest.mark.parametrize("mode", ["center", "crop"])
def test_the_frame_whose_crop_cannot_be_had_is_named(mode):
    class Broken(ArrayFrame):
        def resized(self, *arguments, **more):
            raise OSError("gone")

    pixels = np.zeros((9, 9, 3), np.uint8)
    crops = CropBatch([ArrayFrame(pixels, 1), Broken(pixels, 2)], np.array([0, 1]), np.array([[0, 0, 4, 4]] * 2))
    preprocessor = Preprocessor(InputSpec("image", np.dtype(np.float32), False, None, (4, 4)), Preprocess(mode))
    with pytest.raises(FrameError, match="OSError: gone") as caught:
        preprocessor.fill_all(crops, preprocessor.tensor(2, (4, 4)), (4, 4))
    assert caught.value.frame.source_id == 2

"""Integers for OpenCV's resampling and colours: the same bytes, whatever the sizes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from elements.portable.color import BT601, BT709, BT2020, ColorSpace
from elements.portable.picture import Picture, plane_shapes

torch = pytest.importorskip("torch", reason="needs PyTorch")

from elements.inference.gpu.resampling import Taps, resample, to_rgb  # noqa: E402

FULL = ColorSpace(BT601.kr, BT601.kb, True)
SIZES = [
    ((1920, 1080), (640, 360)),
    ((960, 540), (416, 416)),
    ((1280, 720), (640, 360)),  # 2:1
    ((640, 360), (640, 360)),
    ((320, 240), (640, 480)),
    ((427, 241), (416, 416)),
    ((427, 241), (427, 241)),
    ((1919, 1079), (640, 360)),
    ((5, 3), (333, 1)),
    ((1, 1), (7, 9)),
]


def noise(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(shape[0]).integers(0, 256, shape, np.uint8)


def random_sizes(count: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    numbers = np.random.default_rng(1).integers(1, 400, (count, 4)).tolist()
    return [((w, h), (across, down)) for w, h, across, down in numbers]


def test_a_plane_is_resampled_as_opencv_does_it() -> None:
    for (width, height), target in SIZES + random_sizes(40):
        plane = noise((height, width))
        expected = cv2.resize(plane, target, interpolation=cv2.INTER_LINEAR)
        taps = Taps.across(width, target[0], width), Taps.down(height, target[1], height)
        np.testing.assert_array_equal(resample(torch.from_numpy(plane), *taps), expected)


def test_taps_of_half_the_size_are_pairs() -> None:
    taps = Taps.across(8, 4, 8)
    assert taps.first.tolist() == [0, 2, 4, 6]
    assert taps.second.tolist() == [1, 3, 5, 7]
    assert set(taps.first_weight.tolist() + taps.second_weight.tolist()) == {1024}
    assert taps.packed[3] == 6 << 32 | 1 << 24 | 1024 << 12 | 1024


def test_taps_repeat_the_edges() -> None:
    taps = Taps.down(2, 8, 2)
    assert taps.first.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert taps.second.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("format", ["I420", "NV12"])
def test_rgb_is_that_of_the_cpu(format: str) -> None:
    spaces = [BT601, BT709, BT2020, FULL]
    for number, (source, target) in enumerate(SIZES + random_sizes(20)):
        color = spaces[number % len(spaces)]
        planes = tuple(noise(shape) for shape in plane_shapes(format, *source))
        picture = Picture(format, planes, color)
        expected = picture.rgb(picture.whole, *target)
        apart = planes if format == "I420" else (planes[0], planes[1][..., 0], planes[1][..., 1])
        ours = to_rgb(tuple(torch.from_numpy(plane) for plane in apart), color.to_rgb_fixed, target)
        np.testing.assert_array_equal(ours, expected, err_msg=f"{source} to {target}")

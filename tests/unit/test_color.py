"""Colour matrices against the numbers of the ITU recommendations."""

import cv2
import numpy as np
import pytest

from elements.portable.color import BT601, BT709, BT2020, ColorSpace

FULL_601 = ColorSpace(0.299, 0.114, full_range=True)


@pytest.mark.parametrize(
    ("space", "rgb", "yuv"),
    [
        (BT601, (255, 0, 0), (81, 90, 240)),
        (BT601, (255, 255, 255), (235, 128, 128)),
        (BT709, (255, 0, 0), (63, 102, 240)),
        (BT709, (0, 255, 0), (173, 42, 26)),
        (BT709, (0, 0, 255), (32, 240, 118)),
        (BT2020, (255, 0, 0), (74, 97, 240)),
        (FULL_601, (0, 255, 0), (150, 44, 21)),
        (FULL_601, (0, 0, 0), (0, 128, 128)),
    ],
)
def test_known_colours(space: ColorSpace, rgb: tuple[int, ...], yuv: tuple[int, ...]) -> None:
    assert np.allclose(space.from_rgb @ (*rgb, 1), yuv, atol=0.6)
    assert np.allclose(space.to_rgb @ (*yuv, 1), rgb, atol=1.7)


@pytest.mark.parametrize("space", [BT601, BT709, BT2020, FULL_601])
def test_opencv_gives_the_colours_of_the_integers(space: ColorSpace) -> None:
    values = np.random.default_rng(0).integers(0, 256, (97, 101, 3), np.uint8)  # rows that fill no vector
    fixed = np.array(space.to_rgb_fixed).reshape(3, 4)
    expected = np.clip((values.astype(int) @ fixed[:, :3].T + fixed[:, 3] + 512) >> 10, 0, 255)
    assert np.array_equal(cv2.transform(values, space.to_rgb), expected)


def test_fixed_colours_are_no_further_than_rounding_takes_them() -> None:
    assert BT601.to_rgb_fixed[:4] == (1192, 0, 1634, 1 - 16 * 1192 - 128 * 1634)  # 1.164, 0, 1.596 of ITU-R BT.601
    assert FULL_601.to_rgb_fixed[:3] == (1024, 0, 1436)  # 1, 0, 1.402


@pytest.mark.parametrize("space", [BT601, BT709, BT2020])
def test_greys_stay_grey(space: ColorSpace) -> None:
    greys = np.array([[[luma, 128, 128] for luma in range(256)]], np.uint8)
    rgb = cv2.transform(greys, space.to_rgb)[0]
    assert (rgb == rgb[:, :1]).all()
    assert rgb[[16, 125, 126, 235], 0].tolist() == [0, 127, 128, 255]

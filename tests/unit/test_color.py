"""Colour matrices against the numbers of the ITU recommendations."""

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

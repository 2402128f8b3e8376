"""Resampling and conversion of planes, against plain NumPy."""

import cv2
import numpy as np
import pytest

from elements.portable.color import BT601, BT709
from elements.portable.picture import CHANNELS, Picture, plane_shapes, sample


def blank(format: str, width: int, height: int, color=BT709) -> Picture:
    half = ((height + 1) // 2, (width + 1) // 2)
    shapes = {"I420": ((height, width), half, half), "NV12": ((height, width), (*half, 2))}
    channels = CHANNELS.get(format, 1)
    packed = ((height, width),) if channels == 1 else ((height, width, channels),)
    return Picture(format, tuple(np.zeros(s, np.uint8) for s in shapes.get(format, packed)), color)


@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "BGR", "RGBA", "RGBx", "BGRA", "BGRx"])
@pytest.mark.parametrize("size", [(64, 48), (33, 17)])
def test_rgb_survives_each_format(format: str, size: tuple[int, int]) -> None:
    width, height = size
    rgb = np.zeros((height, width, 3), np.uint8)
    rgb[:, : width // 2], rgb[:, width // 2 :] = (200, 30, 60), (20, 90, 220)
    picture = blank(format, width, height)
    picture.write_rgb(rgb)
    back = picture.rgb(picture.whole, width, height)
    error = np.abs(back.astype(int) - rgb)
    error[:, width // 2 - 2 : width // 2 + 2] = 0  # chroma has half the resolution: the edge itself is soft
    assert error.max() <= (3 if format in ("I420", "NV12") else 0)


def test_grey_is_the_luma() -> None:
    picture = blank("GRAY8", 4, 4)
    picture.planes[0][:] = 77
    assert (picture.rgb(picture.whole, 4, 4) == 77).all()


def test_the_colour_space_decides() -> None:
    hd, sd = blank("I420", 8, 8, BT709), blank("I420", 8, 8, BT601)
    for picture in (hd, sd):
        for plane, value in zip(picture.planes, (63, 102, 240), strict=True):  # red in BT.709
            plane[:] = value
    assert np.allclose(hd.rgb(hd.whole, 8, 8)[4, 4], (255, 0, 0), atol=2)
    assert np.allclose(sd.rgb(sd.whole, 8, 8)[4, 4], (234, 0, 4), atol=2)  # the wrong matrix is visible


def test_sample_has_pixel_centre_geometry() -> None:
    ramp = np.tile(np.arange(0, 200, dtype=np.uint8), (16, 1))
    # a target pixel of the half-size picture lies between two source pixels
    assert np.allclose(sample(ramp, (0, 0, 200, 16), 100, 8)[0], np.arange(100) * 2 + 0.5, atol=0.51)
    # a region that begins between pixels
    assert np.allclose(sample(ramp, (10.5, 0, 110.5, 16), 100, 16)[0], np.arange(100) + 10.5, atol=0.51)
    # both ways agree
    assert np.allclose(
        sample(ramp, (20, 0, 120, 16), 50, 8)[0, 1:-1].astype(int),
        sample(ramp, (20.002, 0, 120.002, 16), 50, 8)[0, 1:-1].astype(int),
        atol=1,
    )


@pytest.mark.parametrize("size", [(5, 3), (10, 6), (8, 8), (33, 20)])
def test_both_layouts_give_the_same(size: tuple[int, int]) -> None:
    planes = [
        np.random.default_rng(i).integers(0, 256, shape, np.uint8)
        for i, shape in enumerate(plane_shapes("I420", *size))
    ]
    planar = Picture("I420", tuple(planes))
    paired = Picture("NV12", (planes[0], np.stack(planes[1:], -1)))
    for target in ((5, 3), (4, 4), (17, 10), (40, 40)):
        assert np.array_equal(planar.rgb(planar.whole, *target), paired.rgb(paired.whole, *target))


def test_the_last_chroma_sample_of_an_odd_picture_stands_for_one_column() -> None:
    luma, cb, cr = (np.full(shape, 128, np.uint8) for shape in plane_shapes("I420", 3, 1))
    cr[0, 1] = 192
    red = Picture("I420", (luma, cb, cr)).rgb((0, 0, 3, 1), 3, 1)[0, :, 0]
    # chroma samples lie at 1 and 3, the pixels' centres at 0.5, 1.5 and 2.5: Cr is 128, 144 and 176
    assert red.tolist() == [130, 159, 216]


def test_out_may_be_a_view_and_must_fit() -> None:
    picture = blank("NV12", 32, 32)
    picture.write_rgb(np.full((32, 32, 3), (10, 200, 30), np.uint8))
    canvas = np.zeros((40, 60, 3), np.uint8)
    view = canvas[8:24, 20:36]
    assert picture.rgb(picture.whole, 16, 16, view) is view
    assert np.allclose(canvas[10, 25], (10, 200, 30), atol=2)
    assert not canvas[:8].any()
    assert not canvas[:, 36:].any()
    with pytest.raises(ValueError, match="out must be"):
        picture.rgb(picture.whole, 16, 16, np.zeros((4, 4, 3), np.uint8))


@pytest.mark.parametrize("source_format", ["I420", "NV12"])
@pytest.mark.parametrize("format", ["I420", "NV12"])
def test_planes_go_from_one_layout_to_the_other(source_format: str, format: str) -> None:
    rgb = cv2.resize(np.random.default_rng(1).integers(0, 255, (4, 5, 3), np.uint8), (33, 17))
    source = blank(source_format, 33, 17)
    source.write_rgb(rgb)
    target = blank(format, 33, 17)
    target.write_planes(source, source.whole, 0, 0, 33, 17)
    assert (target.planes[0] == source.planes[0]).all()
    difference = np.abs(target.rgb(target.whole, 33, 17).astype(int) - source.rgb(source.whole, 33, 17))
    assert difference.max() <= 3  # OpenCV rounds one and two channels differently


def test_planes_in_a_part_leave_the_rest_black() -> None:
    source, target = blank("I420", 16, 16), blank("NV12", 32, 16)
    source.write_rgb(np.full((16, 16, 3), 180, np.uint8))
    target.write_planes(source, source.whole, 8, 0, 16, 16)
    rgb = target.rgb(target.whole, 32, 16)
    assert np.allclose(rgb[:, 8:24], 180, atol=2)
    assert rgb[:, :8].max() <= 2
    assert rgb[:, 24:].max() <= 2


@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "BGRx"])
def test_many_regions_are_sampled_as_each_one_is(format: str) -> None:
    picture = blank(format, 62, 48)
    picture.write_rgb(np.random.default_rng(0).integers(0, 256, (48, 62, 3), np.uint8))
    regions = np.array([(0, 0, 62, 48), (2, 4, 34, 30), (3, 5, 20, 40), (1.25, 2.5, 40.75, 31), (10, 8, 26, 20)], float)
    together = np.zeros((5, 12, 16, 3), np.uint8)
    picture.rgb_parts(regions, together)
    for region, part in zip(regions.tolist(), together, strict=True):
        np.testing.assert_array_equal(part, picture.rgb(tuple(region), 16, 12))

"""Parts of frames as frames."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elements.inference.crops import CropBatch, CropFrame, crop_region, crop_regions, moved, scaled_regions
from elements.inference.frame import ArrayFrame
from elements.metadata.detections import Detections


def gradient(width=64, height=48):
    """Red is the column, green the row."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[..., 0] = np.arange(width)
    picture[..., 1] = np.arange(height)[:, None]
    return picture


def test_a_crop_shows_its_part_and_knows_its_frame() -> None:
    crop = CropFrame(ArrayFrame(gradient(), 3, 8, 99, "door", 5), (10, 20, 30, 28))
    assert (crop.width, crop.height, crop.source_id, crop.frame_number, crop.pts) == (20, 8, 3, 8, 99)
    assert (crop.source, crop.utc_ns, crop.tensor) == ("door", 5, None)
    np.testing.assert_array_equal(crop.resized(20, 8), gradient()[20:28, 10:30])
    np.testing.assert_array_equal(crop.resized(5, 4, region=(5, 2, 10, 6)), gradient()[22:26, 15:20])


def test_answers_are_moved_to_the_frame() -> None:
    found = Detections(
        np.array([[1, 2, 5, 6]]), np.ones(1), np.zeros(1),
        masks=[np.ones((4, 4), bool)], keypoints=np.array([[[2, 3, 0.5]]], np.float32),
    )  # fmt: skip
    in_frame = moved(found, (10, 20))
    assert in_frame.boxes.tolist() == [[11, 22, 15, 26]]
    assert in_frame.keypoints.tolist() == [[[12, 23, 0.5]]]
    assert in_frame.masks[0].shape == (4, 4)
    assert found.boxes.tolist() == [[1, 2, 5, 6]]


@pytest.mark.parametrize(
    ("box", "region"),
    [
        ((1.2, 2.7, 9.1, 9.9), (1, 2, 10, 10)),
        ((-5, -5, 3, 3), (0, 0, 3, 3)),
        ((60, 40, 90, 90), (60, 40, 64, 48)),
        ((70, 10, 90, 20), (64, 10, 64, 20)),
    ],
)
def test_regions_are_whole_pixels_inside_the_picture(box, region) -> None:
    assert crop_region(box, 64, 48) == region
    assert crop_regions(np.array([box, box]), np.array([64, 48])).tolist() == [list(region)] * 2


def test_regions_scale_to_at_least_a_pixel() -> None:
    part, corner = np.array([[10, 20, 30, 28]]), np.array([[63, 47, 64, 48]])
    assert scaled_regions(part, (64, 48), (128, 24)).tolist() == [[20, 10, 60, 14]]
    assert scaled_regions(corner, (64, 48), (8, 6)).tolist() == [[7, 5, 8, 6]]


def test_a_crop_of_a_tensor_is_a_part_of_it() -> None:
    class OnDevice(ArrayFrame):
        tensor = gradient(128, 96)  # twice the size

    crop = CropFrame(OnDevice(gradient()), (10, 20, 30, 28))
    assert crop.tensor.shape == (16, 40, 3)
    assert crop.tensor.base is not None
    assert math.isclose(crop.tensor[0, 0, 0], 20)


def test_crops_of_a_batch_are_frames_in_arrays() -> None:
    """Two crops of the first frame, none of the second, one of the third."""
    frames = [ArrayFrame(gradient(), source, 8) for source in (3, 4, 5)]
    regions = np.array([[10, 20, 30, 28], [0, 0, 6, 4], [1, 2, 5, 10]])
    crops = CropBatch(frames, np.array([0, 0, 2]), regions)
    assert (len(crops), crops.source_ids, crops.sizes.tolist()) == (3, [3, 3, 5], [[20, 8], [6, 4], [4, 8]])
    assert [(crop.source_id, crop.region, crop.width) for crop in crops] == [
        (3, (10, 20, 30, 28), 20), (3, (0, 0, 6, 4), 6), (5, (1, 2, 5, 10), 4),
    ]  # fmt: skip
    assert [(frame.source_id, part) for frame, part in crops.by_frame()] == [(3, slice(0, 2)), (5, slice(2, 3))]
    assert [crop.source_id for crop in crops.take([1, 2])] == [3, 5]
    assert [crop.region for crop in crops[1:]] == [(0, 0, 6, 4), (1, 2, 5, 10)]

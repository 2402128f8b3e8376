"""Corners and overlap of rotated boxes, against numbers worked out by hand and against OpenCV."""

import math

import cv2
import numpy as np
import pytest

from elements.metadata.rotated import bounds, corners, rotated_iou


def test_corners_turn_clockwise_on_the_screen():
    """A quarter turn takes the top left corner to the top right."""
    turned = corners([[0, 0, 4, 2]], [math.pi / 2])[0]
    np.testing.assert_allclose(turned, [[3, -1], [3, 3], [1, 3], [1, -1]], atol=1e-12)
    np.testing.assert_allclose(bounds([[0, 0, 4, 2]], [math.pi / 2]), [[1, -1, 3, 3]], atol=1e-12)
    np.testing.assert_allclose(bounds([[-1, -1, 1, 1]], [math.pi / 4]), [np.array([-1, -1, 1, 1]) * 2**0.5])


@pytest.mark.parametrize(
    ("a", "angle_a", "b", "angle_b", "expected"),
    [
        ([0, 0, 4, 2], 0.0, [0, 0, 4, 2], 0.0, 1),
        ([0, 0, 4, 2], 0.3, [0, 0, 4, 2], 0.3, 1),
        ([0, 0, 4, 2], 0.3, [0, 0, 4, 2], 0.3 + math.pi, 1),
        ([0, 0, 4, 2], 0.0, [2, 0, 6, 2], 0.0, 4 / 12),
        ([0, 0, 4, 2], 0.0, [0, 0, 4, 2], math.pi / 2, 4 / 12),  # a cross of two 4 x 2
        ([-1, -1, 1, 1], 0.0, [-1, -1, 1, 1], math.pi / 4, 2**-0.5),  # a regular octagon
        ([0, 0, 10, 10], 0.0, [4, 4, 6, 6], 0.7, 4 / 100),  # one within the other
        ([4, 4, 6, 6], 0.7, [0, 0, 10, 10], 0.0, 4 / 100),
        ([0, 0, 2, 2], 0.0, [2, 0, 4, 2], 0.0, 0),  # a shared edge
        ([0, 0, 2, 2], 0.0, [50, 50, 60, 60], 0.4, 0),
        ([0, 0, 10, 10], 0.0, [-5, -5, 5, 5], math.pi / 4, 25 / 175),  # a quarter of a turned square about a corner
        ([3, 3, 3, 3], 0.0, [0, 0, 10, 10], 0.0, 0),  # without area
    ],
)
def test_iou(a, angle_a, b, angle_b, expected):
    assert rotated_iou([a], [angle_a], [b], [angle_b])[0, 0] == pytest.approx(expected, abs=1e-9)


def test_iou_is_that_of_opencv():
    random = np.random.default_rng(3)
    center, size = random.uniform(0, 40, (40, 2)), random.uniform(2, 30, (40, 2))
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=1)
    angles = random.uniform(-4, 4, 40)
    ours = rotated_iou(boxes[:15], angles[:15], boxes[15:], angles[15:])
    assert ours.shape == (15, 25)
    assert (ours > 0).sum() > 100
    shapes = [(tuple(c), tuple(s), math.degrees(a)) for c, s, a in zip(center, size, angles, strict=True)]
    for i in range(15):
        for j in range(25):
            _, points = cv2.rotatedRectangleIntersection(shapes[i], shapes[15 + j])
            shared = 0.0 if points is None else cv2.contourArea(cv2.convexHull(points))
            union = size[i].prod() + size[15 + j].prod() - shared
            assert ours[i, j] == pytest.approx(shared / union, abs=2e-3)


def test_no_boxes():
    assert rotated_iou(np.empty((0, 4)), np.empty(0), [[0, 0, 1, 1]], [0]).shape == (0, 1)
    assert corners(np.empty((0, 4)), np.empty(0)).shape == (0, 4, 2)

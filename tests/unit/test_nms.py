"""Suppression against a naive reference written straight from the definition."""

import numpy as np
import pytest

from elements.inference.nms import nms, probabilistic_iou, rotated_nms


def naive(boxes, scores, class_ids, iou):
    def overlap(a, b):
        width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
        height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
        common = width * height
        return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)

    kept = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if all(class_ids[i] != class_ids[k] or overlap(boxes[i], boxes[k]) <= iou for k in kept):
            kept.append(i)
    return kept


@pytest.mark.parametrize("seed", range(20))
def test_same_as_the_naive_way(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 120))
    corner = random.random((count, 2)) * 200
    boxes = np.concatenate([corner, corner + 5 + random.random((count, 2)) * 80], axis=1).astype(np.float32)
    scores = random.random(count).astype(np.float32)
    class_ids = random.integers(0, 3, count)
    assert nms(boxes, scores, class_ids, 0.4).tolist() == naive(boxes.astype(float), scores, class_ids, 0.4)


def test_equal_scores_keep_their_order():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 10], [50, 50, 60, 60]], np.float32)
    assert nms(boxes, np.full(3, 0.5, np.float32), np.zeros(3, np.int64), 0.5).tolist() == [0, 2]


def test_other_class_stays():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 10]], np.float32)
    assert nms(boxes, np.array([0.5, 0.9], np.float32), np.array([0, 1]), 0.5).tolist() == [1, 0]


def test_classes_stay_apart_left_of_the_picture():
    """OpenCV moves class 1 by 320 + 1, which would put its box onto that of class 0."""
    boxes = np.array([[261, 261, 281, 281], [-60, -60, -40, -40], [310, 310, 320, 320]], np.float32)
    assert nms(boxes, np.array([0.9, 0.8, 0.7], np.float32), np.array([0, 1, 0]), 0.5).tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_compare(count):
    boxes = np.ones((count, 4), np.float32)
    assert nms(boxes, np.ones(count, np.float32), np.zeros(count, np.int64), 0.5).tolist() == list(range(count))


def boxes_at(*centers, width=40.0, height=10.0):
    center, half = np.array(centers, np.float32), np.array([width, height], np.float32) / 2
    return np.concatenate([center - half, center + half], axis=1)


@pytest.mark.parametrize(
    ("shift", "turn", "expected"),
    [
        ((0, 0), 0, 1),
        ((0, 0), np.pi, 1),
        # Variances 400/3 and 25/3. One width apart: B = 1600 / (4 * 800/3) = 1.5, overlap 1 - sqrt(1 - exp(-1.5)).
        ((40, 0), 0, 1 - (1 - np.exp(-1.5)) ** 0.5),
        # A quarter turn: exp(-B) = sqrt(400/3 * 25/3) / ((400/3 + 25/3) / 2).
        ((0, 0), np.pi / 2, 1 - (1 - (10000 / 9) ** 0.5 / (425 / 6)) ** 0.5),
    ],
)
def test_probabilistic_iou(shift, turn, expected):
    one, other = boxes_at((100, 100)), boxes_at((100 + shift[0], 100 + shift[1]))
    got = probabilistic_iou(one, np.zeros(1, np.float32), other, np.array([turn], np.float32))
    assert got[0, 0] == pytest.approx(expected, abs=1e-6)


def test_probabilistic_iou_does_not_change_with_the_direction_of_both():
    for angle in (0.0, 0.4, 1.3, -2.0):
        along = 12 * np.array([np.cos(angle), np.sin(angle)])
        one, other = boxes_at((50, 50)), boxes_at((50 + along[0], 50 + along[1]))
        got = probabilistic_iou(one, np.array([angle], np.float32), other, np.array([angle], np.float32))
        assert got[0, 0] == pytest.approx(1 - (1 - np.exp(-(12**2) / (8 * 400 / 3))) ** 0.5, abs=1e-5)


def test_rotated_boxes_are_suppressed_by_their_own_outline():
    """A cross stays, what lies on top of each other goes, another class stays."""
    boxes = boxes_at((100, 100), (100, 100), (102, 100), (100, 100))
    angles = np.array([0, np.pi / 2, 0.05, 0], np.float32)
    scores, classes = np.array([0.8, 0.9, 0.7, 0.6], np.float32), np.array([0, 0, 0, 1])
    assert rotated_nms(boxes, angles, scores, classes, 0.45).tolist() == [1, 0, 3]
    assert rotated_nms(boxes[:0], angles[:0], scores[:0], classes[:0], 0.45).tolist() == []


def test_boxes_without_area_are_no_error():
    flat = np.array([[5, 5, 5, 5], [5, 5, 5, 5]], np.float32)
    kept = rotated_nms(flat, np.zeros(2, np.float32), np.array([0.5, 0.4]), np.zeros(2, np.int64), 0.5)
    assert kept.tolist() == [0]


def test_many_rotated_boxes_as_the_naive_way():
    random = np.random.default_rng(1)
    center, size = random.uniform(0, 400, (700, 2)), random.uniform(10, 60, (700, 2))
    boxes = np.concatenate([center - size / 2, center + size / 2], axis=1).astype(np.float32)
    angles, scores = random.uniform(-3, 3, 700).astype(np.float32), random.random(700)
    classes = random.integers(0, 2, 700)
    overlap = probabilistic_iou(boxes, angles, boxes, angles)
    kept = []
    for row in np.argsort(-scores):
        if all(overlap[row, k] <= 0.4 or classes[row] != classes[k] for k in kept):
            kept.append(row)
    assert 50 < len(kept) < 650
    assert rotated_nms(boxes, angles, scores, classes, 0.4).tolist() == kept

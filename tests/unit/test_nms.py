"""Suppression against a naive reference written straight from the definition."""

import numpy as np
import pytest

from elements.inference.nms import nms


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


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_compare(count):
    boxes = np.ones((count, 4), np.float32)
    assert nms(boxes, np.ones(count, np.float32), np.zeros(count, np.int64), 0.5).tolist() == list(range(count))

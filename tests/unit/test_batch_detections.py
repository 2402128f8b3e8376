"""Detections of many pictures in one set of arrays."""

from __future__ import annotations

import re

import numpy as np
import pytest

from elements.inference.answer import checked_answer
from elements.metadata.batch_detections import BatchDetections, best_of, counts_of
from elements.metadata.detections import Detections


def rows(*class_ids, scores=None, **more):
    boxes = np.array([[0, 0, number + 1, 5] for number in class_ids]).reshape(-1, 4)
    return Detections(boxes, np.ones(len(class_ids)) if scores is None else scores, np.array(class_ids), **more)


def test_each_picture_has_its_rows() -> None:
    batch = BatchDetections(rows(7, 8, 9), np.array([1, 0, 2]))
    assert [one.class_ids.tolist() for one in batch] == [[7], [], [8, 9]]
    assert batch[-1].boxes.tolist() == [[0, 0, 9, 5], [0, 0, 10, 5]]
    assert [one.class_ids.tolist() for one in batch[1:]] == [[], [8, 9]]
    assert (len(batch), counts_of(batch), counts_of(list(batch))) == (3, [1, 0, 2], [1, 0, 2])
    with pytest.raises(IndexError):
        batch[3]


@pytest.mark.parametrize("counts", [[1, 1], [2, 2], [-1, 4]])
def test_counts_must_add_up_to_the_rows(counts) -> None:
    """Else objects would be lost, or be another picture's."""
    with pytest.raises(ValueError, match=re.escape(f"counts are for {counts} objects, rows has 3")):
        BatchDetections(rows(7, 8, 9), np.array(counts))


def test_batches_are_joined_in_order() -> None:
    vectors = [np.full((count, 2), count, np.float32) for count in (2, 1)]
    first = BatchDetections(rows(1, 2, embeddings=vectors[0]), np.array([1, 1]))
    second = BatchDetections(rows(3, embeddings=vectors[1]), np.array([0, 1]))
    joined = BatchDetections.joined([first, second])
    assert [one.class_ids.tolist() for one in joined] == [[1], [2], [], [3]]
    assert joined.rows.embeddings.tolist() == [[2, 2], [2, 2], [1, 1]]


@pytest.mark.parametrize("counts", [[1, 0, 1, 1], [2, 0, 0, 1]])
def test_the_best_of_each_picture(counts) -> None:
    batch = BatchDetections(rows(4, 5, 6, scores=[0.25, 0.5, 0.75]), np.array(counts))
    told = {(1, 0, 1, 1): [(4, 0.25), None, (5, 0.5), (6, 0.75)], (2, 0, 0, 1): [(5, 0.5), None, None, (6, 0.75)]}
    assert best_of(batch) == best_of(list(batch)) == told[tuple(counts)]


def test_an_answer_in_arrays_is_checked_as_a_list_is() -> None:
    counts = np.array([1, 1, 1])
    whole = BatchDetections(rows(1, 2, 3), counts)
    assert checked_answer(whole, 3, "m") == (whole, 0)
    found, broken = checked_answer(BatchDetections(rows(1, 2, 3, scores=[1, np.nan, 1]), counts), 3, "m")
    assert ([one.class_ids.tolist() for one in found], broken) == ([[1], [], [3]], 1)
    with pytest.raises(ValueError, match="class_ids below 0: -2"):
        checked_answer(BatchDetections(rows(1, -2, 3), counts), 3, "m")
    with pytest.raises(TypeError, match=r"one Detections per frame \(4\), not BatchDetections"):
        checked_answer(whole, 4, "m")
    whole.rows.boxes[1, 2:] = 0
    found, broken = checked_answer(whole, 3, "m")
    assert ([one.class_ids.tolist() for one in found], broken) == ([[1], [], [3]], 0)

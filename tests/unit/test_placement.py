from __future__ import annotations

import numpy as np
import pytest

from elements.metadata.detections import Detections
from elements.metadata.placement import Placement


def test_padding_keeps_the_aspect_and_centres_on_even_pixels():
    place = Placement.padded((720, 1280), (1920, 1080))
    assert (place.left, place.top, place.width, place.height) == (656, 0, 608, 1080)


def test_stretching_fills_the_frame():
    place = Placement.stretched((720, 1280), (1920, 1080))
    assert (place.left, place.top, place.width, place.height) == (0, 0, 1920, 1080)


@pytest.mark.parametrize("source", [(1920, 1080), (720, 1280), (998, 483), (641, 359), (427, 241)])
@pytest.mark.parametrize("padding", [True, False])
def test_there_and_back_gives_the_same_boxes(source, padding):
    place = Placement.of(source, (1280, 720), padding)
    boxes = np.array([[0, 0, *source], [10.5, 20.25, 300, 200]], np.float32)
    assert place.to_source(place.to_mux(boxes)) == pytest.approx(boxes, abs=1e-3)


def test_a_row_too_few_is_refused():
    with pytest.raises(ValueError, match=r"Detections.scores has 1 rows, boxes has 2"):
        Detections(np.zeros((2, 4)), np.zeros(1), np.zeros(2))


def test_rows_are_picked_from_every_array():
    found = Detections(np.arange(12).reshape(3, 4), [0.1, 0.2, 0.3], [4, 5, 6], attributes=[{"n": i} for i in range(3)])
    picked = found[np.array([True, False, True])]
    assert picked.class_ids.tolist() == [4, 6]
    assert picked.attributes == [{"n": 0}, {"n": 2}]


def test_clipping_cuts_and_drops_nothing():
    found = Detections([[-5, -5, 20, 20], [90, 90, 130, 130]], [0.5, 0.5], [0, 0]).clipped(100, 100)
    assert found.boxes.tolist() == [[0, 0, 20, 20], [90, 90, 100, 100]]

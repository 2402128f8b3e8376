"""Pictures with one soft-edged rectangle per class, and where those lie."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.inference.frame import ArrayFrame
from elements.metadata.detections import Detections, mask_windows

NAMES = ("red", "green", "blue")
SCORE = 0.9
SIZES = [(1920, 1080), (720, 1280), (998, 483), (641, 359)]
COLORS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


def picture(
    width: int, height: int, boxes: Mapping[int, tuple[float, float, float, float]], soft: float = 0.0, grey: int = 40
) -> NDArray[np.uint8]:
    """(height, width, 3) RGB with one rectangle per class number, ``x1, y1, x2, y2`` in pixels (fractions are drawn).

    ``soft`` is the standard deviation in pixels of the blur of the edges; the edges stay where they are.
    """
    sharp = np.full((height, width, 3), grey, np.float32)
    for class_id, box in boxes.items():
        rows, columns = _around(box, 1, width, height)
        cover = _overlap(rows, box[1], box[3])[:, None, None] * _overlap(columns, box[0], box[2])[None, :, None]
        part = sharp[rows, columns]
        part += (np.array(COLORS[class_id], np.float32) - part) * cover
    image = np.full((height, width, 3), grey, np.uint8)
    reach = int(4 * soft) + 2  # of the blur
    for box in boxes.values():  # the rest is grey all over
        rows, columns = _around(box, reach, width, height)
        wide_rows, wide_columns = _around(box, 2 * reach, width, height)
        part = sharp[wide_rows, wide_columns]
        if soft and part.size:
            part = cv2.GaussianBlur(part, (0, 0), soft, borderType=cv2.BORDER_REPLICATE)
        part = part[rows.start - wide_rows.start :, columns.start - wide_columns.start :]
        image[rows, columns] = np.round(part[: rows.stop - rows.start, : columns.stop - columns.start])
    return image


def _around(box: tuple[float, float, float, float], margin: int, width: int, height: int) -> tuple[slice, slice]:
    """Rows and columns of the picture that a box with a margin covers."""
    x1, y1, x2, y2 = box

    def covered(start: float, stop: float, size: int) -> slice:
        first, last = (min(max(edge, 0), size) for edge in (int(np.floor(start)) - margin, int(np.ceil(stop)) + margin))
        return slice(first, max(first, last))

    return covered(y1, y2, height), covered(x1, x2, width)


def _overlap(pixels: slice, start: float, stop: float) -> NDArray[np.float64]:
    """How much of each pixel lies between ``start`` and ``stop``, 0 to 1."""
    edges = np.arange(pixels.start, pixels.stop)
    return np.asarray(np.clip(np.minimum(edges + 1, stop) - np.maximum(edges, start), 0, 1), np.float64)


def boxes_in(width: int, height: int) -> dict[int, tuple[float, float, float, float]]:
    """One box per class: inside, with fractions, and cut by the right and bottom border."""
    return {
        0: (0.1 * width, 0.2 * height, 0.3 * width, 0.6 * height),
        1: (0.4 * width + 0.5, 0.1 * height + 0.25, 0.6 * width, 0.5 * height),
        2: (0.7 * width, 0.6 * height, width, height),
    }


@functools.cache
def frame_of(width: int, height: int) -> ArrayFrame:
    """A frame with `boxes_in` drawn."""
    return ArrayFrame(picture(width, height, boxes_in(width, height), soft=3))


def assert_finds(
    detections: Detections, width: int, height: int, tolerance: float = 1.0, score_tolerance: float = 1e-3
) -> None:
    """The boxes of `boxes_in` were found, within ``tolerance`` pixels."""
    order = np.argsort(detections.class_ids)
    assert detections.class_ids[order].tolist() == [0, 1, 2]
    np.testing.assert_allclose(detections.scores, SCORE, atol=score_tolerance)
    truth = np.array(list(boxes_in(width, height).values()))
    np.testing.assert_allclose(detections.boxes[order], truth, atol=tolerance)


@functools.cache
def ellipses(width: int, height: int) -> tuple[ArrayFrame, list[NDArray[np.bool_]]]:
    """A frame with an ellipse in each of `boxes_in`, and the pixels (height, width) of each."""
    image = np.full((height, width, 3), 40, np.float32)
    y, x = np.mgrid[:height, :width] + 0.5
    masks = []
    for color, (x1, y1, x2, y2) in zip(COLORS, boxes_in(width, height).values(), strict=True):
        radius = np.hypot((x - (x1 + x2) / 2) / (x2 - x1), (y - (y1 + y2) / 2) / (y2 - y1)) * 2
        cover = np.clip((1 - radius) * min(x2 - x1, y2 - y1) / 2 + 0.5, 0, 1)[..., None]
        image = image * (1 - cover) + np.array(color, np.float32) * cover
        masks.append(radius <= 1)
    return ArrayFrame(np.round(image).astype(np.uint8)), masks


def assert_finds_ellipses(detections: Detections, width: int, height: int) -> None:
    """The ellipses were found, with masks that overlap them by at least 0.95."""
    order = np.argsort(detections.class_ids)
    found = detections[order]
    assert found.class_ids.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.boxes, list(boxes_in(width, height).values()), atol=1.5)
    assert found.masks is not None
    windows = mask_windows(found.boxes, None, width, height)
    assert [mask.shape for mask in found.masks] == [(y2 - y1, x2 - x1) for x1, y1, x2, y2 in windows.tolist()]
    for ours, wanted in zip(found.full_masks(width, height), ellipses(width, height)[1], strict=True):
        assert (ours & wanted).sum() / (ours | wanted).sum() >= 0.95

"""A model of one's own that gives everything an object can have: ``tests.rich_model:Rich``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elements.inference.frame import Frame
from elements.metadata.detections import Detections
from tests.clips import drifting
from tests.own_models import Good

ANGLE = 0.4


def ellipse(width: int, height: int, box: Sequence[float]) -> np.ndarray:
    """(height, width) bool: the upright ellipse in a box."""
    x1, y1, x2, y2 = box
    rows, columns = np.mgrid[:height, :width] + 0.5
    across, down = (2 * columns - x1 - x2) / (x2 - x1), (2 * rows - y1 - y2) / (y2 - y1)
    return np.asarray(across**2 + down**2 < 1)


def points_of(box: Sequence[float]) -> np.ndarray:
    """(17, 3): the box's centre is the nose, its upper corners are the shoulders; the rest is not seen."""
    x1, y1, x2, y2 = box
    points = np.zeros((17, 3), np.float32)
    points[0], points[5], points[6] = ((x1 + x2) / 2, (y1 + y2) / 2, 0.9), (x1, y1, 0.8), (x2, y1, 0.7)
    return points


def truth_of(width: int, height: int, number: int) -> Detections:
    """The first object of `tests.clips.drifting`, upright, and the second, turned."""
    boxes = [*drifting(width, height)(number).values()]
    return Detections(
        np.array(boxes),
        np.array([0.9, 0.8]),
        np.array([0, 1]),
        angles=np.array([0, ANGLE], np.float32),
        masks=np.stack([ellipse(width, height, box) for box in boxes]),
        keypoints=np.stack([points_of(box) for box in boxes]),
        embeddings=np.array([[0.6, 0.8], [1, 0]], np.float32),
        attributes=[{"colour": "red"}, {"kind": {"label": "van", "class_id": 2, "probability": 0.5}}],
    )


class Rich(Good):
    """Says what `truth_of` says."""

    names = ("red thing", "green thing")

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        return [truth_of(frame.width, frame.height, frame.frame_number) for frame in frames]


def turned(box: Sequence[float], point: tuple[float, float]) -> tuple[float, float]:
    """Where a point of an upright box goes when the box turns by `ANGLE`."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    dx, dy = point[0] - x, point[1] - y
    return x + dx * math.cos(ANGLE) - dy * math.sin(ANGLE), y + dx * math.sin(ANGLE) + dy * math.cos(ANGLE)

"""Targets of a source, one row each, and the Kalman filters that say where they are: all of them in one go.

A turned box is ``x1, y1, x2, y2, angle``: the unrotated rectangle and the angle in radians by which it is turned
clockwise (on the screen) about its centre. Each of the five has a constant-velocity filter of its own, as none is
measured or moved by another: a place, a speed, and the 2x2 covariance of both, in plain arithmetic over columns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elements.metadata.rotated import same_outline

ANGLE = 4  # column of a turned box

# The rate for which the noise below is read: a step is 1/10 s. At 10/s the speed estimate is smooth enough to carry an
# occluded person; at 30/s the noise of the detector's boxes dominates it, most of all at low frame rates.
RATE = 10.0

_ANGLE_VARIANCE = math.radians(3) ** 2  # of one detection
_START_VARIANCE = np.array([1, 1, 1, 1, _ANGLE_VARIANCE])
_START_SPEED_VARIANCE = np.array([1, 1, 1, 1, 0.25])  # half a radian per step
_DETECTION_VARIANCE = np.array([0.1, 0.1, 0.1, 0.1, _ANGLE_VARIANCE])  # pixels², as in the ``trackers`` library
_STEP_VARIANCE = np.array([0.01, 0.01, 0.01, 0.01, 0.001])  # of place and of speed, after one step
_NOMINAL_STEP = 0.04  # steps as near as this to 1 count as 1: timestamps are rounded

TARGET = np.dtype(
    [
        ("box", np.float64, 5),  # where it is, filtered; the angle is continuous over any number of turns
        ("speed", np.float64, 5),  # per step
        ("variance", np.float64, 5),  # of the box
        ("covariance", np.float64, 5),  # of box and speed
        ("speed_variance", np.float64, 5),
        ("measured", np.float64, 5),  # the last detection, its sides and angle named as the target's are
        ("turns", np.bool_),  # whether a detection of it had an angle
        ("id", np.int64),  # 0 until it is first reported
        ("class_id", np.int64),
        ("confirmed", np.bool_),  # for good
        ("hits", np.int64),  # detections in a row
        ("misses", np.int64),  # inferred frames in a row without a detection
        ("unseen_s", np.float64),  # stream time since the last detection
        ("age", np.int64),  # inferred frames
        ("row", np.int64),  # of its detection on the last inferred frame; -1 without one
    ]
)
Targets = NDArray[np.void]


def no_targets() -> Targets:
    """An empty (0,) array of `TARGET`."""
    return np.zeros(0, TARGET)


def new_targets(boxes: NDArray[np.float64], class_ids: NDArray[np.int64], rows: NDArray[np.int64]) -> Targets:
    """(N,) tentative targets that start at the detections ``boxes`` (N, 5), which are ``rows`` (N,) of the frame."""
    targets = np.zeros(len(boxes), TARGET)
    targets["box"] = targets["measured"] = boxes
    targets["variance"], targets["speed_variance"] = _START_VARIANCE, _START_SPEED_VARIANCE
    targets["turns"] = boxes[:, ANGLE] != 0
    targets["class_id"], targets["row"], targets["hits"] = class_ids, rows, 1
    return targets


def move(targets: Targets, step: float) -> None:
    """Predict where the targets are after ``step`` (1 is 1/`RATE` seconds), in place."""
    of_place, of_both, of_speed = _process_noise(step)
    covariance, speed_variance = targets["covariance"], targets["speed_variance"]
    targets["box"] += step * targets["speed"]
    targets["variance"] += step * (2 * covariance + step * speed_variance) + of_place
    covariance += step * speed_variance + of_both
    speed_variance += of_speed


def correct(targets: Targets, rows: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
    """Take the detections ``boxes`` (N, 5) of the targets ``rows`` (N,) into account, in place.

    A box that turns has many names (see `same_outline`): it is read by the one that continues the target's.
    """
    box, variance, covariance = targets["box"][rows], targets["variance"][rows], targets["covariance"][rows]
    turns = targets["turns"][rows] | (boxes[:, ANGLE] != 0)
    if turns.any():
        boxes = boxes.copy()
        boxes[turns] = same_outline(boxes[turns], box[turns])
    gain = variance / (variance + _DETECTION_VARIANCE)
    speed_gain = covariance / (variance + _DETECTION_VARIANCE)
    targets["box"][rows] = box + gain * (boxes - box)
    targets["speed"][rows] += speed_gain * (boxes - box)
    targets["variance"][rows] = (1 - gain) * variance
    targets["covariance"][rows] = (1 - gain) * covariance
    targets["speed_variance"][rows] -= speed_gain * covariance
    targets["turns"][rows], targets["measured"][rows] = turns, boxes


def ahead(targets: Targets, seconds: float) -> NDArray[np.float64]:
    """(N, 5) boxes of the targets ``seconds`` later. Changes nothing."""
    boxes: NDArray[np.float64] = targets["box"] + targets["speed"] * (seconds * RATE)
    return boxes


def _process_noise(step: float) -> tuple[NDArray[np.float64], NDArray[np.float64] | float, NDArray[np.float64]]:
    """What a step adds to the variance of the box, of box and speed, and of the speed.

    For other steps than 1: discrete white noise acceleration (Bar-Shalom, Estimation with Applications to Tracking,
    6.3.2).
    """
    if abs(step - 1) <= _NOMINAL_STEP:
        return _STEP_VARIANCE, 0.0, _STEP_VARIANCE
    return _STEP_VARIANCE * step**4 / 4, _STEP_VARIANCE * step**3 / 2, _STEP_VARIANCE * step**2

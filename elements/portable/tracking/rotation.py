"""Boxes that turn, for the ``trackers`` library: a filter that has the angle in its state, and overlap of turned boxes.

A turned box is a row ``x1, y1, x2, y2, angle``: the unrotated rectangle and the angle in radians by which it is turned
clockwise (on the screen) about its centre. The library hands such rows through; only the two classes here look inside.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from trackers.utils.iou import BaseIoU, IoU
from trackers.utils.kalman_filter import KalmanFilter
from trackers.utils.motion_models import init_constant_velocity_filter
from trackers.utils.state_representations import BaseStateEstimator

from elements.metadata.rotated import rotated_iou, same_outline

ANGLE = 4  # column of a turned box, and row of the filter's state
RATE = 9  # row of the state: radians per step
_ANGLE_VARIANCE = math.radians(3) ** 2  # of one detection
_RATE_VARIANCE = 0.25  # of a target just started: half a radian per step
_RATE_DRIFT = 0.001  # by which a step may change the rate


class TurnedBoxFilter(BaseStateEstimator):
    """Constant-velocity Kalman filter of a turned box; as long as nothing turns it is the library's XYXY filter.

    The angle in the state is continuous: it is not cut at a full turn, and detections are read in the way that fits it.

    Attributes:
        measured: (5,) the last detection, its sides and angle named as the target's are.
        turns: whether a detection of the target had an angle.
    """

    # State: x1, y1, x2, y2, angle, and the speed of each per step.
    _POS_IDX = np.arange(0, 5, dtype=np.int64)
    _VEL_IDX = np.arange(5, 10, dtype=np.int64)

    def __init__(self, bbox: NDArray[np.float32]) -> None:
        super().__init__(bbox)
        self.measured = np.asarray(bbox, np.float64)
        self.turns = bool(bbox[ANGLE])
        self.kf.state_covariance[ANGLE, ANGLE] = _ANGLE_VARIANCE
        self.kf.state_covariance[RATE, RATE] = _RATE_VARIANCE

    def _create_filter(self, bbox: NDArray[np.float32]) -> KalmanFilter:
        return init_constant_velocity_filter(10, 5, self._POS_IDX, self._VEL_IDX, bbox)

    def set_kf_covariances(
        self,
        measurement_noise: NDArray[np.float64] | None = None,
        process_noise: NDArray[np.float64] | None = None,
        state_covariance: NDArray[np.float64] | None = None,
    ) -> None:
        """The library's noise is in pixels; the angle has its own."""
        if measurement_noise is not None:
            measurement_noise[ANGLE, ANGLE] = _ANGLE_VARIANCE
        if process_noise is not None:
            process_noise[ANGLE, ANGLE] = process_noise[RATE, RATE] = _RATE_DRIFT
        super().set_kf_covariances(measurement_noise, process_noise, state_covariance)

    def bbox_to_measurement(self, bbox: NDArray[np.float32]) -> NDArray[np.float64]:
        """The detection, its sides and angle named so that they continue the target's."""
        self.turns = self.turns or bool(bbox[ANGLE])
        self.measured = same_outline(bbox, self.kf.state[:5, 0]) if self.turns else np.asarray(bbox, np.float64)
        return self.measured

    def state_to_bbox(self) -> NDArray[np.float64]:
        """(5,) the filtered box."""
        box: NDArray[np.float64] = self.kf.state[:5, 0]
        return box

    def clamp_velocity(self, frame_step: float = 1.0) -> None:
        """Nothing to clamp: corners move freely."""


class TurnedIoU(BaseIoU):
    """Intersection over union of turned boxes, exact."""

    def _compute(self, boxes_1: NDArray[np.float64], boxes_2: NDArray[np.float64]) -> NDArray[np.float64]:
        overlap: NDArray[np.float64]
        if boxes_1[:, ANGLE].any() or boxes_2[:, ANGLE].any():
            overlap = rotated_iou(boxes_1[:, :4], boxes_1[:, ANGLE], boxes_2[:, :4], boxes_2[:, ANGLE])
        else:
            overlap = IoU().compute(boxes_1[:, :4], boxes_2[:, :4])
        return overlap

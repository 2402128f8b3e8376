"""Non-maximum suppression."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import FloatArray, IntArray

_TINY = 1e-12  # boxes without area have no Gaussian
_BLOCK = 256  # rotated boxes that are compared with all lesser ones at once


def nms(boxes: FloatArray, scores: FloatArray, class_ids: IntArray, iou: float) -> IntArray:
    """Greedy suppression within each class.

    Args:
        boxes: (N, 4) xyxy.
        scores: (N,).
        class_ids: (N,).
        iou: a box goes if it overlaps a better one of its class by more than this.

    Returns:
        Indices of the boxes that stay, best first.
    """
    if len(boxes) < 2:
        return np.arange(len(boxes))
    order = np.argsort(-scores, kind="stable")
    # OpenCV moves each class by the largest coordinate, which keeps classes apart only where none is below 0.
    corner_and_size = np.concatenate([boxes[:, :2] - boxes.min(), boxes[:, 2:] - boxes[:, :2]], axis=1)
    # Lists convert faster than arrays here. Scores are at least 0, and OpenCV keeps those above the threshold.
    kept = cv2.dnn.NMSBoxesBatched(
        corner_and_size[order].tolist(), scores[order].tolist(), class_ids[order].tolist(), -1.0, iou
    )
    return order[np.asarray(kept, np.int64)]


def rotated_nms(boxes: FloatArray, angles: FloatArray, scores: FloatArray, class_ids: IntArray, iou: float) -> IntArray:
    """Greedy suppression of rotated boxes within each class, with `probabilistic_iou` as the overlap.

    Args:
        boxes: (N, 4) xyxy, the unrotated rectangles.
        angles: (N,) radians, clockwise on the screen about the box centre.
        scores: (N,).
        class_ids: (N,).
        iou: a box goes if it overlaps a better one of its class by more than this.

    Returns:
        Indices of the boxes that stay, best first.
    """
    order = np.argsort(-scores, kind="stable")
    boxes, angles, class_ids = boxes[order], angles[order], class_ids[order]
    stays = np.ones(len(boxes), bool)
    for start in range(0, len(boxes), _BLOCK):
        rows = start + np.flatnonzero(stays[start : start + _BLOCK])
        beaten = probabilistic_iou(boxes[rows], angles[rows], boxes[start:], angles[start:]) > iou
        beaten &= class_ids[rows, None] == class_ids[None, start:]
        for row, lesser in zip(rows, beaten, strict=True):
            if stays[row]:
                stays[row + 1 :] &= ~lesser[row + 1 - start :]
    return order[stays]


def probabilistic_iou(
    boxes_a: FloatArray, angles_a: FloatArray, boxes_b: FloatArray, angles_b: FloatArray
) -> NDArray[np.float64]:
    """ProbIoU of every pair of rotated boxes: 1 less the Hellinger distance of the Gaussians that stand for them.

    Source of the formula: J. M. Llerena et al., "Gaussian Bounding Boxes and Probabilistic Intersection-over-Union for
    Object Detection" (arXiv:2106.06072). ultralytics' models for rotated boxes are trained and validated with it. A box
    of size w x h is a Gaussian with variances w^2/12 and h^2/12 along its sides.

    Args:
        boxes_a: (N, 4) xyxy, the unrotated rectangles.
        angles_a: (N,) radians.
        boxes_b: (M, 4).
        angles_b: (M,).

    Returns:
        (N, M) from 0 to 1.
    """
    x, y, a, b, c = (value[:, None] for value in _gaussian(boxes_a, angles_a))
    x2, y2, a2, b2, c2 = _gaussian(boxes_b, angles_b)
    dx, dy, sa, sb, sc = x - x2, y - y2, a + a2, b + b2, c + c2
    determinant = np.maximum(sa * sb - sc**2, _TINY)
    apart = (sa * dy**2 + sb * dx**2 - 2 * sc * dx * dy) / determinant / 4
    own = np.maximum(a * b - c**2, _TINY) * np.maximum(a2 * b2 - c2**2, _TINY)
    unlike = np.log(determinant / (4 * np.sqrt(own))) / 2
    distance: NDArray[np.float64] = np.sqrt(1 - np.exp(-np.maximum(apart + unlike, 0)))
    return 1 - distance


def _gaussian(boxes: FloatArray, angles: FloatArray) -> tuple[NDArray[np.float64], ...]:
    """Mean x and y, variance along x and along y, and covariance, of rotated boxes."""
    boxes, angles = boxes.astype(np.float64), angles.astype(np.float64)
    along, across = ((boxes[:, 2:] - boxes[:, :2]) ** 2 / 12).T
    cos, sin = np.cos(angles), np.sin(angles)
    return (
        (boxes[:, 0] + boxes[:, 2]) / 2,
        (boxes[:, 1] + boxes[:, 3]) / 2,
        along * cos**2 + across * sin**2,
        along * sin**2 + across * cos**2,
        (along - across) * cos * sin,
    )

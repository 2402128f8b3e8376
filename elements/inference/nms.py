"""Non-maximum suppression."""

from __future__ import annotations

import cv2
import numpy as np

from elements.metadata.detections import FloatArray, IntArray


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
    corner_and_size = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    # Lists convert faster than arrays here. Scores are at least 0, and OpenCV keeps those above the threshold.
    kept = cv2.dnn.NMSBoxesBatched(
        corner_and_size[order].tolist(), scores[order].tolist(), class_ids[order].tolist(), -1.0, iou
    )
    return order[np.asarray(kept, np.int64)]

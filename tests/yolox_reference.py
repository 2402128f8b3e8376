"""YOLOX as its paper and manual describe it, apart from the project's code: an oracle in plain NumPy.

Z. Ge et al., "YOLOX: Exceeding YOLO Series in 2021" (arXiv:2107.08430): an anchor-free head on strides 8, 16 and 32,
whose centres are offsets from a grid cell in strides and whose sizes are logarithms in strides; the score is objectness
times the class's probability. The picture fills the input from the top left, in whole pixels (rounded down), on grey of
114, BGR from 0 to 255. Suppression is greedy, within a class.

YOLOX's own code divides boxes by the ratio that both axes should have, though rounding has cut the picture by up to one
row and one column: 233 of 432 rows are off by 1.8 pixels at the lower edge. Here each axis is divided by its own.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray

from elements.metadata.detections import Detections

STRIDES = (8, 16, 32)
GREY = 114


class YoloxReference:
    """A network of ``size`` x ``size``.

    Args:
        path: ONNX file that gives (1, A, 5+C).
        size: side of the square input.
    """

    def __init__(self, path: str, size: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._size = size

    def predict(self, bgr: NDArray[np.uint8], confidence: float, iou: float) -> Detections:
        """What is in a picture (H, W, 3): boxes in its pixels, cut at its edges, best first."""
        height, width = bgr.shape[:2]
        ratio = min(self._size / height, self._size / width)
        canvas = np.full((self._size, self._size, 3), GREY, np.uint8)
        part = cv2.resize(bgr, (int(width * ratio), int(height * ratio)), interpolation=cv2.INTER_LINEAR)
        canvas[: part.shape[0], : part.shape[1]] = part
        image = canvas.transpose(2, 0, 1)[None].astype(np.float32)
        (rows,) = self._session.run(None, {self._session.get_inputs()[0].name: image})[0]
        boxes, scores, classes = self._read(rows)
        kept = suppressed(boxes, scores, classes, confidence, iou)
        boxes = boxes[kept] / np.tile([part.shape[1] / width, part.shape[0] / height], 2)
        return Detections(boxes.clip(0, [width, height] * 2), scores[kept], classes[kept])

    def _read(self, rows: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        boxes, row = np.empty((len(rows), 4), np.float32), 0
        for stride in STRIDES:
            cells = self._size // stride
            for y in range(cells):
                for x in range(cells):
                    dx, dy, w, h = rows[row, :4]
                    cx, cy, half_w, half_h = (dx + x) * stride, (dy + y) * stride, np.exp(w) / 2, np.exp(h) / 2
                    half_w, half_h = half_w * stride, half_h * stride
                    boxes[row] = cx - half_w, cy - half_h, cx + half_w, cy + half_h
                    row += 1
        assert row == len(rows)
        scores = rows[:, 4:5] * rows[:, 5:]
        return boxes, scores.max(axis=1), scores.argmax(axis=1)


def suppressed(
    boxes: NDArray[Any], scores: NDArray[Any], classes: NDArray[Any], confidence: float, iou: float
) -> list[int]:
    """Rows of the better of any two boxes of one class that overlap by more than ``iou``."""
    kept: list[int] = []
    for row in np.argsort(-scores):
        if scores[row] < confidence:
            break
        if all(classes[row] != classes[other] or overlap(boxes[row], boxes[other]) <= iou for other in kept):
            kept.append(int(row))
    return kept


def overlap(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Intersection over union of two boxes."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    common = width * height
    return float(common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common))

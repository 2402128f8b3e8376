"""ultralytics' own `predict` (AGPL, dev only), as detections of ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import Detections


def task_of(kind: str) -> str:
    """The task of a definition such as ``yolo11n-seg``."""
    return {"seg": "segment", "pose": "pose", "obb": "obb"}.get(kind.rpartition("-")[2], "detect")


def settings(path: Path, size: int = 320) -> dict[str, Any]:
    """What a model of ours needs to run the same file the same way: a checkpoint, or an export of a fixed size."""
    if path.suffix == ".onnx":
        return {"path": str(path)}
    return {"path": str(path), "engine": "ultralytics", "trust": True, "device": "cpu", "input_size": (size, size)}


def predict(
    path: Path, task: str, frames: Sequence[NDArray[np.uint8]], size: int, confidence: float, iou: float, **options: Any
) -> list[Detections]:
    """What it finds in (H, W, 3) uint8 BGR pictures, one by one; masks at the pictures' size.

    Boxes that lie in the padding alone, which it reports with no area or outside of the picture, are left out.
    """
    import ultralytics

    yolo = ultralytics.YOLO(path, task=task)
    given = {"imgsz": size, "conf": confidence, "iou": iou, "max_det": 3000, "device": "cpu", "verbose": False}
    return [_detections(yolo.predict(f, retina_masks=True, **given, **options)[0], f.shape) for f in frames]


def _detections(result: Any, shape: tuple[int, ...]) -> Detections:
    rotated = result.obb is not None
    found = result.obb if rotated else result.boxes
    scores, classes = found.conf.numpy(), found.cls.numpy().astype(np.int64)
    if rotated:
        box = found.xywhr.numpy()
        boxes = np.concatenate([box[:, :2] - box[:, 2:4] / 2, box[:, :2] + box[:, 2:4] / 2], axis=1)
        inside = ((box[:, :2] >= 0) & (box[:, :2] <= (shape[1], shape[0]))).all(axis=1)
        return Detections(boxes, scores, classes, angles=box[:, 4])[inside]
    boxes = found.xyxy.numpy()
    points = result.keypoints
    keypoints = None if points is None else np.concatenate([points.xy.numpy(), points.conf.numpy()[..., None]], axis=2)
    masks = None if result.masks is None else result.masks.data.numpy() > 0
    if masks is not None and len(masks) != len(boxes):
        raise AssertionError("masks were left out")
    inside = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    return Detections(boxes, scores, classes, keypoints=keypoints, masks=masks)[inside]

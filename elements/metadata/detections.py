"""The one type between models and metadata: what was found in one frame."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(slots=True)
class Detections:
    """Objects of one frame as a structure of arrays (NumPy, on the host), one row per object.

    Attributes:
        boxes: (N, 4) float32, ``x1, y1, x2, y2`` in source-frame pixels (upright frame, origin at the top left).
            For rotated objects: the unrotated rectangle around the same centre.
        scores: (N,) float32, 0 to 1.
        class_ids: (N,) int64, index into the model's names.
        angles: (N,) float32 radians, positive is clockwise on the screen, about the box centre; ``None`` if upright.
        masks: (N, H, W) bool in source-frame pixels.
        keypoints: (N, K, 3) float32, ``x, y, score``, in source-frame pixels.
        embeddings: (N, D) float32.
        track_ids: (N,) int64, -1 where untracked.
        attributes: one mapping per object, in the order of the rows.

    Raises:
        ValueError: if the arrays do not have one row per object.
    """

    boxes: FloatArray = field(default_factory=lambda: np.empty((0, 4), np.float32))
    scores: FloatArray = field(default_factory=lambda: np.empty(0, np.float32))
    class_ids: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    angles: FloatArray | None = None
    masks: NDArray[np.bool_] | None = None
    keypoints: FloatArray | None = None
    embeddings: FloatArray | None = None
    track_ids: IntArray | None = None
    attributes: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.boxes = np.asarray(self.boxes, np.float32).reshape(-1, 4)
        self.scores = np.asarray(self.scores, np.float32)
        self.class_ids = np.asarray(self.class_ids, np.int64)
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and len(value) != len(self.boxes):
                raise ValueError(f"Detections.{f.name} has {len(value)} rows, boxes has {len(self.boxes)}")

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: Any) -> Detections:
        """Rows picked by a slice, a boolean mask or an index array."""
        rows = np.arange(len(self))[index]
        picked = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, list):
                value = [value[i] for i in rows]
            elif value is not None:
                value = value[rows]
            picked[f.name] = value
        return Detections(**picked)

    def clipped(self, width: float, height: float) -> Detections:
        """The same objects with boxes cut at the frame's edges; nothing is dropped.

        Rotated boxes are left as they are: cutting the unrotated rectangle would move the object.
        """
        if self.angles is None:
            limits = np.array([width, height, width, height], np.float32)
            self.boxes = np.clip(self.boxes, 0, limits)
        return self

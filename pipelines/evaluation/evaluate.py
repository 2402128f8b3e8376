"""The whole evaluation: detections, masks, key points, tracks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.annotations import Annotations
from pipelines.evaluation.confusion import confusion
from pipelines.evaluation.keypoints import MOST_PER_FRAME, counted, keypoint_frames, keypoint_similarity
from pipelines.evaluation.overlap import Overlap, box_overlap, mask_overlap
from pipelines.evaluation.pairing import Frame, by_class, pair
from pipelines.evaluation.precision import RECALLS, ClassPrecision, class_precision
from pipelines.evaluation.tracks import Tracking, has_tracks, track_scores


@dataclass(frozen=True, slots=True)
class Precision:
    """Classes, and the means over them."""

    classes: list[ClassPrecision]

    @property
    def map(self) -> float:
        """Mean average precision, overlaps 0.5 to 0.95."""
        return float(np.mean([item.ap for item in self.classes]))

    @property
    def map50(self) -> float:
        """Mean average precision at overlap 0.5."""
        return float(np.mean([item.ap50 for item in self.classes]))

    @property
    def map75(self) -> float:
        """Mean average precision at overlap 0.75."""
        return float(np.mean([item.ap75 for item in self.classes]))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What predictions are worth.

    Attributes:
        frames: how many were looked at, of ``sequences`` videos or pictures.
        names: classes.
        rotated: whether boxes are turned (then boxes overlap as turned boxes).
        boxes: precision of boxes.
        masks: precision of masks, where the truth and the predictions have any.
        keypoints: likewise of key points, by their similarity (OKS) in place of the overlap.
        tracks: where both have track ids.
        confusion: (C + 1, C + 1), see `pipelines.evaluation.confusion`.
        notes: what the user should know about the match of truth and predictions.
    """

    frames: int
    sequences: int
    names: tuple[str, ...]
    rotated: bool
    boxes: Precision
    masks: Precision | None
    keypoints: Precision | None
    tracks: Tracking | None
    confusion: NDArray[np.int64]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what cannot be told is None."""
        return {
            "frames": self.frames,
            "sequences": self.sequences,
            "rotated": self.rotated,
            "boxes": _precision_dict(self.boxes),
            "masks": _precision_dict(self.masks) if self.masks else None,
            "keypoints": _precision_dict(self.keypoints) if self.keypoints else None,
            "tracks": _numbers(asdict(self.tracks)) if self.tracks else None,
            "confusion": {"names": [*self.names, "nothing"], "counts": self.confusion.tolist()},
            "notes": self.notes,
        }


def evaluate(truth: Annotations, predictions: Annotations, confidence: float | None = None) -> Evaluation:
    """Measure predictions against truth.

    Args:
        truth: with objects that count.
        predictions: of the same sequences, with the same class names.
        confidence: where precision, recall and the confusion matrix are read; default: where F1 of a class is greatest.

    Raises:
        EvaluationError: if the two do not belong together.
    """
    paired = pair(truth, predictions)
    classes = by_class(paired)
    boxes = _precision(classes, box_overlap, confidence)
    with_masks = all(any(row.mask for row in side.rows()) for side in (truth, predictions))
    masks = _precision(classes, mask_overlap, confidence) if with_masks else None
    with_tracks = has_tracks(truth) and has_tracks(predictions)
    least = {item.name: item.confidence for item in boxes.classes if not math.isnan(item.confidence)}
    return Evaluation(
        len(paired.frames),
        len({frame.sequence for frame in paired.frames}),
        paired.names,
        any(side.angles.any() for frame in paired.frames for side in (frame.truth, frame.predicted)),
        boxes,
        masks,
        _keypoint_precision(classes, confidence),
        track_scores(classes) if with_tracks else None,
        confusion(paired.frames, paired.names, least),
        paired.notes,
    )


def _precision(classes: dict[str, list[Frame]], overlap: Overlap, confidence: float | None) -> Precision:
    return Precision([class_precision(frames, name, overlap, confidence) for name, frames in classes.items()])


def _keypoint_precision(classes: dict[str, list[Frame]], confidence: float | None) -> Precision | None:
    """Of the classes whose truth has labelled points; ``None`` if there are none, or no points are predicted."""
    with_points = {name: keypoint_frames(frames) for name, frames in classes.items()}
    if not any(len(frame.predicted) for frames in with_points.values() for frame in frames):
        return None
    items = [
        class_precision(frames, name, keypoint_similarity, confidence, MOST_PER_FRAME)
        for name, frames in with_points.items()
        if counted(frames)
    ]
    return Precision(items) if items else None


def _precision_dict(precision: Precision) -> dict[str, Any]:
    keys = ("truth", "predicted", "ap", "ap50", "ap75", "confidence", "precision", "recall", "f1")
    return {
        "map": _number(precision.map),
        "map50": _number(precision.map50),
        "map75": _number(precision.map75),
        "classes": {
            item.name: {key: _number(getattr(item, key)) for key in keys}
            | {"curve": {"recall": _rounded(RECALLS), "precision": _rounded(item.curve)}}
            for item in precision.classes
        },
    }


def _numbers(value: Any) -> Any:
    return {key: _numbers(item) for key, item in value.items()} if isinstance(value, dict) else _number(value)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value if isinstance(value, int) else round(value, 5)


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(float(value), 4) for value in values]

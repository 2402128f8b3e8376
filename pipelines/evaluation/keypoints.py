"""Key points: object keypoint similarity (OKS), by which they have an average precision as boxes have by overlap.

OKS is COCO's: the mean over the labelled points of ``exp(-d² / (2 s² k²))``, where ``d`` is the distance of the
predicted point, ``s²`` the true object's area, and ``k`` twice the point's sigma, which says how exactly people place
it (https://cocodataset.org/#keypoints-eval).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipelines.evaluation.annotations import EvaluationError, Floats, Objects, Points
from pipelines.evaluation.pairing import Frame

MOST_PER_FRAME = 20  # predictions of a class, as COCO's
SIGMA = 0.05
"""Of each point, where it is not known how exactly people place it: about the mean of COCO's."""
COCO_SIGMAS = np.array(
    [0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089,
     0.089]
)  # fmt: skip
"""Of COCO's 17 points: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles."""


def keypoint_frames(frames: Sequence[Frame]) -> list[Frame]:
    """The frames of a class as key points are measured on them.

    True objects without a labelled point need not be found. Predictions without points are of another kind of model.
    """
    return [
        replace(
            frame,
            truth=replace(frame.truth, ignore=frame.truth.ignore | ~_labelled(frame.truth)),
            predicted=frame.predicted[np.array([points is not None for points in frame.predicted.keypoints], bool)],
        )
        for frame in frames
    ]


def counted(frames: Sequence[Frame]) -> int:
    """How many true objects count."""
    return sum(int((~frame.truth.ignore).sum()) for frame in frames)


def keypoint_similarity(predicted: Objects, truth: Objects) -> Floats:
    """(N, M) OKS of N predicted and M true objects.

    A predicted point that was not found is infinitely far away. To a true object without labelled points, predicted
    ones are as far as they lie outside of its box, widened by its width and height to each side.

    Raises:
        EvaluationError: if a prediction has more points than the truth.
    """
    result = np.zeros((len(predicted), len(truth)))
    for column, points in enumerate(truth.keypoints):
        if points is None:
            continue
        variances = (2 * sigmas(len(points))) ** 2 * (truth.areas[column] + np.spacing(1)) * 2
        labelled = points[:, 2] > 0
        for row, found in enumerate(predicted.keypoints):
            if found is None:
                continue
            places = _as_many(found, len(points))[:, :2]
            away = places - points[:, :2] if labelled.any() else _outside(places, truth.boxes[column])
            distances = np.nan_to_num((away**2).sum(axis=1), nan=np.inf, posinf=np.inf)
            near = np.exp(-distances / variances)
            result[row, column] = near[labelled].mean() if labelled.any() else near.mean()
    return result


def sigmas(count: int) -> Floats:
    """(count,) sigmas: COCO's for 17 points, else `SIGMA` for each."""
    return COCO_SIGMAS if count == len(COCO_SIGMAS) else np.full(count, SIGMA)


def _labelled(objects: Objects) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.array([points is not None and bool((points[:, 2] > 0).any()) for points in objects.keypoints], bool)


def _as_many(points: Points, count: int) -> Points:
    """Event files leave out points at the end that were not found."""
    if len(points) > count:
        raise EvaluationError(
            f"predicted objects have {len(points)} key points, true ones {count}: they are of different kinds"
        )
    return np.concatenate([points, np.full((count - len(points), 3), np.nan)])


def _outside(places: Floats, box: Floats) -> Floats:
    size = box[2:] - box[:2]
    return np.maximum(0, box[:2] - size - places) + np.maximum(0, places - box[2:] - size)

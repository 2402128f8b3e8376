"""Average precision in the manner of COCO: 101 recall points, one IoU threshold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.scenes.matching import IGNORED, Floats, match


@dataclass(frozen=True)
class FrameResult:
    """Detections and truth of one frame.

    Attributes:
        boxes: (N, 4) detected boxes, xyxy pixels; scores: (N,); class_ids: (N,).
        truth: (M, 4) true boxes; truth_ids: (M,) their classes; ignore: (M,) bool, need not be found.
    """

    boxes: Floats
    scores: Floats
    class_ids: NDArray[np.intp]
    truth: Floats
    truth_ids: NDArray[np.intp]
    ignore: NDArray[np.bool_]


def average_precision(results: Sequence[FrameResult], class_id: int, threshold: float = 0.5) -> float:
    """Average precision of one class; NaN when the truth has no object of it."""
    scores, correct, owed = [], [], 0
    for result in results:
        mine, true = result.class_ids == class_id, result.truth_ids == class_id
        ignore = result.ignore[true]
        owed += int((~ignore).sum())
        matches = match(result.boxes[mine], result.scores[mine], result.truth[true], ignore, threshold)
        counted = matches != IGNORED
        scores.append(result.scores[mine][counted])
        correct.append(matches[counted] >= 0)
    if not owed:
        return float("nan")
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hits = np.concatenate(correct)[order]
    found = np.cumsum(hits)
    precision = found / np.arange(1, len(hits) + 1)
    recall = found / owed
    # Precision at a recall is the best reached at that or a higher recall.
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    points = np.searchsorted(recall, np.linspace(0.0, 1.0, 101), side="left")
    return float(np.append(envelope, 0.0)[np.minimum(points, len(envelope))].mean())


def mean_average_precision(
    results: Sequence[FrameResult], classes: Sequence[str], threshold: float = 0.5
) -> dict[str, float]:
    """Average precision by class name, and their mean under "mean" (classes without truth left out)."""
    by_class = {name: average_precision(results, index, threshold) for index, name in enumerate(classes)}
    return {**by_class, "mean": float(np.nanmean(list(by_class.values())))}

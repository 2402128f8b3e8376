"""Average precision as COCO defines it, and precision and recall, per class.

Each frame's predictions are matched best score first, each to the true object that it overlaps most among those that
are still free, if by the threshold at least. At most `MOST_PER_FRAME` of a class in a frame count. Precision at a
recall is the best that is reached at that recall or a higher one; average precision is its mean over 101 recalls from
0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import BoolArray
from pipelines.evaluation.annotations import Floats
from pipelines.evaluation.overlap import Overlap
from pipelines.evaluation.pairing import Frame

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
MOST_PER_FRAME = 100

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ClassPrecision:
    """One class.

    Attributes:
        name: the class.
        truth: true objects that count.
        predicted: predictions that count (neither matched nor unmatched ones in ignored regions).
        ap: mean average precision over overlaps from 0.5 to 0.95.
        ap50: average precision at overlap 0.5.
        ap75: and at 0.75.
        confidence: where precision and recall are read: as given, else where F1 is greatest. NaN without predictions.
        precision: at overlap 0.5 and ``confidence``; NaN where nothing is predicted.
        recall: likewise.
        curve: (101,) best precision at each of `RECALLS`, at overlap 0.5.
        scores: (K,) of the predictions that count, highest first, with ``precisions`` and ``recalls`` (K,) of all up to
            that one.
    """

    name: str
    truth: int
    predicted: int
    ap: float
    ap50: float
    ap75: float
    confidence: float
    precision: float
    recall: float
    curve: Floats
    scores: Floats
    precisions: Floats
    recalls: Floats

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total > 0 else 0.0


def class_precision(
    frames: Sequence[Frame],
    name: str,
    overlap: Overlap,
    confidence: float | None = None,
    most: int = MOST_PER_FRAME,
) -> ClassPrecision:
    """Measure one class; the truth must have objects of it.

    Args:
        frames: truth and predictions, of this class alone (see `by_class`).
        name: the class.
        overlap: of boxes, masks or key points.
        confidence: where precision and recall are read; default: where F1 is greatest.
        most: predictions of a frame that count.
    """
    scores: list[Floats] = []
    hits: list[BoolArray] = []
    left_out: list[BoolArray] = []
    owed = 0
    for frame in frames:
        truth, predicted = frame.truth, frame.predicted
        owed += int((~truth.ignore).sum())
        order = np.argsort(-predicted.scores, kind="stable")[:most]
        predicted = predicted[order]
        matches = match(overlap(predicted, truth), truth.ignore, truth.crowd)
        scores.append(predicted.scores)
        hits.append(matches >= 0)
        left_out.append((matches >= 0) & np.append(truth.ignore, False)[matches])
    all_scores = np.concatenate(scores)
    order = np.argsort(-all_scores, kind="stable")
    found, ignored = np.concatenate(hits, axis=1)[:, order], np.concatenate(left_out, axis=1)[:, order]
    curves = [_curve(found[t][~ignored[t]], owed) for t in range(len(THRESHOLDS))]
    ap = [float(_at_recalls(precision, recall).mean()) for precision, recall in curves]
    precision, recall = curves[0]
    counted = all_scores[order][~ignored[0]]
    at = _operating_point(counted, precision, recall, confidence)
    return ClassPrecision(
        name,
        owed,
        len(counted),
        float(np.mean(ap)),
        ap[0],
        ap[5],
        confidence if confidence is not None else float(counted[at]) if at >= 0 else float("nan"),
        float(precision[at]) if at >= 0 else float("nan"),
        float(recall[at]) if at >= 0 else 0.0,
        _at_recalls(precision, recall),
        counted,
        precision,
        recall,
    )


def match(
    overlaps: Floats, ignore: BoolArray, crowd: BoolArray | None = None, thresholds: Floats = THRESHOLDS
) -> Indices:
    """Which true object each prediction of a frame takes.

    Args:
        overlaps: (N, M) of the predictions, best score first, with the true objects.
        ignore: (M,) objects that need not be found: a prediction may take one, if no other is to be had.
        crowd: (M,) those of them that any number of predictions may take; default: all.
        thresholds: (T,) least overlaps.

    Returns:
        (T, N) index of the true object, or -1.
    """
    result = np.full((len(thresholds), len(overlaps)), -1, np.intp)
    if not overlaps.size:
        return result
    counted, ignored = np.flatnonzero(~ignore), np.flatnonzero(ignore)
    for t, threshold in enumerate(thresholds):
        free, spare = overlaps[:, counted].copy(), overlaps[:, ignored].copy()
        for row in range(len(overlaps)):
            for columns, left in ((counted, free), (ignored, spare)):
                values = left[row]
                if len(columns) and values.max() >= threshold:
                    best = len(values) - 1 - int(np.argmax(values[::-1]))  # of equal ones the last, as COCO's
                    result[t, row] = columns[best]
                    if columns is counted or (crowd is not None and not crowd[columns[best]]):
                        left[:, best] = -1
                    break
    return result


def _curve(hits: BoolArray, owed: int) -> tuple[Floats, Floats]:
    """Precision and recall of the first 1, 2, … predictions."""
    found = np.cumsum(hits, dtype=np.float64)
    return found / np.arange(1, len(hits) + 1), found / owed


def _at_recalls(precision: Floats, recall: Floats) -> Floats:
    best: Floats = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return best[np.searchsorted(recall, RECALLS, side="left")]


def _operating_point(scores: Floats, precision: Floats, recall: Floats, confidence: float | None) -> int:
    """The last prediction that counts: down to ``confidence``, or where F1 is greatest. -1 if there is none."""
    if not len(scores):
        return -1
    if confidence is not None:
        return int(np.count_nonzero(scores >= confidence)) - 1
    ends = np.append(scores[1:] != scores[:-1], True)  # predictions of equal score cannot be told apart
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return int(np.argmax(np.where(ends, f1, -1)))

"""Tracking metrics: HOTA (Luiten et al. 2020), CLEAR MOT (Bernardin 2008) and identity (Ristani 2016).

Computed by the ``trackers`` library, whose numbers equal TrackEval's. What is here is what comes before: classes apart,
and predictions on objects that need not be found left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pipelines.evaluation.annotations import UNTRACKED, Annotations, EvaluationError, Floats, Objects
from pipelines.evaluation.overlap import box_overlap
from pipelines.evaluation.pairing import Frame

_SAME = 0.5  # overlap that makes a prediction an ignored object


@dataclass(frozen=True, slots=True)
class TrackScores:
    """Scores from 0 to 1 (MOTA may be negative) and counts.

    Attributes:
        hota: higher order tracking accuracy, mean over overlaps from 0.05 to 0.95; of it: ``deta`` detection, ``assa``
            association, ``loca`` localisation.
        mota: 1 less misses, false ones and id switches per true object, at overlap 0.5; ``motp`` mean overlap.
        idf1: F1 of the objects that have the right id throughout.
        switches: times that a true track changes its id; ``fragments`` times that it is lost and found again.
        truth: true tracks; ``predicted``: predicted ones.
        mostly_tracked: true tracks found in more than 80 % of their frames; ``mostly_lost`` in less than 20 %.
    """

    hota: float
    deta: float
    assa: float
    loca: float
    mota: float
    motp: float
    idf1: float
    switches: int
    fragments: int
    truth: int
    predicted: int
    mostly_tracked: int
    mostly_lost: int


@dataclass(slots=True)
class Tracking:
    """All classes and sequences together, and each class, each sequence."""

    total: TrackScores
    classes: dict[str, TrackScores] = field(default_factory=dict)
    sequences: dict[str, TrackScores] = field(default_factory=dict)


def has_tracks(annotations: Annotations) -> bool:
    """Whether any object that counts has a track id."""
    return any(row.track_id != UNTRACKED for row in annotations.rows() if not row.ignore)


def track_scores(classes: Mapping[str, Sequence[Frame]]) -> Tracking:
    """Measure the tracks of all classes; each class of each sequence is measured apart and the counts are added up.

    Predictions without a track id are left out.

    Args:
        classes: frames by class, see `by_class`.

    Raises:
        EvaluationError: if a true object lacks a track id, or an id is there twice in a frame.
    """
    parts = [
        (sequence, name, _measure([_checked(frame, name) for frame in group]))
        for name, frames in classes.items()
        for sequence, group in groupby(frames, key=lambda frame: frame.sequence)
    ]
    result = Tracking(_added([part for _, _, part in parts]))
    for name in classes:
        result.classes[name] = _added([part for _, other, part in parts if other == name])
    for sequence in dict.fromkeys(sequence for sequence, _, _ in parts):
        result.sequences[sequence] = _added([part for other, _, part in parts if other == sequence])
    return result


@dataclass(frozen=True, slots=True)
class _Part:
    """The library's metrics of one class in one sequence."""

    hota: dict[str, Any]
    clear: dict[str, Any]
    identity: dict[str, Any]
    truth: int
    predicted: int


def _measure(frames: Sequence[Frame]) -> _Part:
    from trackers.eval import compute_clear_metrics, compute_hota_metrics, compute_identity_metrics

    true_ids, ids, overlaps = [], [], []
    for frame in frames:
        truth, predicted, overlap = _counted(frame)
        true_ids.append(truth.track_ids)
        ids.append(predicted.track_ids)
        overlaps.append(overlap.T)
    data = true_ids, ids, overlaps
    metrics = compute_hota_metrics(*data), compute_clear_metrics(*data), compute_identity_metrics(*data)
    return _Part(*metrics, *(len(np.unique(np.concatenate(side))) for side in (true_ids, ids)))


def _checked(frame: Frame, name: str) -> Frame:
    truth, predicted = frame.truth, frame.predicted[frame.predicted.track_ids != UNTRACKED]
    if (truth.track_ids[~truth.ignore] == UNTRACKED).any():
        raise EvaluationError(f"'{frame.sequence}' frame {frame.number}: a true object of '{name}' has no track id")
    for kind, objects in (("true", truth[~truth.ignore]), ("predicted", predicted)):
        ids, counts = np.unique(objects.track_ids, return_counts=True)
        if (counts > 1).any():
            raise EvaluationError(
                f"'{frame.sequence}' frame {frame.number}: two {kind} objects of '{name}' have track id "
                f"{ids[counts > 1][0]}"
            )
    return Frame(frame.sequence, frame.number, truth, predicted)


def _counted(frame: Frame) -> tuple[Objects, Objects, Floats]:
    """True objects that count, predictions, and their overlap (N predicted, M true).

    A prediction that fits no object that counts, and lies in one that need not be found, is left out.
    """
    overlap = box_overlap(frame.predicted, frame.truth)
    ignore = frame.truth.ignore
    counted, ignored = overlap[:, ~ignore], overlap[:, ignore]
    fits = counted * (counted >= _SAME)
    rows, columns = linear_sum_assignment(fits, maximize=True)
    matched = np.zeros(len(overlap), bool)
    matched[rows[fits[rows, columns] > 0]] = True
    keep = matched | ~(ignored >= _SAME).any(axis=1)
    return frame.truth[~ignore], frame.predicted[keep], counted[keep]


def _added(parts: Sequence[_Part]) -> TrackScores:
    from trackers.eval import aggregate_clear_metrics, aggregate_hota_metrics, aggregate_identity_metrics

    hota = aggregate_hota_metrics([part.hota for part in parts])
    clear = aggregate_clear_metrics([part.clear for part in parts])
    identity = aggregate_identity_metrics([part.identity for part in parts])
    return TrackScores(
        hota["HOTA"],
        hota["DetA"],
        hota["AssA"],
        hota["LocA"],
        clear["MOTA"],
        clear["MOTP"],
        identity["IDF1"],
        clear["IDSW"],
        clear["Frag"],
        sum(part.truth for part in parts),
        sum(part.predicted for part in parts),
        clear["MT"],
        clear["ML"],
    )

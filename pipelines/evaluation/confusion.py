"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.overlap import box_overlap
from pipelines.evaluation.pairing import Frame

_SAME = 0.5


def confusion(frames: Sequence[Frame], names: Sequence[str], confidence: Mapping[str, float]) -> NDArray[np.int64]:
    """(C + 1, C + 1) counts: row is the true class, column the predicted one, the last of each is "nothing".

    Objects are paired whatever their class, those that overlap most first, from 0.5 on.

    Args:
        frames: truth and predictions.
        names: the classes, C.
        confidence: by class, the least score of a prediction that counts; predictions of others do not.
    """
    number = {name: index for index, name in enumerate(names)}
    nothing = len(names)
    counts = np.zeros((nothing + 1, nothing + 1), np.int64)
    for frame in frames:
        least = np.array([confidence.get(str(label), np.inf) for label in frame.predicted.labels])
        predicted = frame.predicted[frame.predicted.scores >= least]
        true_class = [number[str(label)] for label in frame.truth.labels]
        found_class = [number[str(label)] for label in predicted.labels]
        overlaps = box_overlap(predicted, frame.truth)
        ignore = frame.truth.ignore
        left_out = np.flatnonzero((overlaps[:, ignore] >= _SAME).any(axis=1))
        overlaps[:, ignore] = 0
        free_rows, free_columns = set(range(len(predicted))), set(np.flatnonzero(~ignore).tolist())
        rows, columns = np.nonzero(overlaps >= _SAME)
        for index in np.argsort(-overlaps[rows, columns], kind="stable"):
            row, column = int(rows[index]), int(columns[index])
            if row in free_rows and column in free_columns:
                free_rows.discard(row)
                free_columns.discard(column)
                counts[true_class[column], found_class[row]] += 1
        for column in free_columns:
            counts[true_class[column], nothing] += 1
        for row in free_rows - set(left_out.tolist()):
            counts[nothing, found_class[row]] += 1
    return counts

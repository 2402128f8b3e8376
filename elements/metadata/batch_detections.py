"""Detections of many pictures in one set of arrays: the crops of a batch have one row each, and there are hundreds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from elements.metadata.detections import Detections, IntArray


class BatchDetections(Sequence[Detections]):
    """A sequence with one `Detections` per picture, made anew each time it is asked for: change ``rows``, not those.

    Attributes:
        rows: the objects of all pictures, picture by picture.
        counts: (B,) int64, how many of them each picture has.

    Raises:
        ValueError: if the counts do not add up to the rows.
    """

    __slots__ = ("_ends", "counts", "rows")

    def __init__(self, rows: Detections, counts: IntArray) -> None:
        self.rows, self.counts = rows, counts
        self._ends: IntArray = counts.cumsum()
        if counts.min(initial=0) < 0 or counts.sum() != len(rows):
            raise ValueError(f"BatchDetections.counts are for {counts.tolist()} objects, rows has {len(rows)}")

    @classmethod
    def joined(cls, parts: Sequence[BatchDetections]) -> BatchDetections:
        """The pictures of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(Detections.concatenate([part.rows for part in parts]), np.concatenate([p.counts for p in parts]))

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> Detections: ...
    @overload
    def __getitem__(self, index: slice) -> list[Detections]: ...
    def __getitem__(self, index: int | slice) -> Detections | list[Detections]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        end = int(self._ends[index])
        return self.rows[end - int(self.counts[index]) : end]


def counts_of(found: Sequence[Detections]) -> list[int]:
    """How many objects each picture has."""
    return found.counts.tolist() if isinstance(found, BatchDetections) else [len(one) for one in found]


def best_of(found: Sequence[Detections]) -> list[tuple[int, float] | None]:
    """Class number and score of each picture's best object; ``None`` where there is none."""
    if isinstance(found, BatchDetections) and found.counts.max(initial=0) <= 1:
        rows = zip(found.rows.class_ids.tolist(), found.rows.scores.tolist(), strict=True)
        return [next(rows) if count else None for count in found.counts.tolist()]
    return [_best(one) if len(one) else None for one in found]


def _best(found: Detections) -> tuple[int, float]:
    row = int(found.scores.argmax())
    return int(found.class_ids[row]), float(found.scores[row])

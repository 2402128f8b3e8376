"""Which target is which detection: the pairs whose overlaps add up to the most.

Only boxes that touch can be a pair, and of thousands in a picture each touches a few. So where a table of all against
all would be large, pairs are looked up in a grid, and the assignment is solved on them alone. The result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from elements.metadata.rotated import bounds, paired_rotated_iou
from elements.portable.tracking.motion import ANGLE

Indices = NDArray[np.int64]

_TABLE = 40_000  # cells up to which a full table is faster
_GRID = 128  # cells along each axis at most
_UNPAIRED = 1e-9  # what it is worth to stay without a partner: less than any overlap that counts


@dataclass(frozen=True, slots=True)
class Boxes:
    """``boxes`` (N, 5): turned (xyxy, radians); ``groups`` (N,) integers: only boxes of one group can be a pair."""

    boxes: NDArray[np.float64]
    groups: Indices

    def __len__(self) -> int:
        return len(self.boxes)


def assign(first: Boxes, second: Boxes, minimum: float) -> tuple[Indices, Indices]:
    """Pair each box with at most one of the other side, so that the sum of the overlaps is the largest.

    Returns:
        Rows of ``first``, ascending, and of ``second``, of the pairs that overlap (IoU) by at least ``minimum``, and at
        all.
    """
    rows, columns, overlap = overlapping(first, second)
    if not len(rows):
        return rows, columns
    if len(first) * len(second) <= _TABLE:
        table = np.zeros((len(first), len(second)))
        table[rows, columns] = overlap
        paired, partners = linear_sum_assignment(table, maximize=True)
        wide_enough = table[paired, partners] >= max(minimum, _UNPAIRED)
        return paired[wide_enough], partners[wide_enough]
    return _assign_sparse((len(first), len(second)), rows, columns, overlap, minimum)


def overlapping(first: Boxes, second: Boxes) -> tuple[Indices, Indices, NDArray[np.float64]]:
    """Row of ``first``, row of ``second`` and IoU of all pairs of a group that overlap."""
    turned = bool(first.boxes[:, ANGLE].any() or second.boxes[:, ANGLE].any())
    a, b = (bounds(s.boxes[:, :ANGLE], s.boxes[:, ANGLE]) if turned else s.boxes[:, :ANGLE] for s in (first, second))
    small = len(a) * len(b) <= _TABLE
    rows, columns = _touching_in_table(a, b) if small else _touching_in_grid(a, b)
    same = first.groups[rows] == second.groups[columns]
    rows, columns = rows[same], columns[same]
    of_first, of_second = first.boxes[rows], second.boxes[columns]
    if turned:
        overlap = paired_rotated_iou(of_first[:, :ANGLE], of_first[:, ANGLE], of_second[:, :ANGLE], of_second[:, ANGLE])
    else:
        overlap = _paired_iou(of_first, of_second)
    wide = overlap > 0
    return rows[wide], columns[wide], overlap[wide]


def _assign_sparse(
    shape: tuple[int, int], rows: Indices, columns: Indices, overlap: NDArray[np.float64], minimum: float
) -> tuple[Indices, Indices]:
    """As `assign`. The solver wants a partner for each row: each gets a column of its own that is worth nothing."""
    alone = np.arange(shape[0])
    table = csr_array(
        (
            np.concatenate([overlap, np.full(shape[0], _UNPAIRED)]),
            (np.concatenate([rows, alone]), np.concatenate([columns, shape[1] + alone])),
        ),
        shape=(shape[0], shape[1] + shape[0]),
    )
    paired, partners = min_weight_full_bipartite_matching(table, maximize=True)
    paired, partners = paired[partners < shape[1]].astype(np.int64), partners[partners < shape[1]].astype(np.int64)
    keys = rows * shape[1] + columns
    order = np.argsort(keys)
    of_pairs = overlap[order[np.searchsorted(keys[order], paired * shape[1] + partners)]]
    return paired[of_pairs >= minimum], partners[of_pairs >= minimum]


def _touching_in_table(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[Indices, Indices]:
    """Pairs of upright boxes (N, 4) and (M, 4) that share area; all against all."""
    ends = np.minimum(a[:, None, 2:], b[None, :, 2:])
    rows, columns = np.nonzero((ends > np.maximum(a[:, None, :2], b[None, :, :2])).all(axis=2))
    return rows, columns


def _touching_in_grid(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[Indices, Indices]:
    """As `_touching_in_table`: boxes are listed in the cells that they lie in, and compared with those listed there.

    A pair may meet in many cells. It counts in the one with the top left corner of what both share.
    """
    both = np.concatenate([a, b])
    origin = both[:, :2].min(axis=0)
    extent = both[:, 2:].max(axis=0) - origin
    cell = np.maximum((both[:, 2:] - both[:, :2]).mean(axis=0), extent / _GRID)
    cell[cell <= 0] = 1
    rows, cells_a = _listed(a, origin, cell)
    columns, cells_b = _listed(b, origin, cell)
    order = np.argsort(cells_b, kind="stable")
    columns, cells_b = columns[order], cells_b[order]
    start, end = np.searchsorted(cells_b, cells_a, "left"), np.searchsorted(cells_b, cells_a, "right")
    which, within = _expanded(end - start)
    rows, cells, columns = rows[which], cells_a[which], columns[start[which] + within]
    corner = np.maximum(a[rows, :2], b[columns, :2])
    touch = (np.minimum(a[rows, 2:], b[columns, 2:]) > corner).all(axis=1)
    touch &= _number(((corner - origin) // cell).astype(np.int64)) == cells
    return rows[touch], columns[touch]


def _listed(
    boxes: NDArray[np.float64], origin: NDArray[np.float64], cell: NDArray[np.float64]
) -> tuple[Indices, Indices]:
    """Row of the box and number of the cell, for each cell that a box lies in; a box without area lies in none."""
    low = ((boxes[:, :2] - origin) // cell).astype(np.int64)
    across, down = (((boxes[:, 2:] - origin) // cell).astype(np.int64) - low + 1).T
    across[(boxes[:, 2:] <= boxes[:, :2]).any(axis=1)] = 0
    rows, within = _expanded(across * down)
    offset = np.stack([within % across[rows], within // across[rows]], axis=1)
    return rows, _number(low[rows] + offset)


def _number(cells: Indices) -> Indices:
    """(N,) one number for the column and row (N, 2) of a cell."""
    numbers: Indices = cells[:, 1] * (2 * _GRID) + cells[:, 0]
    return numbers


def _expanded(counts: Indices) -> tuple[Indices, Indices]:
    """Index ``i``, ``counts[i]`` times, and what number of its repetitions each one is.

    >>> [part.tolist() for part in _expanded(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


def _paired_iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """(P,) intersection over union of row ``i`` of ``a`` and row ``i`` of ``b``, upright boxes that share area."""
    size = np.minimum(a[:, 2:4], b[:, 2:4]) - np.maximum(a[:, :2], b[:, :2])
    shared = size[:, 0] * size[:, 1]
    areas = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]) + (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    overlap: NDArray[np.float64] = shared / (areas - shared)
    return overlap

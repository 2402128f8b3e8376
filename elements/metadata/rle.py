"""Masks as COCO's compressed run lengths: ``{"size": [height, width], "counts": "…"}``, as pycocotools reads them.

Runs go down the columns, background and object in turn, background first (0 long if the first pixel is object). From
the fourth on, the difference to the run two before is kept. Each number is written in groups of five bits, lowest
first, as the characters from 48 on: bit 5 says that more follow, and the highest bit of the last group is the sign.
(maskApi.h of the COCO API.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import BoolArray

Runs = NDArray[np.int64]

_FIRST_CHARACTER = 48
_BITS, _GROUP, _SIGN_BIT, _SIGN, _MORE = 5, 0x1F, 4, 0x10, 0x20
_GROUPS = 7  # enough for runs below 2^34


def encode(mask: BoolArray, origin: tuple[int, int], size: tuple[int, int]) -> dict[str, Any]:
    """The run lengths of a frame that is empty but for ``mask``.

    >>> encode(np.array([[False, True], [True, True]]), (0, 0), (2, 2))
    {'size': [2, 2], 'counts': '13'}

    Args:
        mask: (h, w) pixels of the frame.
        origin: (x, y) of the mask's first pixel; all of it must lie inside of the frame.
        size: (width, height) of the frame in pixels.
    """
    width, height = size
    rows, columns = mask.shape
    pixels = np.zeros(columns * (rows + 1) + 1, bool)  # one more per column, so that no run goes over to the next one
    pixels[1:].reshape(columns, rows + 1)[:, :rows] = mask.T
    column, row = np.divmod(np.flatnonzero(pixels[1:] != pixels[:-1]), rows + 1)
    edges = (column + origin[0]) * height + row + origin[1]
    goes_on = (
        np.flatnonzero(edges[1:-1:2] == edges[2::2]) * 2 + 1
    )  # to the next column, where the mask is as high as it
    edges = np.delete(edges, np.concatenate([goes_on, goes_on + 1]))
    runs = np.diff(edges, prepend=0, append=width * height)
    if len(runs) > 1 and not runs[-1]:
        runs = runs[:-1]
    return {"size": [height, width], "counts": _text(runs)}


def decode(rle: dict[str, Any]) -> BoolArray:
    """(height, width) bool: the frame's mask.

    Raises:
        ValueError: if the runs do not fill the frame.
    """
    height, width = rle["size"]
    runs = _runs(rle["counts"])
    if (runs < 0).any() or runs.sum() != height * width:
        raise ValueError(f"the runs fill {runs.sum()} pixels, not {height} x {width}")
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T


def _text(runs: Runs) -> str:
    rest = runs.copy()
    rest[3:] -= runs[1:-2]
    groups = np.zeros((len(runs), _GROUPS), np.uint8)
    number, open_ = 0, np.ones(len(runs), bool)
    while open_.any():
        bits = rest & _GROUP
        rest >>= _BITS
        more = rest != -(bits >> _SIGN_BIT)
        groups[:, number] = np.where(open_, bits + (more << _BITS) + _FIRST_CHARACTER, 0)
        open_ &= more
        number += 1
    return groups[groups > 0].tobytes().decode()


def _runs(text: str) -> Runs:
    runs: list[int] = []
    value = shift = 0
    for character in text.encode():
        bits = character - _FIRST_CHARACTER
        value |= (bits & _GROUP) << shift
        shift += _BITS
        if bits & _MORE:
            continue
        if bits & _SIGN:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return np.array(runs, np.int64)

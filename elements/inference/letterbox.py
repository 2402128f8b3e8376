"""Where a source picture lies in the network's input: geometry only, no pixels.

Boxes are continuous coordinates of pixel edges (pixel ``i`` covers ``[i, i + 1)``), the convention of cv2.resize, so a
`Placement` (scale per axis and offset) maps them both ways without a half-pixel term.
"""

from __future__ import annotations

import functools
import math
from typing import Literal

import numpy as np

from elements.metadata.detections import IntArray
from elements.metadata.placement import Placement, Placements

Size = tuple[int, int]  # (width, height)
LetterboxMode = Literal["center", "top-left", "stretch", "crop"]
PADDED = ("center", "top-left")  # modes that keep the whole picture and its aspect ratio


@functools.lru_cache(256)
def place(source: Size, network: Size, mode: LetterboxMode) -> Placement:
    """How ``source`` is laid into ``network``; `Placement.to_source` is the exact inverse.

    Args:
        source: (width, height) of the source picture.
        network: (width, height) of the network's input.
        mode: ``center`` and ``top-left`` keep the aspect ratio and pad the rest, ``stretch`` fills the input,
            ``crop`` keeps the aspect ratio, fills the input and loses what is over on both sides.
    """
    if mode == "stretch":
        return Placement(*source, 0, 0, *network)
    if mode == "crop":
        scale = max(network[0] / source[0], network[1] / source[1])
        width, height = max(network[0], int(source[0] * scale)), max(network[1], int(source[1] * scale))
        return Placement(*source, -((width - network[0]) // 2), -((height - network[1]) // 2), width, height)
    width, height = _fitted(source, network, mode)
    if mode == "top-left":
        return Placement(*source, 0, 0, width, height)
    return Placement(*source, (network[0] - width) // 2, (network[1] - height) // 2, width, height)


def place_all(sources: IntArray, network: Size, mode: LetterboxMode) -> Placements:
    """`place` of each of (N, 2) sources (width, height) at once, for the many shapes that crops have."""
    table = np.empty((len(sources), 6))
    sizes, (lefts_tops, shown) = np.array(network, np.float64), (table[:, 2:4], table[:, 4:])
    table[:, :2] = sources
    if mode == "stretch":
        lefts_tops[:], shown[:] = 0, sizes
    elif mode == "crop":
        scale = (sizes / sources).max(axis=1, initial=0)
        shown[:] = np.maximum(sizes, np.trunc(sources * scale[:, None]))
        lefts_tops[:] = -((shown - sizes) // 2)
    else:
        scale = (sizes / sources).min(axis=1, initial=np.inf)
        whole = np.trunc if mode == "top-left" else np.rint  # see `_fitted`
        shown[:] = np.clip(whole(sources * scale[:, None]), 1, sizes)
        lefts_tops[:] = 0 if mode == "top-left" else (sizes - shown) // 2
    return Placements(table)


@functools.lru_cache(256)
def smallest_input(source: Size, network: Size, stride: int, mode: LetterboxMode) -> Size:
    """The smallest input, in multiples of ``stride``, that holds ``source`` at the scale it has in ``network``.

    >>> smallest_input((1920, 1080), (416, 416), 32, "top-left")
    (416, 256)
    """
    if mode not in PADDED:
        return network
    fitted = _fitted(source, network, mode)
    width, height = (min(full, math.ceil(size / stride) * stride) for size, full in zip(fitted, network, strict=True))
    return width, height


def _fitted(source: Size, network: Size, mode: LetterboxMode) -> Size:
    """Size of the picture in whole pixels, rounded as those who train do: ultralytics to the nearest, YOLOX down."""
    scale = min(network[0] / source[0], network[1] / source[1])
    whole = int if mode == "top-left" else round
    width, height = (max(1, min(full, whole(size * scale))) for size, full in zip(source, network, strict=True))
    return width, height

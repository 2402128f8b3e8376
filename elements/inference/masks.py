"""Masks of objects, cut to their boxes, from the coarse planes that networks give."""

from __future__ import annotations

import numpy as np

from elements.inference.letterbox import Size
from elements.metadata.detections import BoolArray, FloatArray, mask_windows
from elements.metadata.placement import Placement


def crop_masks(logits: FloatArray, boxes: FloatArray, size: Size, placement: Placement) -> list[BoolArray]:
    """Masks in source pixels, one per object, each just as large as its box needs.

    A source pixel is inside if the plane is above 0 where the pixel's centre lies (bilinear, edges repeated). Only the
    box's part of the plane is enlarged.

    Args:
        logits: (N, h, w) planes over the whole network input, above 0 inside.
        boxes: (N, 4) xyxy in source pixels, within the frame.
        size: (width, height) of the network's input.
        placement: where the frame lies in it.

    Returns:
        Masks for the pixels that `mask_windows` gives.
    """
    masks = []
    windows = mask_windows(boxes, None, placement.source_width, placement.source_height)
    for plane, (x1, y1, x2, y2) in zip(logits, windows.tolist(), strict=True):
        rows = _Axis.of(y1, y2, placement.scale[1], placement.top, plane.shape[0] / size[1], plane.shape[0])
        columns = _Axis.of(x1, x2, placement.scale[0], placement.left, plane.shape[1] / size[0], plane.shape[1])
        part = plane[rows.first : rows.last + 1, columns.first : columns.last + 1]
        masks.append(rows.blend(columns.blend(part.T).T) > 0)
    return masks


class _Axis:
    """Where source pixels lie between the rows (or columns) of a plane."""

    def __init__(self, places: FloatArray, length: int) -> None:
        places = places.clip(0, length - 1)
        lower = places.astype(np.int64)
        self.first = int(lower[0])
        self.last = min(int(lower[-1]) + 1, length - 1)
        self._lower = lower - self.first
        self._upper = np.minimum(lower + 1, length - 1) - self.first
        self._weight = (places - lower)[:, None]

    @classmethod
    def of(cls, start: int, stop: int, scale: float, offset: float, ratio: float, length: int) -> _Axis:
        """For source pixels ``start`` to ``stop``: their centres times ``scale`` plus ``offset`` are network pixels,
        and ``ratio`` times those are rows of the plane."""
        centers = np.arange(start, stop, dtype=np.float32) + np.float32(0.5)
        return cls((centers * np.float32(scale) + np.float32(offset)) * np.float32(ratio) - np.float32(0.5), length)

    def blend(self, part: FloatArray) -> FloatArray:
        """Rows between those of ``part``, whose first is row `first` of the plane."""
        upper: FloatArray = part[self._upper]
        upper -= part[self._lower]
        upper *= self._weight
        upper += part[self._lower]
        return upper

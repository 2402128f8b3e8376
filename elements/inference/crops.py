"""A part of a frame that a model sees as if it were a frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from elements.inference.frame import Frame, Image, Region
from elements.metadata.detections import Detections, mask_windows


@dataclass(frozen=True, eq=False)
class CropFrame:
    """A region of a frame, as a `Frame`: a model's answer for it is in pixels of the region.

    Attributes:
        frame: the frame that it is cut from.
        region: (x1, y1, x2, y2) in whole pixels of the source picture, inside of it.
    """

    frame: Frame
    region: tuple[int, int, int, int]

    @property
    def width(self) -> int:
        return self.region[2] - self.region[0]

    @property
    def height(self) -> int:
        return self.region[3] - self.region[1]

    @property
    def source_id(self) -> int:
        return self.frame.source_id

    @property
    def source(self) -> str:
        return getattr(self.frame, "source", "")

    @property
    def frame_number(self) -> int:
        return self.frame.frame_number

    @property
    def pts(self) -> int:
        return self.frame.pts

    @property
    def utc_ns(self) -> int:
        return getattr(self.frame, "utc_ns", 0)

    @cached_property
    def tensor(self) -> Any:
        """The region of the frame's tensor, not copied; ``None`` if the frame has none."""
        whole = getattr(self.frame, "tensor", None)
        if whole is None:
            return None
        x1, y1, x2, y2 = scaled_region(self.region, (self.frame.width, self.frame.height), whole.shape[1::-1])
        return whole[y1:y2, x1:x2]

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `Frame.resized`; taken straight from the frame, which need not be converted as a whole."""
        left, top = self.region[:2]
        x1, y1, x2, y2 = region or (0, 0, self.width, self.height)
        return self.frame.resized(width, height, out, (left + x1, top + y1, left + x2, top + y2))

    def to_frame(self, found: Detections) -> Detections:
        """What was found in the region, in pixels of the whole source picture."""
        boxes = found.boxes + np.array(self.region[:2] * 2, np.float32)
        keypoints, masks = found.keypoints, found.masks
        if keypoints is not None:
            keypoints = keypoints + np.array([*self.region[:2], 0], np.float32)
        if masks is not None:  # a box of larger coordinates may round to one pixel less
            windows = mask_windows(boxes, found.angles).tolist()
            masks = [mask[: y2 - y1, : x2 - x1] for mask, (x1, y1, x2, y2) in zip(masks, windows, strict=True)]
        return replace(found, boxes=boxes, keypoints=keypoints, masks=masks)


def crop_region(box: Region, width: int, height: int) -> tuple[int, int, int, int]:
    """A box widened to whole pixels and cut at the edges of a picture; of no extent if it lies outside of it."""
    x1, y1 = max(0, math.floor(box[0])), max(0, math.floor(box[1]))
    x2, y2 = min(width, math.ceil(box[2])), min(height, math.ceil(box[3]))
    return x1, y1, max(x1, x2), max(y1, y2)


def scaled_region(region: Region, size: tuple[int, int], picture: tuple[int, int]) -> tuple[int, int, int, int]:
    """A region of a frame of ``size`` (width, height) in a picture of it that has another size, at least one pixel."""
    sx, sy = picture[0] / size[0], picture[1] / size[1]
    x1, y1 = min(round(region[0] * sx), picture[0] - 1), min(round(region[1] * sy), picture[1] - 1)
    return x1, y1, max(x1 + 1, round(region[2] * sx)), max(y1 + 1, round(region[3] * sy))

"""A part of a frame that a model sees as if it were a frame."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.inference.frame import Frame, Image, Region
from elements.metadata.detections import Detections, IntArray, mask_windows


class CropFrame:
    """A region of a frame, as a `Frame`: a model's answer for it is in pixels of the region.

    Attributes:
        frame: the frame that it is cut from.
        region: (x1, y1, x2, y2) in whole pixels of the source picture, inside of it.
    """

    def __init__(self, frame: Frame, region: tuple[int, int, int, int]) -> None:
        self.frame, self.region = frame, region
        self.width, self.height = region[2] - region[0], region[3] - region[1]
        self.source_id = frame.source_id

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
        x1, y1, x2, y2 = self.region_of(whole.shape[1::-1])
        return whole[y1:y2, x1:x2]

    def region_of(self, picture: tuple[int, int]) -> tuple[int, int, int, int]:
        """The region in a picture of the frame of another size (width, height)."""
        return scaled_region(self.region, (self.frame.width, self.frame.height), picture)

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `Frame.resized`; taken straight from the frame, which need not be converted as a whole."""
        left, top = self.region[:2]
        x1, y1, x2, y2 = region or (0, 0, self.width, self.height)
        return self.frame.resized(width, height, out, (left + x1, top + y1, left + x2, top + y2))


def moved(found: Detections, origin: tuple[int, int]) -> Detections:
    """What was found in a region whose top left corner is ``origin``, in pixels of the whole source picture."""
    boxes = found.boxes + np.array(origin * 2, np.float32)
    keypoints, masks = found.keypoints, found.masks
    if keypoints is not None:
        keypoints = keypoints + np.array([*origin, 0], np.float32)
    if masks is not None:  # a box of larger coordinates may round to one pixel less
        windows = mask_windows(boxes, found.angles).tolist()
        masks = [mask[: y2 - y1, : x2 - x1] for mask, (x1, y1, x2, y2) in zip(masks, windows, strict=True)]
    return replace(found, boxes=boxes, keypoints=keypoints, masks=masks)


def crop_region(box: Region, width: int, height: int) -> tuple[int, int, int, int]:
    """`crop_regions` of one box."""
    x1, y1, x2, y2 = crop_regions(np.array([box]), width, height)[0].tolist()
    return x1, y1, x2, y2


def crop_regions(boxes: NDArray[np.floating], width: int, height: int) -> IntArray:
    """Boxes widened to whole pixels and cut at the edges of a picture.

    Args:
        boxes: (N, 4) xyxy in pixels of the picture, finite.
        width: of the picture, pixels.
        height: of the picture, pixels.

    Returns:
        (N, 4) int64 xyxy; of no extent where a box lies outside of the picture.
    """
    widened = np.concatenate([np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])], axis=1)
    regions: IntArray = np.clip(widened, 0, (width, height, width, height)).astype(np.int64)
    regions[:, 2:] = np.maximum(regions[:, 2:], regions[:, :2])
    return regions


def scaled_region(
    region: tuple[int, int, int, int], size: tuple[int, int], picture: tuple[int, int]
) -> tuple[int, int, int, int]:
    """A region of a frame of ``size`` (width, height) in a picture of it of ``picture``'s size, at least one pixel."""
    if picture == size:
        return region
    sx, sy = picture[0] / size[0], picture[1] / size[1]
    x1, y1 = min(round(region[0] * sx), picture[0] - 1), min(round(region[1] * sy), picture[1] - 1)
    return x1, y1, max(x1 + 1, round(region[2] * sx)), max(y1 + 1, round(region[3] * sy))

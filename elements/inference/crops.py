"""Parts of frames that a model sees as if they were frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

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
        size, region = (self.frame.width, self.frame.height), np.array([self.region])
        ((x1, y1, x2, y2),) = scaled_regions(region, size, tuple(whole.shape[1::-1])).tolist()
        return whole[y1:y2, x1:x2]

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `Frame.resized`; taken straight from the frame, which need not be converted as a whole."""
        left, top = self.region[:2]
        x1, y1, x2, y2 = region or (0, 0, self.width, self.height)
        return self.frame.resized(width, height, out, (left + x1, top + y1, left + x2, top + y2))


class CropBatch(Sequence[CropFrame]):
    """Regions of a few frames, in arrays; for whoever wants single ones, a sequence of `CropFrame` made on demand.

    Attributes:
        frames: the frames, each once.
        frame_of: (N,) int64, place of each region's frame among them, rising.
        regions: (N, 4) int64 x1, y1, x2, y2 in pixels of its frame's source picture, inside of it.
    """

    def __init__(self, frames: Sequence[Frame], frame_of: IntArray, regions: IntArray) -> None:
        self.frames, self.frame_of, self.regions = frames, frame_of, regions

    def __len__(self) -> int:
        return len(self.regions)

    @overload
    def __getitem__(self, index: int) -> CropFrame: ...
    @overload
    def __getitem__(self, index: slice) -> CropBatch: ...
    def __getitem__(self, index: int | slice) -> CropFrame | CropBatch:
        if isinstance(index, slice):
            return CropBatch(self.frames, self.frame_of[index], self.regions[index])
        return CropFrame(self.frames[self.frame_of[index]], tuple(self.regions[index].tolist()))

    def take(self, places: Sequence[int]) -> CropBatch:
        """Those at ``places``, frame after frame; if these are all, in order."""
        return self if len(places) == len(self) else CropBatch(self.frames, self.frame_of[places], self.regions[places])

    @property
    def sizes(self) -> IntArray:
        """(N, 2) width, height in pixels."""
        return self.regions[:, 2:] - self.regions[:, :2]

    @cached_property
    def source_ids(self) -> list[int]:
        """Of each region's frame."""
        ids = [frame.source_id for frame in self.frames]
        return [ids[place] for place in self.frame_of.tolist()]

    def by_frame(self) -> Iterator[tuple[Frame, slice]]:
        """Each frame that has regions here, and where they are."""
        ends = np.searchsorted(self.frame_of, np.arange(len(self.frames)), side="right").tolist()
        for frame, start, end in zip(self.frames, [0, *ends], ends, strict=False):
            if end > start:
                yield frame, slice(start, end)


def taken(frames: Sequence[Frame], places: Sequence[int]) -> Sequence[Frame]:
    """The frames at ``places``, which rise."""
    if len(places) == len(frames):
        return frames
    return frames.take(places) if isinstance(frames, CropBatch) else [frames[place] for place in places]


def source_ids_of(frames: Sequence[Frame]) -> list[int]:
    """Source id of each frame."""
    return frames.source_ids if isinstance(frames, CropBatch) else [frame.source_id for frame in frames]


def sizes_of(frames: Sequence[Frame]) -> IntArray:
    """(N, 2) width and height of each frame in pixels."""
    if isinstance(frames, CropBatch):
        return frames.sizes
    return np.array([(frame.width, frame.height) for frame in frames], np.int64).reshape(-1, 2)


def newest_sizes(frames: Sequence[Frame]) -> dict[int, tuple[int, int]]:
    """Width and height in pixels of the last of the frames of each source, by source id."""
    if isinstance(frames, CropBatch):
        return {
            source_id: (width, height)
            for source_id, (width, height) in zip(frames.source_ids, frames.sizes.tolist(), strict=True)
        }
    return {frame.source_id: (frame.width, frame.height) for frame in frames}


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
    x1, y1, x2, y2 = crop_regions(np.array([box]), np.array([width, height]))[0].tolist()
    return x1, y1, x2, y2


def crop_regions(boxes: NDArray[np.floating], sizes: IntArray) -> IntArray:
    """Boxes widened to whole pixels and cut at the edges of pictures.

    Args:
        boxes: (N, 4) xyxy in pixels of the pictures, finite.
        sizes: width and height of all pictures, (2,), or of each one's, (N, 2).

    Returns:
        (N, 4) int64 xyxy; of no extent where a box lies outside of the picture.
    """
    inside = np.minimum(np.maximum(boxes.reshape(-1, 2, 2), 0), sizes[..., None, :])
    np.ceil(inside[:, 1], out=inside[:, 1])
    corners: IntArray = inside.astype(np.int64)  # drops what is behind the point: of numbers from 0 on the floor
    np.maximum(corners[:, 1], corners[:, 0], out=corners[:, 1])
    return corners.reshape(-1, 4)


def scaled_regions(regions: IntArray, size: tuple[int, int], picture: tuple[int, int]) -> IntArray:
    """(N, 4) regions of a frame of ``size`` (width, height) in a picture of it of another size, at least one pixel."""
    if picture == size:
        return regions
    edges = np.rint(regions * np.tile(np.array(picture) / size, 2)).astype(np.int64)
    edges[:, :2] = np.minimum(edges[:, :2], np.array(picture) - 1)
    edges[:, 2:] = np.maximum(edges[:, 2:], edges[:, :2] + 1)
    return edges

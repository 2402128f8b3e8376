"""The one type between models and metadata: what was found in one frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elements.metadata.rotated import bounds

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_FAR = 1 << 30  # pixels; beyond any frame, within an integer


@dataclass(slots=True)
class Detections:
    """Objects of one frame as a structure of arrays (NumPy, on the host), one row per object.

    Attributes:
        boxes: (N, 4) float32, ``x1, y1, x2, y2`` in source-frame pixels (upright frame, origin at the top left).
            For rotated objects: the unrotated rectangle around the same centre.
        scores: (N,) float32, 0 to 1.
        class_ids: (N,) int64, index into the model's names.
        angles: (N,) float32 radians, positive is clockwise on the screen, about the box centre; ``None`` if upright.
        masks: one (h, w) bool array per object, for the pixels that `mask_windows` gives: those of its box, cut at the
            frame's edges. (0, 0) means that there is none. An (N, H, W) array for whole frames is taken, too, and cut.
        keypoints: (N, K, 3) float32, ``x, y, score``, in source-frame pixels; NaN where there is none.
        embeddings: (N, D) float32.
        track_ids: (N,) int64, -1 where untracked.
        attributes: one mapping per object, in the order of the rows.

    Raises:
        ValueError: if the arrays do not have one row per object, or a mask is larger than its object's box.
    """

    boxes: FloatArray = field(default_factory=lambda: np.empty((0, 4), np.float32))
    scores: FloatArray = field(default_factory=lambda: np.empty(0, np.float32))
    class_ids: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    angles: FloatArray | None = None
    masks: list[BoolArray] | None = None
    keypoints: FloatArray | None = None
    embeddings: FloatArray | None = None
    track_ids: IntArray | None = None
    attributes: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        self.boxes = np.asarray(self.boxes, np.float32).reshape(-1, 4)
        self.scores = np.asarray(self.scores, np.float32)
        self.class_ids = np.asarray(self.class_ids, np.int64)
        rows = len(self.boxes)
        for name in _FIELDS:
            value = getattr(self, name)
            if value is not None and len(value) != rows:
                raise ValueError(f"Detections.{name} has {len(value)} rows, boxes has {rows}")
        if self.masks is not None:
            self.masks = _cut(self.masks, self.boxes, self.angles)

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: Any) -> Detections:
        """Rows picked by a slice, which share memory with these, or copied by a boolean mask or an index array."""
        rows: Any = index if isinstance(index, slice) else np.arange(len(self))[index]
        picked = {}
        for name in _FIELDS:
            value = getattr(self, name)
            if isinstance(value, list) and not isinstance(rows, slice):
                value = [value[i] for i in rows]
            elif value is not None:
                value = value[rows]
            picked[name] = value
        return Detections(**picked)

    @classmethod
    def concatenate(cls, parts: Sequence[Detections]) -> Detections:
        """The objects of all parts, in order, as of several models that looked at one frame.

        What only some parts have is filled: angle 0, no mask, NaN keypoints and embeddings, track id -1, no attributes.
        Objects with fewer keypoints than others get NaN ones at their end.

        Raises:
            ValueError: if embeddings have different lengths.
        """
        parts = [part for part in parts if len(part)]
        if len(parts) < 2:
            return parts[0] if parts else cls()
        return cls(
            **{name: np.concatenate([getattr(p, name) for p in parts]) for name in ("boxes", "scores", "class_ids")},
            angles=_filled(parts, "angles", 0.0),
            masks=_listed(parts, "masks", lambda: np.empty((0, 0), bool)),
            keypoints=_filled(parts, "keypoints", np.nan),
            embeddings=_filled(parts, "embeddings", np.nan),
            track_ids=_filled(parts, "track_ids", -1),
            attributes=_listed(parts, "attributes", dict),
        )

    def clipped(self, width: float, height: float) -> Detections:
        """The same objects with boxes cut at the frame's edges; nothing is dropped.

        Rotated boxes are left as they are: cutting the unrotated rectangle would move the object.
        """
        if self.angles is None:
            limits = np.array([width, height, width, height], np.float32)
            self.boxes = np.clip(self.boxes, 0, limits)
        return self

    def full_masks(self, width: int, height: int) -> BoolArray:
        """(N, height, width) bool: the masks laid into whole frames of this size; nothing where there are none."""
        full = np.zeros((len(self), height, width), bool)
        if self.masks is not None:
            windows = mask_windows(self.boxes, self.angles, width, height)
            for frame, mask, (x1, y1, x2, y2) in zip(full, self.masks, windows.tolist(), strict=True):
                part = mask[: y2 - y1, : x2 - x1]
                frame[y1 : y1 + part.shape[0], x1 : x1 + part.shape[1]] = part
        return full


_FIELDS = tuple(f.name for f in fields(Detections))


def mask_windows(boxes: ArrayLike, angles: ArrayLike | None = None, width: int = _FAR, height: int = _FAR) -> IntArray:
    """The pixels that objects' masks are for: their boxes widened to whole pixels and cut at the frame's edges.

    A rotated object's window is the upright rectangle around its turned box.

    Args:
        boxes: (N, 4) xyxy in source-frame pixels; taken as float32, as `Detections` keeps them.
        angles: (N,) radians, as in `Detections`.
        width: of the source frame in pixels; without it and ``height`` only the left and top edges cut.
        height: as ``width``.

    Returns:
        (N, 4) int64 ``x1, y1, x2, y2``, the last two excluded: a mask is ``frame[y1:y2, x1:x2]``. Empty windows, where
        the box lies outside or is no number, have x1 = x2 or y1 = y2.
    """
    boxes = np.asarray(boxes, np.float32).reshape(-1, 4)
    if angles is not None:
        angles = np.asarray(angles, np.float32)
        boxes = np.where(angles[:, None] == 0, boxes, bounds(boxes, angles)).astype(np.float32)
    low, high = np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])
    windows = np.nan_to_num(np.hstack([low, high]).astype(np.float64), nan=0.0)
    return np.clip(windows, 0, (width, height, width, height)).astype(np.int64)


def _cut(masks: Any, boxes: FloatArray, angles: FloatArray | None) -> list[BoolArray]:
    """Masks as `Detections` keeps them, from its own form or from whole frames."""
    if isinstance(masks, np.ndarray) and masks.ndim == 3:
        height, width = masks.shape[1:]
        windows = mask_windows(boxes, angles, width, height).tolist()
        return [np.asarray(m[y1:y2, x1:x2], bool) for m, (x1, y1, x2, y2) in zip(masks, windows, strict=True)]
    cut = [np.asarray(mask, bool) for mask in masks]
    windows = mask_windows(boxes, angles).tolist()
    for row, (mask, (x1, y1, x2, y2)) in enumerate(zip(cut, windows, strict=True)):
        if mask.ndim != 2 or mask.shape[0] > y2 - y1 or mask.shape[1] > x2 - x1:
            raise ValueError(
                f"Detections.masks[{row}] has shape {mask.shape}; its box covers {y2 - y1} rows and {x2 - x1} columns "
                "(see mask_windows; masks of whole frames are given as one (N, H, W) array)"
            )
    return cut


def _filled(parts: Sequence[Detections], name: str, filling: float) -> Any:
    """One array from all parts' arrays of this name, with ``filling`` where a part has none or fewer keypoints."""
    arrays = [getattr(part, name) for part in parts]
    present = [array for array in arrays if array is not None]
    if not present:
        return None
    tails = {array.shape[1:] for array in present}
    if name != "keypoints" and len(tails) > 1:
        raise ValueError(f"{name} of different sizes cannot be put together: {sorted(tails)}")
    result = np.full((sum(map(len, parts)), *max(tails)), filling, present[0].dtype)
    start = 0
    for part, array in zip(parts, arrays, strict=True):
        if array is not None:
            place = (slice(start, start + len(part)), *map(slice, array.shape[1:]))
            result[place] = array
        start += len(part)
    return result


def _listed(parts: Sequence[Detections], name: str, empty: Any) -> Any:
    """One list from all parts' lists of this name, with ``empty()`` where a part has none."""
    if all(getattr(part, name) is None for part in parts):
        return None
    return [item for part in parts for item in getattr(part, name) or [empty() for _ in range(len(part))]]

"""The objects of a frame as entries of an event, in pixels of the source (configs/schema/event.schema.json)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from elements.metadata.classified import labels_of
from elements.metadata.detections import mask_windows
from elements.metadata.edit import detector_box, find_jsons, lineage_of, mask_of, read_objects
from elements.metadata.masks import mask_in_window
from elements.metadata.placement import Placement, all_to_source
from elements.metadata.rle import encode
from elements.metadata.rotated import corners
from elements.metadata.writer import EMBEDDING, KEYPOINTS, UNTRACKED_OBJECT_ID, number_rows, numbers

ANALYTICS = "analytics"


class ObjectEntries:
    """The objects of some frames as event entries.

    Their places are computed for all frames at once, by `place`: NumPy takes as long for one box as for hundreds.

    Args:
        embeddings: whether objects carry their embeddings.
        masks: whether objects carry their masks.
        keep: called with each ObjectMetadata; the others are left out.
    """

    def __init__(self, embeddings: bool = False, masks: bool = True, keep: Callable[[Any], bool] | None = None) -> None:
        self._attached = (KEYPOINTS, ANALYTICS, EMBEDDING) if embeddings else (KEYPOINTS, ANALYTICS)
        self._masks, self._keep = masks, keep
        self._placements: list[Placement] = []
        self._counts: list[int] = []  # objects per frame
        self._entries: list[dict[str, Any]] = []
        self._boxes: list[tuple[float, float, float, float]] = []  # mux pixels
        self._parents: list[tuple[dict[str, Any], int]] = []  # entries, and the places of their parents in the frame

    def read(self, frame: Any, placement: Placement) -> list[dict[str, Any]]:
        """The frame's objects in the order in which they were added; the places are still missing.

        Args:
            frame: pyservicemaker's FrameMetadata.
            placement: maps the frame's mux pixels to source pixels.
        """
        found = []
        boxes = []
        parents: list[tuple[dict[str, Any], int]] = []
        for item, row, more in read_objects(frame):
            if self._keep is not None and not self._keep(item):
                continue
            class_id, object_id, confidence, label, left, top, width, height, degrees = row
            boxes.append((left, top, left + width, top + height))
            entry: dict[str, Any] = {
                "bbox": None,
                "class_id": class_id,
                "label": label,
                "confidence": _confidence(confidence),
                "track_id": None if object_id == UNTRACKED_OBJECT_ID else object_id,
            }
            angle = math.radians(degrees)
            if angle:
                entry["angle"] = round(angle, 5)
            if more:
                self._add_more(entry, item, angle, placement)
                parents.append((entry, lineage_of(item)[1]))
            found.append(entry)
        if not found:
            return found
        found.reverse()
        self._placements.append(placement)
        self._counts.append(len(found))
        self._entries += found
        self._boxes += reversed(boxes)
        if any(parent for _, parent in parents):
            self._find_parents(frame, parents)
        return found

    def place(self) -> None:
        """Complete the entries: pixels of the source."""
        if not self._entries:
            return
        in_source = all_to_source(np.array(self._boxes, np.float32), self._placements, self._counts)
        sizes = np.array([(p.source_width, p.source_height) * 2 for p in self._placements])
        boxes = np.clip(in_source, 0, sizes.repeat(self._counts, axis=0))
        for place, entry in enumerate(self._entries):
            if "angle" in entry:
                boxes[place] = in_source[place]
                entry["corners"] = [numbers(corner, 2) for corner in corners(in_source[place], entry["angle"])[0]]
        rows = number_rows(boxes, 2)
        for entry, row in zip(self._entries, rows, strict=True):
            entry["bbox"] = row
        for entry, place in self._parents:
            entry["parent"] = place

    def _find_parents(self, frame: Any, parents: Sequence[tuple[dict[str, Any], int]]) -> None:
        """Note where in the frame's entries those objects are in which others were found."""
        shown = [lineage_of(item)[0] for item in frame.object_items if self._keep is None or self._keep(item)]
        places = {own: place for place, own in enumerate(reversed(shown))}
        self._parents += [(entry, places[parent]) for entry, parent in parents if parent in places]

    def _add_more(self, entry: dict[str, Any], item: Any, angle: float, placement: Placement) -> None:
        """What is attached to the object."""
        attributes = _attributes(item)
        if attributes:
            entry["attributes"] = attributes
        entry.update(find_jsons(item, self._attached))
        if KEYPOINTS in entry:
            entry[KEYPOINTS] = _keypoints(entry[KEYPOINTS], placement)
        mask = _mask(item, angle, placement) if self._masks else None
        if mask:
            entry["mask"] = mask


def _confidence(value: float) -> float | None:
    """``None`` where the tracker continued the object without a detection (it writes -0.1), and for NaN."""
    return round(float(value), 4) if value >= 0 else None


def _attributes(item: Any) -> dict[str, Any]:
    """What classifiers found, by classifier; the further labels of one that gives several are in ``more``."""
    entries = {}
    for name, labels in labels_of(item).items():
        first, *more = [
            {
                "label": label.text,
                "class_id": label.class_id,
                "probability": None if label.probability is None else round(label.probability, 4),
            }
            for label in labels
        ]
        entries[name] = {**first, "more": more} if more else first
    return entries


def _keypoints(points: list[list[float | None]], placement: Placement) -> list[list[float | None]]:
    """[x, y, score] each, from mux to source pixels."""
    values = np.array(points, np.float64).reshape(-1, 3)  # None becomes NaN
    values[:, :2] = np.round(placement.points_to_source(values[:, :2].astype(np.float32)).astype(np.float64), 2)
    return number_rows(values, 4)


def _mask(item: Any, angle: float, placement: Placement) -> dict[str, Any] | None:
    """The mask over the source frame as COCO's run lengths.

    It lies over the detector's box, which stays where it was when a tracker moves the object's.
    """
    mask = mask_of(item)
    if mask is None:
        return None
    rect = item.rect_params
    left, top, width, height = detector_box(item) or (rect.left, rect.top, rect.width, rect.height)
    box = placement.to_source(np.array([left, top, left + width, top + height], np.float32))
    size = placement.source_width, placement.source_height
    (window,) = mask_windows(box, [angle] if angle else None, *size).tolist()
    x1, y1, x2, y2 = window
    if x1 >= x2 or y1 >= y2:
        return None
    grid, threshold = mask
    return encode(mask_in_window(grid, threshold, tuple(box.tolist()), window, angle), (x1, y1), size)

"""The objects of a frame as entries of an event, in pixels of the source (configs/schema/event.schema.json)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from elements.metadata.classified import labels_of
from elements.metadata.detections import mask_windows
from elements.metadata.edit import detector_box, find_jsons, lineage_of, mask_of
from elements.metadata.masks import mask_in_window
from elements.metadata.placement import Placement
from elements.metadata.rle import encode
from elements.metadata.rotated import corners
from elements.metadata.writer import EMBEDDING, KEYPOINTS, UNTRACKED_OBJECT_ID, number_rows, numbers

ANALYTICS = "analytics"


def frame_objects(
    frame: Any,
    placement: Placement,
    embeddings: bool = False,
    masks: bool = True,
    keep: Callable[[Any], bool] | None = None,
) -> list[dict[str, Any]]:
    """The frame's objects as event entries, in the order in which they were added.

    Args:
        frame: pyservicemaker's FrameMetadata.
        placement: maps the frame's mux pixels to source pixels.
        embeddings: whether objects carry their embeddings.
        masks: whether objects carry their masks.
        keep: called with each ObjectMetadata; the others are left out.
    """
    attached = (KEYPOINTS, ANALYTICS, EMBEDDING) if embeddings else (KEYPOINTS, ANALYTICS)
    found = []
    boxes = []
    lineage = []
    for item in frame.object_items:
        if keep is not None and not keep(item):
            continue
        rect = item.rect_params
        angle = math.radians(rect.rotation_angle)
        boxes.append((rect.left, rect.top, rect.left + rect.width, rect.top + rect.height))
        entry: dict[str, Any] = {
            "bbox": None,
            "class_id": int(item.class_id),
            "label": item.label,
            "confidence": _confidence(item.confidence),
            "track_id": None if item.object_id == UNTRACKED_OBJECT_ID else int(item.object_id),
        }
        if angle:
            entry["angle"] = round(angle, 5)
        attributes = _attributes(item)
        if attributes:
            entry["attributes"] = attributes
        entry.update(find_jsons(item, attached))
        if KEYPOINTS in entry:
            entry[KEYPOINTS] = _keypoints(entry[KEYPOINTS], placement)
        mask = _mask(item, angle, placement) if masks else None
        if mask:
            entry["mask"] = mask
        lineage.append(lineage_of(item))
        found.append(entry)
    if not found:
        return []
    in_source = placement.to_source(np.array(boxes, np.float32))
    for entry, box in zip(found, in_source, strict=True):
        if "angle" in entry:
            entry["corners"] = [numbers(corner, 2) for corner in corners(box, entry["angle"])[0]]
    upright = np.array([["angle" not in entry] for entry in found])
    in_picture = np.clip(in_source, 0, (placement.source_width, placement.source_height) * 2)
    for entry, row in zip(found, number_rows(np.where(upright, in_picture, in_source), 2), strict=True):
        entry["bbox"] = row
    found, lineage = found[::-1], lineage[::-1]
    places = {own: place for place, (own, _) in enumerate(lineage)}
    for entry, (_, parent) in zip(found, lineage, strict=True):
        if parent and parent in places:
            entry["parent"] = places[parent]
    return found


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

"""Between batch metadata and `FrameView`: what an operator sees, and what becomes of its changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from pyservicemaker import osd

from elements.metadata.detections import Detections
from elements.metadata.edit import attach_json, classify, find_jsons, remove_objects
from elements.metadata.frame_events import EVENTS as EVENTS
from elements.metadata.frame_events import add_events as add_events
from elements.metadata.placement import Placement
from elements.metadata.utc import utc_text
from elements.metadata.writer import UNTRACKED_OBJECT_ID, short_label, write_detections
from pipelines.operators.view import Changes, Drawing, FrameView

ANALYTICS, KEYPOINTS, MODELS = "analytics", "keypoints", "models"
FRAME_DATA = (ANALYTICS, EVENTS, MODELS)
OBJECT_DATA = (ANALYTICS, KEYPOINTS)
FARTHEST = 2**20  # pixels: beyond any picture, within any field
DISPLAY_ELEMENTS = 16  # of each kind in one display meta (MAX_ELEMENTS_IN_DISPLAY_META)


def placement_of(frame_meta: Any, padding: bool, mux_size: tuple[int, int] | None = None) -> Placement:
    """Where the source's picture lies in the frame that the metadata speaks of.

    Args:
        frame_meta: pyservicemaker's FrameMetadata.
        padding: whether the stream mux keeps the aspect ratio by padding (else it stretches).
        mux_size: (width, height) of the mux in pixels, for frames that do not tell it: DeepStream forgets it where it
            copies a batch.
    """
    source = (frame_meta.source_width, frame_meta.source_height)
    mux = (frame_meta.pipeline_width, frame_meta.pipeline_height)
    return _placement(source, mux, mux_size, padding)


def view_of(frame_meta: Any, source: str, placement: Placement, reads: Collection[str] = ()) -> FrameView:
    """A frame as plain arrays.

    Args:
        frame_meta: pyservicemaker's FrameMetadata.
        source: the source's name.
        placement: of the frame.
        reads: names of further data to read from frame and objects.
    """
    rows = list(_rows(frame_meta, (*OBJECT_DATA, *reads)))[::-1]
    boxes = np.array([row["box"] for row in rows], np.float32).reshape(-1, 4)
    angles = np.array([row["angle"] for row in rows], np.float32)
    objects = Detections(
        placement.to_source(boxes),
        np.array([row["score"] for row in rows], np.float32),
        np.array([row["class_id"] for row in rows], np.int64),
        angles=angles if angles.any() else None,
        keypoints=_keypoints([row["data"].pop(KEYPOINTS, None) for row in rows], placement),
        track_ids=np.array([row["track_id"] for row in rows], np.int64),
        attributes=[row["attributes"] for row in rows],
    )
    return FrameView(
        source,
        frame_meta.source_id,
        frame_meta.frame_number,
        frame_meta.buffer_pts / 1e9,
        utc_text(frame_meta.ntp_timestamp),
        (placement.source_width, placement.source_height),
        objects,
        [row["label"] for row in rows],
        [row["component_id"] for row in rows],
        find_jsons(frame_meta, (*FRAME_DATA, *reads)),
        [row["data"] for row in rows],
    )


def apply_changes(view: FrameView, batch_meta: Any, frame_meta: Any, placement: Placement) -> None:
    """Make an operator's changes in the frame that the view was taken of."""
    changes = view.changes
    if changes.removed:
        rows = iter(range(len(view) - 1, -1, -1))  # the predicate is asked in the order of object_items: newest first
        remove_objects(frame_meta, lambda _item: next(rows) in changes.removed)
    if changes.labels or changes.attributes or changes.object_data:
        _change_objects(changes, len(view), frame_meta)
    for name, data in changes.frame_data.items():
        attach_json(frame_meta, name, data)
    add_events(frame_meta, changes.events)
    for objects, labels in changes.added:
        write_detections(batch_meta, frame_meta, objects, placement, (), 0, osd, labels=labels)
    if changes.drawings:
        draw(batch_meta, frame_meta, changes.drawings, placement)


def draw(batch_meta: Any, frame_meta: Any, drawings: Sequence[Drawing], placement: Placement) -> None:
    """Add drawings to a frame for nvdsosd, as display metas of at most 16 texts and lines each."""
    texts = [_text(drawing, placement) for drawing in drawings if drawing.text]
    lines = [line for drawing in drawings if not drawing.text for line in _lines(drawing, placement)]
    for start in range(0, max(len(texts), len(lines)), DISPLAY_ELEMENTS):
        display = batch_meta.acquire_display_meta()
        for text in texts[start : start + DISPLAY_ELEMENTS]:
            display.add_text(text)
        for line in lines[start : start + DISPLAY_ELEMENTS]:
            display.add_line(line)
        frame_meta.append(display)


@lru_cache(maxsize=64)
def _placement(
    source: tuple[int, int], told: tuple[int, int], mux_size: tuple[int, int] | None, padding: bool
) -> Placement:
    return Placement.of(source, told if all(told) else mux_size or source, padding)


def _rows(frame_meta: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects as plain data, newest first; boxes in mux-frame pixels."""
    for item in frame_meta.object_items:
        rect, confidence = item.rect_params, item.confidence
        yield {
            "box": (rect.left, rect.top, rect.left + rect.width, rect.top + rect.height),
            "angle": math.radians(rect.rotation_angle),
            "score": confidence if confidence >= 0 else math.nan,  # the tracker writes -0.1 where it had no detection
            "class_id": int(item.class_id),
            "label": item.label,
            "component_id": int(item.unique_component_id),
            "track_id": -1 if item.object_id == UNTRACKED_OBJECT_ID else int(item.object_id),
            "attributes": {
                found.classifier_type: found.get_n_label(0) for found in item.classifier_items if found.n_labels
            },
            "data": find_jsons(item, names),
        }


def _keypoints(rows: list[Any], placement: Placement) -> Any:
    """(N, K, 3) in source-frame pixels, NaN where an object has fewer; ``None`` if none has any."""
    most = max((len(points) for points in rows if points), default=0)
    if not most:
        return None
    result = np.full((len(rows), most, 3), np.nan, np.float32)
    for row, points in enumerate(rows):
        if points:
            result[row, : len(points)] = np.array(points, np.float32)
    result[..., :2] = placement.points_to_source(result[..., :2])
    return result


def _change_objects(changes: Changes, count: int, frame_meta: Any) -> None:
    left = [row for row in range(count) if row not in changes.removed]
    attributes: dict[int, list[tuple[str, str, float]]] = {}
    for row, name, value, probability in changes.attributes:
        attributes.setdefault(row, []).append((name, value, probability))
    data: dict[int, dict[str, Any]] = {}
    for row, name, value in changes.object_data:
        data.setdefault(row, {})[name] = value
    for row, item in zip(reversed(left), frame_meta.object_items, strict=True):
        if row in changes.labels:
            label, class_id = changes.labels[row]
            item.label = item.text_params.display_text = short_label(label)
            item.class_id = item.class_id if class_id is None else class_id
        for name, value, probability in attributes.get(row, ()):
            classify(item, name, value, probability=probability)
        for name, value in data.get(row, {}).items():
            attach_json(item, name, value)


def _text(drawing: Drawing, placement: Placement) -> Any:
    ((x, y),) = _points(drawing, placement)
    text = osd.Text()
    text.display_text = drawing.text
    text.x_offset, text.y_offset = x, y
    text.font.name, text.font.size = osd.FontFamily.Serif, drawing.size
    text.font.color = osd.Color(*drawing.colour)
    text.set_bg_color = True
    text.bg_color = osd.Color(0.0, 0.0, 0.0, 0.6)
    return text


def _lines(drawing: Drawing, placement: Placement) -> Iterator[Any]:
    points = _points(drawing, placement)
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        line = osd.Line()
        line.x1, line.y1, line.x2, line.y2 = x1, y1, x2, y2
        line.width = drawing.size
        line.color = osd.Color(*drawing.colour)
        yield line


def _points(drawing: Drawing, placement: Placement) -> list[tuple[int, int]]:
    """Whole mux-frame pixels, none below 0: the fields are unsigned."""
    points = placement.points_to_mux(np.array(drawing.points, np.float32)).clip(0, FARTHEST)
    return [(round(x), round(y)) for x, y in points.tolist()]

"""The one place that writes detections into a batch: through pyservicemaker's API, and the editor for what that lacks.

What is written on each object is what nvinfer leaves there, so that nvtracker, nvdsosd and nvmsgconv need not care.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic_core import to_json

from elements.metadata.detections import Detections, FloatArray, mask_windows
from elements.metadata.edit import Editor, attach_json, attach_json_text, find_editor
from elements.metadata.look import Look, look_of, place_text
from elements.metadata.masks import THRESHOLD, mask_over_box
from elements.metadata.object_fields import ObjectFields, c_text
from elements.metadata.placement import Placement
from elements.metadata.plain_editor import PlainEditor

KEYPOINTS = "keypoints"  # JSON of an object: [[x, y, score], …] in mux-frame pixels
EMBEDDING = "embedding"  # JSON of an object: [number, …]
UNTRACKED_OBJECT_ID = 2**64 - 1
LABEL_BYTES = 127  # MAX_LABEL_SIZE of nvdsmeta.h less the terminator; the native setter does not check


def write_detections(
    batch_meta: Any,
    frame_meta: Any,
    detections: Detections,
    placement: Placement,
    names: Sequence[str],
    component_id: int,
    osd: ModuleType,
    class_offset: int = 0,
    parent: Any = None,
    labels: Sequence[str] | None = None,
) -> None:
    """Append one object per detection to a frame.

    Args:
        batch_meta: pyservicemaker BatchMetadata, which makes the objects.
        frame_meta: FrameMetadata that gets them.
        detections: boxes in source-frame pixels; ``angles`` in radians become degrees, ``masks`` grids over the boxes
            (see `masks`), ``attributes`` classifier labels (see `_classify`), ``keypoints`` (in the same pixels as the
            boxes of the metadata) and ``embeddings`` JSON of these names.
        placement: where the source picture lies in the frame that the metadata speaks of.
        names: class names by number; a number beyond them serves as its own name.
        component_id: ``unique_component_id`` of the objects.
        osd: the ``osd`` module of the same pyservicemaker.
        class_offset: added to the class numbers, so that those of several models stay apart.
        parent: ObjectMetadata of the same frame in which they were found.
        labels: a class name per row, in place of ``names``.
    """
    if not len(detections):
        return
    rows = _rows(detections, placement, names, class_offset, labels)
    editor, look = find_editor(frame_meta), look_of(osd)
    if isinstance(editor, PlainEditor):
        editor.append_objects(frame_meta, rows, component_id, look)
    else:
        _append_objects(batch_meta, frame_meta, rows, component_id, look, editor)
    if editor is not None and (parent is not None or _has_more(detections)):
        keypoints = _keypoints_in_mux(detections, placement)
        newest_first = range(len(rows) - 1, -1, -1)
        for row, object_meta in zip(newest_first, frame_meta.object_items, strict=False):
            _write_more(editor, object_meta, detections, row, keypoints, component_id)
            if parent is not None:
                editor.set_parent(object_meta, parent)


def _rows(
    detections: Detections,
    placement: Placement,
    names: Sequence[str],
    class_offset: int,
    labels: Sequence[str] | None,
) -> list[ObjectFields]:
    """What `write_detections` writes on each object, but for what few detections have."""
    count = len(detections)
    class_ids = detections.class_ids.tolist()
    if labels is None:
        labels = [names[number] if number < len(names) else str(number) for number in class_ids]
    boxes = placement.to_mux(detections.boxes).tolist()
    degrees = [0.0] * count if detections.angles is None else [math.degrees(a) for a in detections.angles.tolist()]
    tracks = [-1] * count if detections.track_ids is None else detections.track_ids.tolist()
    scores = detections.scores.tolist()
    return [
        ObjectFields(
            number + class_offset,
            track if track >= 0 else UNTRACKED_OBJECT_ID,
            score,
            short_label(label),
            x1,
            y1,
            x2 - x1,
            y2 - y1,
            turn,
        )
        for number, track, score, label, (x1, y1, x2, y2), turn in zip(
            class_ids, tracks, scores, labels, boxes, degrees, strict=True
        )
    ]


def _append_objects(
    batch_meta: Any, frame_meta: Any, rows: Sequence[ObjectFields], component_id: int, look: Look, editor: Editor | None
) -> None:
    """Through pyservicemaker's API, as DeepStream needs it."""
    rect, text = look
    for row in rows:
        object_meta = batch_meta.acquire_object_meta()
        object_meta.class_id = row.class_id
        object_meta.confidence = row.confidence
        object_meta.label = row.label
        object_meta.unique_component_id = component_id
        object_meta.object_id = row.object_id
        # Assigning a struct copies it, so one of each serves for all objects; but of a text DeepStream copies only the
        # pointer, so that each object's text is set in its own struct.
        rect.left, rect.top, rect.width, rect.height = row.left, row.top, row.width, row.height
        rect.rotation_angle = row.degrees
        object_meta.rect_params = rect
        place_text(text, row.left, row.top)
        object_meta.text_params = text
        object_meta.text_params.display_text = row.label
        if editor is not None:
            editor.set_detector_box(object_meta, row.left, row.top, row.width, row.height)
        frame_meta.append(object_meta)


def _has_more(detections: Detections) -> bool:
    """Whether there is something that `_write_more` writes."""
    extras = (detections.masks, detections.attributes, detections.keypoints, detections.embeddings)
    return any(extra is not None for extra in extras)


def annotate(object_meta: Any, found: Detections, task: str, placement: Placement, classifier: str) -> None:
    """Write a vector or key points that a second model found of an object that is there already: its best row.

    Args:
        object_meta: ObjectMetadata.
        found: at least one row, keypoints in source-frame pixels.
        task: ``embed`` or ``pose``: JSON as `write_detections` attaches it.
        placement: see `write_detections`.
        classifier: name of the second model's stage.

    Raises:
        ValueError: if ``found`` lacks what the task should give.
        EditError: see `elements.metadata.edit`.
    """
    best = int(found.scores.argmax())
    if task == "embed":
        if found.embeddings is None:
            raise ValueError(f"{classifier}: a model for task embed must return embeddings")
        _write_vector(object_meta, found.embeddings[best])
        return
    points = _keypoints_in_mux(found, placement)
    if points is None:
        raise ValueError(f"{classifier}: a model for task {task} must return keypoints")
    _write_json(object_meta, KEYPOINTS, _without_padding(points[best]))


@functools.lru_cache(1024)
def short_label(label: str) -> str:
    """At most 127 bytes of UTF-8, cut between characters.

    >>> short_label("person")
    'person'
    """
    return c_text(label).encode()[:LABEL_BYTES].decode(errors="ignore")


def numbers(values: Iterable[float], digits: int) -> list[float | None]:
    """Floats rounded for JSON, which knows neither NaN nor infinity: ``None`` instead.

    >>> numbers([1.23456, math.nan], 2)
    [1.23, None]
    """
    return [round(float(value), digits) if math.isfinite(value) else None for value in values]


def number_rows(values: ArrayLike, digits: int) -> list[list[float | None]]:
    """`numbers` of each row of a matrix, at once."""
    rounded = np.round(np.asarray(values, np.float64), digits)
    if not np.isfinite(rounded).all():
        return [numbers(row, digits) for row in rounded]
    rows: list[list[float | None]] = rounded.tolist()
    return rows


def _write_more(
    editor: Editor, object_meta: Any, detections: Detections, row: int, keypoints: FloatArray | None, component_id: int
) -> None:
    if detections.masks is not None:
        _write_mask(editor, object_meta, detections, row)
    if detections.attributes is not None:
        _classify(editor, object_meta, detections.attributes[row], component_id)
    if keypoints is not None:
        _write_json(object_meta, KEYPOINTS, _without_padding(keypoints[row]))
    if detections.embeddings is not None:
        _write_vector(object_meta, detections.embeddings[row])


def _write_mask(editor: Editor, object_meta: Any, detections: Detections, row: int) -> None:
    """The object's mask as a grid over its box. A box outside of the picture has none."""
    assert detections.masks is not None
    mask = detections.masks[row]
    x1, y1, x2, y2 = box = detections.boxes[row].tolist()
    if not mask.size or x2 <= x1 or y2 <= y1:
        return
    angle = float(detections.angles[row]) if detections.angles is not None else 0.0
    ((left, top, _, _),) = mask_windows(box, None if not angle else [angle]).tolist()
    editor.set_mask(object_meta, mask_over_box(mask, (left, top), box, angle), THRESHOLD)


def _keypoints_in_mux(detections: Detections, placement: Placement) -> FloatArray | None:
    """(N, K, 3) x, y in mux-frame pixels, score."""
    if detections.keypoints is None:
        return None
    points = np.array(detections.keypoints, np.float32)
    points[..., :2] = placement.points_to_mux(points[..., :2])
    return points


def _without_padding(points: FloatArray) -> list[list[float | None]]:
    """Points as lists, without those at the end that are only there because other objects have more."""
    there = np.flatnonzero(~np.isnan(points).any(axis=1))
    return number_rows(points[: there[-1] + 1 if there.size else 0], 4)


def _write_json(object_meta: Any, name: str, values: list[Any]) -> None:
    """Nothing where the object has none, as one from another model."""
    if any(value is not None for value in values):
        attach_json(object_meta, name, values)


def _write_vector(object_meta: Any, vector: FloatArray) -> None:
    """As `_write_json`; pydantic's encoder takes a seventh of the time of json's for many numbers."""
    (values,) = number_rows(vector[None], 6)
    if any(value is not None for value in values):
        attach_json_text(object_meta, EMBEDDING, to_json(values).decode())


def _classify(editor: Editor, object_meta: Any, attributes: Mapping[str, Any], component_id: int) -> None:
    """Each attribute as the label of a classifier of that name.

    A value is the label, or a mapping with ``label`` and optionally ``class_id`` and ``probability``.

    Raises:
        ValueError: for a mapping without label.
    """
    for classifier, value in attributes.items():
        given = value if isinstance(value, Mapping) else {"label": value}
        if "label" not in given:
            raise ValueError(f"attribute {classifier!r} is {value!r}: a label or a mapping with 'label' is needed")
        class_id, probability = int(given.get("class_id", 0)), float(given.get("probability", 1.0))
        editor.classify(object_meta, classifier, str(given["label"]), class_id, probability, component_id)

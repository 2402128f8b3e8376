"""The one place that writes detections into a batch: through pyservicemaker's API, and the editor for what that lacks.

What is written on each object is what nvinfer leaves there, so that nvtracker, nvdsosd and nvmsgconv need not care.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from elements.metadata.detections import Detections, FloatArray
from elements.metadata.edit import Editor, find_editor
from elements.metadata.placement import Placement

UNTRACKED_OBJECT_ID = 2**64 - 1
LABEL_BYTES = 127  # MAX_LABEL_SIZE of nvdsmeta.h less the terminator; the native setter does not check
BORDER_WIDTH = 3
FONT_SIZE = 11
TEXT_ABOVE = 10  # pixels from the box's top to the label's


def write_detections(
    batch_meta: Any,
    frame_meta: Any,
    detections: Detections,
    placement: Placement,
    names: Sequence[str],
    component_id: int,
    osd: ModuleType,
) -> None:
    """Append one object per detection to a frame.

    Args:
        batch_meta: pyservicemaker BatchMetadata, which makes the objects.
        frame_meta: FrameMetadata that gets them.
        detections: boxes in source-frame pixels; ``angles`` in radians become degrees, ``masks`` are cut to the boxes,
            ``attributes`` become classifier labels (see `_classify`).
        placement: where the source picture lies in the frame that the metadata speaks of.
        names: class names by number; a number beyond them serves as its own name.
        component_id: ``unique_component_id`` of the objects.
        osd: the ``osd`` module of the same pyservicemaker.
    """
    if not len(detections):
        return
    rect, text = _red_rect(osd), _white_text(osd)
    boxes = placement.to_mux(detections.boxes).tolist()
    scores, class_ids = detections.scores.tolist(), detections.class_ids.tolist()
    angles = detections.angles.tolist() if detections.angles is not None else [0.0] * len(boxes)
    tracks = detections.track_ids.tolist() if detections.track_ids is not None else [-1] * len(boxes)
    for row, (x1, y1, x2, y2) in enumerate(boxes):
        class_id, track = class_ids[row], tracks[row]
        label = short_label(names[class_id] if class_id < len(names) else str(class_id))
        object_meta = batch_meta.acquire_object_meta()
        object_meta.class_id = class_id
        object_meta.confidence = scores[row]
        object_meta.label = label
        object_meta.unique_component_id = component_id
        object_meta.object_id = track if track >= 0 else UNTRACKED_OBJECT_ID
        # Assigning a struct copies it, so one of each serves for all objects; but of a text DeepStream copies only the
        # pointer, so that each object's text is set in its own struct.
        rect.left, rect.top, rect.width, rect.height = x1, y1, x2 - x1, y2 - y1
        rect.rotation_angle = math.degrees(angles[row])
        object_meta.rect_params = rect
        text.x_offset, text.y_offset = max(0, int(x1)), max(0, int(y1) - TEXT_ABOVE)  # unsigned fields
        object_meta.text_params = text
        object_meta.text_params.display_text = label
        editor = find_editor(object_meta)
        if editor is not None:
            editor.set_detector_box(object_meta, x1, y1, x2 - x1, y2 - y1)
            if detections.masks is not None:
                _write_mask(editor, object_meta, detections, row)
            if detections.attributes is not None:
                _classify(editor, object_meta, detections.attributes[row], component_id)
        frame_meta.append(object_meta)


def short_label(label: str) -> str:
    """At most 127 bytes of UTF-8, cut between characters.

    >>> short_label("person")
    'person'
    """
    return label.encode()[:LABEL_BYTES].decode(errors="ignore")


def _write_mask(editor: Editor, object_meta: Any, detections: Detections, row: int) -> None:
    """The part of the mask that the box covers. A box outside of the picture gets none."""
    assert detections.masks is not None
    mask = detections.masks[row]
    height, width = mask.shape
    x1, y1, x2, y2 = np.clip(np.round(detections.boxes[row]), 0, (width, height, width, height)).astype(int)
    part: FloatArray = mask[y1:y2, x1:x2].astype(np.float32)
    if part.size:
        editor.set_mask(object_meta, part, 0.5)


def _classify(editor: Editor, object_meta: Any, attributes: Mapping[str, Any], component_id: int) -> None:
    """Each attribute as the label of a classifier of that name.

    A value is the label, or a mapping with ``label`` and optionally ``class_id`` and ``probability``.
    """
    for classifier, value in attributes.items():
        given = value if isinstance(value, Mapping) else {"label": value}
        class_id, probability = int(given.get("class_id", 0)), float(given.get("probability", 1.0))
        editor.classify(object_meta, classifier, str(given["label"]), class_id, probability, component_id)


def _red_rect(osd: Any) -> Any:
    rect = osd.Rect()
    rect.border_width = BORDER_WIDTH
    rect.border_color = osd.Color(1.0, 0.0, 0.0, 1.0)
    return rect


def _white_text(osd: Any) -> Any:
    text = osd.TextParams()
    font = text.font_params
    font.name = osd.FontFamily.Serif
    font.size = FONT_SIZE
    font.color = osd.Color(1.0, 1.0, 1.0, 1.0)
    text.set_bg_clr = 1
    text.text_bg_clr = osd.Color(0.0, 0.0, 0.0, 1.0)
    return text

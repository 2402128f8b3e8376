"""The objects of a frame as plain rows, for readers of many: a few times as fast as reading each one's attributes."""

from __future__ import annotations

from typing import Any

ObjectRow = tuple[int, int, str, int, float, float, float, float, float]
"""Place among the frame's ``object_items``; class number; label; track id (``object_id``); left, top, width and height
of ``rect_params`` in mux-frame pixels, unrotated; degrees by which it is turned, clockwise on the screen."""


def read_rows(frame_meta: Any, component_id: int) -> list[ObjectRow]:
    """The objects of a component, through pyservicemaker's API alone."""
    rows: list[ObjectRow] = []
    for place, item in enumerate(frame_meta.object_items):
        if item.unique_component_id == component_id:
            r = item.rect_params
            box = (r.left, r.top, r.width, r.height)
            rows.append((place, item.class_id, item.label, item.object_id, *box, r.rotation_angle))
    return rows

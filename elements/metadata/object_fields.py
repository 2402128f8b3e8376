"""What is written on every object that was found, in the fields' own units."""

from __future__ import annotations

from typing import NamedTuple


class ObjectFields(NamedTuple):
    """Places in mux-frame pixels; ``degrees`` clockwise on the screen; ``label`` fits DeepStream's field."""

    class_id: int
    object_id: int
    confidence: float
    label: str
    left: float
    top: float
    width: float
    height: float
    degrees: float

"""What is written on every object that was found, in the fields' own units: of one object, and of many."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple


@functools.lru_cache(1024)
def c_text(text: str) -> str:
    """As a C string can hold it: up to the first NUL, with question marks for what UTF-8 cannot say.

    >>> c_text("red\\0 car")
    'red'
    """
    return text.partition("\0")[0].encode(errors="replace").decode()


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


class ObjectColumns(NamedTuple):
    """Objects of a frame, field by field: for readers of many, a few times as fast as one object after another.

    Attributes:
        places: their places among the frame's ``object_items``.
        class_ids: as in `ObjectFields`.
        object_ids: as in `ObjectFields`.
        labels: as in `ObjectFields`.
        rects: left, top, width, height and degrees, as in `ObjectFields`.
    """

    places: list[int]
    class_ids: list[int]
    object_ids: list[int]
    labels: list[str]
    rects: list[tuple[float, float, float, float, float]]

    @classmethod
    def joined(cls, parts: Sequence[ObjectColumns]) -> ObjectColumns:
        """Those of several frames, one after the other."""
        return parts[0] if len(parts) == 1 else cls(*(list(chain(*columns)) for columns in zip(*parts, strict=True)))

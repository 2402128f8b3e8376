"""What a source has otherwise than the infer stages say."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from elements.analytics.geometry import Point
from elements.inference.errors import ModelError
from elements.inference.source_options import parse_region
from pipelines.definition.fields import Integer, Number, wrong_text
from pipelines.definition.scalars import resolve
from pipelines.definition.sections import Section, option
from pipelines.definition.stages.types import ClassFilter, Model


def _parse_region(value: Any) -> tuple[Point, ...] | None:
    if value is None:
        return None
    plain = _resolved(value)
    if not _is_numbers(plain):
        raise wrong_text("is not a list of numbers", "write [left, top, right, bottom], or [[x, y], [x, y], [x, y]]")
    try:
        return parse_region(plain)
    except ModelError as error:
        raise wrong_text(str(error).removeprefix("region: ")) from None


def _resolved(value: Any) -> Any:
    return [_resolved(item) for item in value] if isinstance(value, list | tuple) else resolve(value)


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numbers(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_POINT = {"type": "array", "items": _SHARE, "minItems": 2, "maxItems": 2}
Region = Annotated[
    tuple[Point, ...] | None,
    PlainValidator(_parse_region),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _SHARE, "minItems": 4, "maxItems": 4},
                {"type": "array", "items": _POINT, "minItems": 3},
                {"type": "null"},
            ]
        }
    ),
]
"""A polygon of (x, y) shares of the picture's width and height."""


class SourceInfer(Section):
    """Options of one infer stage for this source; the others keep the stage's."""

    confidence: Number | None = option(None, ge=0, le=1, description="Objects below this confidence are left out.")
    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Classes to keep, names or ids, of those that the stage keeps."
    )
    interval: Integer | None = option(None, ge=0, description="Frames skipped between two inferences.")
    region: Region = option(
        None,
        description="[left, top, right, bottom] or a polygon [[x, y], …], from 0 to 1 of the picture: "
        "objects whose box has its centre outside are left out.",
    )
    model: Model | None = option(
        None, description="Model for this source, with the stage's other options; sources with the same one share it."
    )

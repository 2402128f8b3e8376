"""The filter stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from elements.analytics.geometry import Point, polygon_problem
from elements.filtering.rules import LARGEST_CLASS
from pipelines.definition.fields import Duration, Integer, Number, wrong_text
from pipelines.definition.scalars import resolve
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.types import ClassFilter, Size, StageName

Polygon = tuple[Point, ...]

_ODD = ";:|"  # what separates classes in the element's properties


def _check_class(item: int | str) -> int | str:
    if isinstance(item, str) and (any(sign in item for sign in _ODD) or not item.strip()):
        raise wrong_text(f"the class '{item}' is empty or has one of {_ODD} in it", "use its number")
    return item


def _mapping(kind: type, what: str, example: str, most: float = 0) -> Any:
    def parse(value: Any) -> Any:
        if not isinstance(value, dict):
            raise wrong_text(f"is not a mapping from classes to {what}", f"write {example}")
        result = {}
        for key, item in value.items():
            name = resolve(key)
            plain: Any = str(item) if kind is str else resolve(item)
            fits = isinstance(plain, kind) or (kind is float and isinstance(plain, int))
            fits = fits and (kind is str or 0 <= plain <= most)
            if isinstance(plain, bool) or not fits or not isinstance(name, int | str):
                raise wrong_text(f"'{key}: {item}' does not give {what}", f"write {example}")
            result[_check_class(name)] = _check_class(plain) if kind is str else plain
        return result

    return PlainValidator(parse)


def _parse_polygons(value: Any) -> tuple[Polygon, ...]:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, list) or not value:
        raise wrong_text("is not a list of polygons", "write [[[0, 0], [0.5, 0], [0.5, 1]]]")
    return tuple(_parse_polygon(item) for item in value)


def _parse_polygon(value: Any) -> Polygon:
    points = tuple(_parse_point(point) for point in value) if isinstance(value, list) else ()
    if len(points) < 3:
        raise wrong_text("a polygon needs three points at least", "write [[0, 0], [0.5, 0], [0.5, 1]]")
    problem = polygon_problem(points)
    if problem is not None:
        raise wrong_text(*problem)
    return points


def _parse_point(value: Any) -> Point:
    numbers = [resolve(part) for part in value] if isinstance(value, list) else []
    if len(numbers) != 2 or not all(isinstance(n, int | float) and 0 <= n <= 1 for n in numbers):
        raise wrong_text("a point is [x, y], both from 0 to 1 of the picture's width and height", "write [0.5, 0.25]")
    return float(numbers[0]), float(numbers[1])


def _above(other: str) -> Callable[[Any, ValidationInfo], Any]:
    """Checks a largest value against the smallest one, which comes first and is not there if it is wrong."""

    def check(largest: Any, info: ValidationInfo) -> Any:
        smallest = info.data.get(other)
        pairs = zip(np.atleast_1d(smallest), np.atleast_1d(largest), strict=True) if smallest is not None else ()
        if any(0 < most < least for least, most in pairs):
            raise wrong_text(f"is below {other}, so nothing could pass", f"raise it, or lower {other}")
        return largest

    return check


def _json_mapping(kind: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "object", "additionalProperties": {"type": sorted({kind, "string"})}})


_POINT_SCHEMA = {"type": "array", "items": {"type": ["number", "string"]}, "minItems": 2, "maxItems": 2}
Polygons = Annotated[
    tuple[Polygon, ...],
    PlainValidator(_parse_polygons),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": _POINT_SCHEMA, "minItems": 3}, "minItems": 1}),
]
"""Polygons of (x, y) from 0 to 1, relative to the source's width and height."""
FilterClass = Annotated[ClassFilter, AfterValidator(_check_class)]
Names = Annotated[dict[int | str, str], _mapping(str, "names", "{car: vehicle}"), _json_mapping("string")]
Numbers = Annotated[
    dict[int | str, int], _mapping(int, "class numbers", "{car: 3}", LARGEST_CLASS), _json_mapping("integer")
]
Confidences = Annotated[
    dict[int | str, float], _mapping(float, "confidences", "{person: 0.5}", 1), _json_mapping("number")
]


class FilterStage(OneKey):
    """Keep, drop, rename and merge objects (pymetafilter)."""

    KEY: ClassVar[str] = "filter"

    name: StageName | None = option(None, description="Name of this stage; default: filter, filter-2 …")
    rename: Names | None = option(None, description="New class names by old name or number: {car: vehicle}.")
    remap: Numbers | None = option(None, description="New class numbers by old name or number: {car: 3}.")
    keep: tuple[FilterClass, ...] | None = option(
        None, min_length=1, description="Classes that stay, by their new names or numbers; default: all."
    )
    drop: tuple[FilterClass, ...] | None = option(None, min_length=1, description="Classes that go.")
    confidence: Number = option(0, ge=0, le=1, description="Objects below this confidence go.")
    class_confidence: Confidences | None = option(
        None, description="The same for single classes, in place of confidence: {person: 0.5}."
    )
    min_size: Size | None = option(None, description="Smallest box that stays, source pixels: 20x40.")
    max_size: Annotated[Size, AfterValidator(_above("min_size"))] | None = option(
        None, description="Largest box that stays, source pixels: 800x600."
    )
    min_aspect: Annotated[Number, Field(ge=0)] | None = option(None, description="Smallest width / height that stays.")
    max_aspect: Annotated[Number, Field(ge=0), AfterValidator(_above("min_aspect"))] | None = option(
        None, description="Largest width / height that stays."
    )
    regions: Polygons | None = option(
        None,
        description="Objects stay if they stand in one of these polygons, points from 0 to 1; default: everywhere.",
    )
    exclude: Polygons | None = option(None, description="Objects that stand in one of these polygons go.")
    min_age: Duration | None = option(
        None, description="Objects go until their track has been seen for so long; untracked ones go, too."
    )
    merge_iou: Number = option(
        0, ge=0, le=1, description="Objects of one class from different models that overlap so much are one; 0: never."
    )
    limit: Integer = option(0, ge=0, description="Most objects per frame, the surest ones; 0: all.")

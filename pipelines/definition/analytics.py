"""Rules of the analyze stage: zones, lines and directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from elements.analytics.geometry import Point, polygon_problem, turn
from pipelines.definition.fields import Integer, Name, Number, wrong_text
from pipelines.definition.scalars import resolve
from pipelines.definition.sections import Section, option
from pipelines.definition.stages.types import ClassFilter

_POINT_HINT = "a point is [x, y], both from 0 to 1 of the picture's width and height"


def _parse_pair(value: Any) -> Point | None:
    """Two numbers; ``None`` for anything else."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    numbers = [resolve(part) for part in value]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        return None
    return float(numbers[0]), float(numbers[1])


def _parse_point(value: Any) -> Point:
    point = _parse_pair(value)
    if point is None:
        raise wrong_text("is not a point", _POINT_HINT)
    if not (0 <= point[0] <= 1 and 0 <= point[1] <= 1):
        raise wrong_text(f"the point [{point[0]:g}, {point[1]:g}] is outside of the picture", _POINT_HINT)
    return point


def _parse_points(least: int, most: float, what: str) -> Callable[[Any], tuple[Point, ...]]:
    def parse(value: Any) -> tuple[Point, ...]:
        points = tuple(_parse_point(item) for item in value) if isinstance(value, list | tuple) else ()
        if not least <= len(points) <= most:
            raise wrong_text(what, f"not {len(points)}" if points else _POINT_HINT)
        return points

    return parse


def _check_area(points: tuple[Point, ...]) -> tuple[Point, ...]:
    problem = polygon_problem(points)
    if problem is not None:
        raise wrong_text(*problem)
    return points


def _parse_vector(value: Any) -> Point:
    vector = _parse_pair(value)
    if vector is None or vector == (0, 0):
        raise wrong_text("is not a direction", "write [x, y], as in [1, 0] to the right or [0, 1] downwards")
    return vector


def _check_ends(points: tuple[Point, Point]) -> tuple[Point, Point]:
    if points[0] == points[1]:
        raise wrong_text("both ends of the line are the same point", "give it a length")
    return points


def _check_side(towards: Point, info: ValidationInfo) -> Point:
    """It must be beside the line; ``points`` come first, and are not there if they are wrong."""
    points: tuple[Point, Point] | None = info.data.get("points")
    if points is not None and math.isclose(turn(*points, towards), 0, abs_tol=1e-9):
        raise wrong_text("lies on the line, so it does not say which way is in", "take a point beside it")
    return towards


_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_PAIR = {"type": "array", "minItems": 2, "maxItems": 2}
_POINT: dict[str, Any] = {**_PAIR, "items": _SHARE}

SharePoint = Annotated[Point, PlainValidator(_parse_point), WithJsonSchema(_POINT)]
Vector = Annotated[Point, PlainValidator(_parse_vector), WithJsonSchema({**_PAIR, "items": {"type": "number"}})]
Polygon = Annotated[
    tuple[Point, ...],
    PlainValidator(_parse_points(3, math.inf, "a polygon needs three points at least")),
    AfterValidator(_check_area),
    WithJsonSchema({"type": "array", "items": _POINT, "minItems": 3}),
]
Ends = Annotated[
    tuple[Point, Point],
    PlainValidator(_parse_points(2, 2, "a line has two points")),
    AfterValidator(_check_ends),
    WithJsonSchema({"type": "array", "items": _POINT, "minItems": 2, "maxItems": 2}),
]


class Rule(Section):
    """What zones, lines and directions share."""

    name: Name = Field(description="Name in results and events; each source has it once.")
    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Classes that count, names or ids; default: all."
    )
    sources: tuple[Name, ...] | None = option(
        None, min_length=1, description="Names of the sources that have this rule; default: all."
    )


class ZoneRule(Rule):
    """An area that objects enter, stay in and leave."""

    polygon: Polygon = Field(description="Corners [[x, y], …], from 0 to 1 of the picture's width and height.")
    crowded_at: Integer | None = option(
        None, ge=1, description="So many objects inside are overcrowding; default: any number is fine."
    )


class LineRule(Rule):
    """A line that objects cross."""

    points: Ends = Field(description="Both ends [[x, y], [x, y]], from 0 to 1 of the picture's width and height.")
    towards: Annotated[SharePoint, AfterValidator(_check_side)] = Field(
        description="A point on the side where crossing objects go in, from 0 to 1; from there they go out."
    )


class DirectionRule(Rule):
    """A direction that objects move in."""

    vector: Vector = Field(description="Right and down as shares of the picture: [1, 0] is to the right.")
    tolerance: Number = option(45, gt=0, le=180, description="How far off a movement may be, degrees.")

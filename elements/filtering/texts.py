"""The rules of a filter as texts that gst-launch can say, and back. No GStreamer here: the builder uses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from elements.analytics.geometry import polygon_problem
from elements.filtering.rules import LARGEST_CLASS, FilterRules, Polygon

T = TypeVar("T")


def properties_of(rules: FilterRules) -> dict[str, str | float | int]:
    """The properties that say the rules; those that say nothing are left out."""
    texts: dict[str, str | float | int] = {
        "rename": _pairs(rules.rename),
        "remap": _pairs(rules.remap),
        "keep": ";".join(map(str, rules.keep)),
        "drop": ";".join(map(str, rules.drop)),
        "confidence": rules.confidence,
        "class-confidence": _pairs(rules.class_confidence),
        "min-size": _size_text(rules.min_size),
        "max-size": _size_text(rules.max_size),
        "min-aspect": rules.min_aspect,
        "max-aspect": rules.max_aspect,
        "regions": _polygon_text(rules.regions),
        "exclude": _polygon_text(rules.exclude),
        "min-age": rules.min_age,
        "merge-iou": rules.merge_iou,
        "limit": rules.limit,
    }
    return {name: value for name, value in texts.items() if value}


def _class(text: str) -> str | int:
    text = text.strip()
    if not text:
        raise ValueError("a class is empty")
    return int(text) if text.isdigit() else text


def _classes(text: str) -> tuple[str | int, ...]:
    return tuple(_class(part) for part in text.split(";"))


def _mapping(text: str, kind: Callable[[str], T]) -> dict[str | int, T]:
    result = {}
    for part in text.split(";"):
        name, colon, value = part.rpartition(":")
        if not colon:
            raise ValueError(f"'{part}' has no colon")
        result[_class(name)] = kind(value.strip())
    return result


def _size(text: str) -> tuple[float, float]:
    width, cross, height = text.partition("x")
    if not cross:
        raise ValueError("no size")
    return _number(width), _number(height)


def _polygons(text: str) -> tuple[Polygon, ...]:
    polygons = []
    for outline in text.split("|"):
        points = tuple(_point(part) for part in outline.split())
        if len(points) < 3:
            raise ValueError("a polygon needs three points at least")
        problem = polygon_problem(points)
        if problem is not None:
            raise ValueError(f"{problem[0]}: {problem[1]}")
        polygons.append(points)
    return tuple(polygons)


def _point(text: str) -> tuple[float, float]:
    x, comma, y = text.partition(",")
    if not comma:
        raise ValueError(f"'{text}' is no point")
    return _share(x), _share(y)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"'{text}' is not a number of 0 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(f"'{text}' is not a number from 0 to 1")
    return value


def _class_number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= LARGEST_CLASS:
        raise ValueError(f"'{text}' is not a class number from 0 to {LARGEST_CLASS}")
    return value


def _pairs(mapping: Mapping[str | int, Any]) -> str:
    return ";".join(f"{name}:{value}" for name, value in mapping.items())


def _size_text(size: tuple[float, float]) -> str:
    return f"{size[0]:g}x{size[1]:g}" if any(size) else ""


def _polygon_text(polygons: Sequence[Polygon]) -> str:
    return " | ".join(" ".join(f"{x:g},{y:g}" for x, y in polygon) for polygon in polygons)


READERS: dict[str, Callable[[str], Any]] = {
    "rename": lambda text: _mapping(text, str),
    "remap": lambda text: _mapping(text, _class_number),
    "keep": _classes,
    "drop": _classes,
    "class-confidence": lambda text: _mapping(text, _share),
    "min-size": _size,
    "max-size": _size,
    "regions": _polygons,
    "exclude": _polygons,
}
"""What reads the text of a property; each raises ValueError."""

"""pymetafilter's properties, and the rules that they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elements.base import Property
from elements.filtering.rules import FilterRules
from elements.filtering.texts import READERS

LIVE = "; may change while running"

PROPERTIES = (
    Property("rename", str, "", f"New class names, 'person:worker;2:car'{LIVE}"),
    Property("remap", str, "", f"New class numbers, 'person:5;2:0'{LIVE}"),
    Property("keep", str, "", f"Classes that stay, names or numbers: 'person;2'; empty: all{LIVE}"),
    Property("drop", str, "", f"Classes that go, names or numbers{LIVE}"),
    Property("confidence", float, 0.0, f"Lowest confidence that stays{LIVE}", 0, 1),
    Property("class-confidence", str, "", f"The same for single classes, 'person:0.5;car:0.3'{LIVE}"),
    Property("min-size", str, "", f"Smallest width x height that stays, source pixels: 20x40{LIVE}"),
    Property("max-size", str, "", f"Largest width x height that stays{LIVE}"),
    Property("min-aspect", float, 0.0, f"Smallest width / height that stays; 0: any{LIVE}", 0),
    Property("max-aspect", float, 0.0, f"Largest width / height that stays; 0: any{LIVE}", 0),
    Property("regions", str, "", f"Polygons in which objects stay, 0 to 1: '0,0 0.5,0 0.5,1 | …'; empty: all{LIVE}"),
    Property("exclude", str, "", f"Polygons in which objects go{LIVE}"),
    Property("min-age", float, 0.0, f"Seconds that a track must have been seen{LIVE}", 0),
    Property("merge-iou", float, 0.0, f"Overlap from which objects of several models are one; 0: never{LIVE}", 0, 1),
    Property("limit", "uint", 0, f"Most objects per frame; 0: all{LIVE}"),
    Property("objects-seen", "uint64", 0, "Objects that came in", writable=False),
    Property("objects-removed", "uint64", 0, "Objects that went", writable=False),
)


def rules_of(values: Mapping[str, Any]) -> FilterRules:
    """The rules that the properties say.

    Raises:
        ValueError: names the property and what is wrong with it.
    """
    options: dict[str, Any] = {}
    for prop in PROPERTIES:
        if not prop.writable:
            continue
        value = values[prop.name]
        if prop.name in READERS:
            if not value:
                continue
            try:
                value = READERS[prop.name](value)
            except ValueError as error:
                raise ValueError(f"{prop.name}: '{value}': {error}; {prop.blurb.removesuffix(LIVE)}") from None
        options[prop.name.replace("-", "_")] = value
    return FilterRules(**options)

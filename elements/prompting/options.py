"""What a prompt stage is to do, as plain data."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

FIELDS = ("label", "source", "track_id")
_FIELD = re.compile(r"\{(\w+)\}")


class PromptError(ValueError):
    """An option is missing, unknown or out of range. The text is complete."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When somebody is asked about; all that is given must hold.

    Attributes:
        classes: names or numbers of classes; empty: all.
        min_age: seconds of stream time that a track must have been seen.
        zones: polygons of (x, y), shares of the picture; an object must stand in one of them.
        events: names of events (of analyze and operate stages) that name the track, or happen in the frame.
        interval: least seconds of stream time between two requests of one source.
    """

    classes: tuple[str | int, ...] = ()
    min_age: float = 0.0
    zones: tuple[tuple[tuple[float, float], ...], ...] = ()
    events: tuple[str, ...] = ()
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """See the prompt stage of the definition (`pipelines.definition.stages.prompt`), whose keys these are.

    Times are seconds, ``margin`` is a share of the box, ``max_side`` pixels.

    Raises:
        PromptError: if a value is out of its range.
    """

    endpoint: str
    model: str
    text: str
    per: str = "track"
    trigger: Trigger = field(default_factory=Trigger)
    refresh: float = 0.0
    frames: int = 1
    within: float = 2.0
    margin: float = 0.1
    max_side: int = 768
    answer: str = "text"
    answer_schema: Mapping[str, Any] | None = None
    attribute: str = ""
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    max_tokens: int = 0
    timeout: float = 30.0
    retries: int = 2
    concurrent: int = 4
    queue: int = 64
    overflow: str = "drop-oldest"
    finish: float = 5.0
    on_error: str = "skip"

    def __post_init__(self) -> None:
        for name in ("endpoint", "model", "text"):
            if not getattr(self, name):
                raise PromptError(f"'{name}' is missing")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise PromptError(f"{name}: '{getattr(self, name)}' is not one of {', '.join(choices)}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
                raise PromptError(f"{name}: {value!r} is not a number of {least:g} or more")
        unknown = unknown_field(self.text, self.per)
        if unknown:
            raise PromptError(f"text: {unknown}")
        if self.per == "frame" and not self.trigger.events and not self.trigger.interval:
            raise PromptError("per: frame needs trigger.interval or trigger.events: else it asks about every frame")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> PromptOptions:
        """From plain values, as JSON has them.

        Raises:
            PromptError: for an unknown or missing key, or a value out of range.
        """
        values = dict(values)
        _check_keys(cls, values, "")
        trigger = dict(values.get("trigger", {}))
        _check_keys(Trigger, trigger, "trigger.")
        for name in ("classes", "events"):
            trigger[name] = tuple(trigger.get(name, ()))
        trigger["zones"] = tuple(tuple((float(x), float(y)) for x, y in zone) for zone in trigger.get("zones", ()))
        missing = [name for name in ("endpoint", "model", "text") if name not in values]
        if missing:
            raise PromptError(f"'{missing[0]}' is missing")
        return cls(**{**values, "trigger": Trigger(**trigger)})


_CHOICES = {
    "per": ("track", "frame"),
    "answer": ("text", "json"),
    "overflow": ("drop-oldest", "drop-newest"),
    "on_error": ("skip", "stop"),
}
_LEAST = {
    "refresh": 0, "frames": 1, "within": 0.001, "margin": 0, "max_side": 16, "requests_per_minute": 0,
    "tokens_per_minute": 0, "max_tokens": 0, "timeout": 0.001, "retries": 0, "concurrent": 1, "queue": 1, "finish": 0,
}  # fmt: skip


def unknown_field(text: str, per: str) -> str:
    """What is wrong with the fields of a prompt's text; empty if nothing is. Other braces mean themselves.

    >>> unknown_field("What does {labl} do?", "track")
    "there is no field '{labl}': did you mean '{label}'?"
    """
    known = FIELDS if per == "track" else ("source",)
    for name in _FIELD.findall(text):
        if name in known:
            continue
        if name in FIELDS:
            return f"'{{{name}}}' is of a track, and 'per' is {per}"
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{{{near[0]}}}'?" if near else "there are " + ", ".join(f"{{{k}}}" for k in known)
        return f"there is no field '{{{name}}}': {hint}"
    return ""


def filled(text: str, values: Mapping[str, Any]) -> str:
    """The text with its fields filled in."""
    return _FIELD.sub(lambda match: str(values[match[1]]) if match[1] in values else match[0], text)


def _check_keys(owner: type, values: Mapping[str, Any], prefix: str) -> None:
    known = [f.name for f in fields(owner)]
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise PromptError(f"unknown option '{prefix}{key}'" + (f": did you mean '{near[0]}'?" if near else ""))

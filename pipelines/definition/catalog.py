"""What a catalogue of GStreamer elements must answer, and the check of `node` stages against it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Secret

from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.stages import NodeStage
from pipelines.definition.stages.types import PropertyValue
from pipelines.definition.validation import did_you_mean

PropertyType = Literal["string", "bool", "int", "float", "enum", "other"]


@dataclass(frozen=True, slots=True)
class PropertyInfo:
    """One property of an element.

    Attributes:
        type: ``other`` is anything that GStreamer reads from text (caps, fractions, flags …).
        minimum, maximum: of numbers.
        choices: nick -> number, of enums.
    """

    type: PropertyType
    minimum: float | None = None
    maximum: float | None = None
    choices: Mapping[str, int] | None = None
    writable: bool = True


class UnusableElementError(Exception):
    """An element exists and cannot be loaded. The text says why."""


class Catalog(Protocol):
    """The elements that exist here."""

    def factories(self) -> Collection[str]:
        """Names of all element factories."""

    def properties(self, factory: str) -> Mapping[str, PropertyInfo] | None:
        """Properties by name; None when there is no such element or it cannot be loaded.

        Raises:
            UnusableElementError: like None, where the reason is known.
        """


def check_node(document: Document, path: KeyPath, node: NodeStage, catalog: Catalog) -> None:
    """Add problems for an unknown element, unknown properties, and values that a property doesn't take."""
    shown = document.shown((*path, "factory"))
    if node.factory not in catalog.factories():
        hint = did_you_mean(node.factory, catalog.factories()) or "see gst-inspect-1.0"
        document.problem((*path, "factory"), f"no element {shown}", hint)
        return
    known, reason = None, "see gst-inspect-1.0"
    try:
        known = catalog.properties(node.factory)
    except UnusableElementError as error:
        reason = str(error)
    if known is None:
        document.problem((*path, "factory"), f"element {shown} cannot be loaded", reason)
        return
    for name, value in node.properties.items():
        place = (*path, "properties", name)
        if name not in known:
            document.problem(place, f"{shown} has no property '{name}'", _nearest(name, known), of_key=True)
        elif name == "name":
            document.problem(place, "is not a property here", "write 'name' beside 'factory'", of_key=True)
        elif not known[name].writable:
            document.problem(place, "is read-only", "remove it", of_key=True)
        else:
            plain = value.get_secret_value() if isinstance(value, Secret) else value
            message, hint = _check_value(document.shown(place), plain, known[name])
            if message:
                document.problem(place, message, hint)


def _nearest(name: str, known: Collection[str]) -> str:
    """The nearest property names, best first; ``_`` and ``-`` count as the same."""
    near = difflib.get_close_matches(name.replace("_", "-").lower(), known, 3, 0.5)
    if not near:
        return f"it has {', '.join(sorted(known))}" if len(known) <= 12 else "see gst-inspect-1.0"
    return f"did you mean {' or '.join(repr(candidate) for candidate in near)}?"


def _check_value(shown: str, value: PropertyValue, info: PropertyInfo) -> tuple[str, str]:
    """Message and hint; an empty message when the property takes the value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if info.type == "bool" and not isinstance(value, bool):
        return f"{shown} is not a boolean", "write true or false"
    if info.type == "string" and not isinstance(value, str):
        return f"{shown} is not text", "put it in quotes"
    if info.type == "int" and (not is_number or isinstance(value, float)):
        return f"{shown} is not a whole number", ""
    if info.type == "float" and not is_number:
        return f"{shown} is not a number", ""
    if info.type == "enum" and info.choices is not None:
        return _check_choice(shown, value, info.choices)
    if info.type in ("int", "float") and isinstance(value, int | float):
        if info.minimum is not None and value < info.minimum:
            return f"{shown} is too small", f"at least {_short(info.minimum)}"
        if info.maximum is not None and value > info.maximum:
            return f"{shown} is too large", f"at most {_short(info.maximum)}"
    return "", ""


def _short(number: float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


def _check_choice(shown: str, value: PropertyValue, choices: Mapping[str, int]) -> tuple[str, str]:
    if not isinstance(value, bool) and (value in choices or value in choices.values()):
        return "", ""
    listed = ", ".join(f"{number} {nick}" for nick, number in choices.items())
    return f"{shown} is not one of {listed}", did_you_mean(shown.strip("'"), choices)

"""Pydantic's findings in words, at the place where the value is written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipelines.definition.analytics import DirectionRule, LineRule, ZoneRule
from pipelines.definition.definition import Definition
from pipelines.definition.document import Document
from pipelines.definition.mux import Mux
from pipelines.definition.outputs import DisplayOutput, EventsOutput, FileOutput, NullOutput, RecordOutput
from pipelines.definition.problems import KeyPath
from pipelines.definition.runtime import Runtime
from pipelines.definition.scalars import Scalar, resolve
from pipelines.definition.sections import OneKey, Section
from pipelines.definition.source_infer import SourceInfer
from pipelines.definition.sources import Reconnect, Source
from pipelines.definition.stages import STAGE_MODELS
from pipelines.definition.stages.message import AnalyticsSection, OutboxSection, PlaceSection, SensorSection, TlsSection
from pipelines.definition.stages.operate_on import OperateOn
from pipelines.definition.stages.prompt import PromptBudget, PromptTrigger
from pipelines.definition.swap import Swap

_ITEMS: dict[str, tuple[type[OneKey], ...]] = {
    "stages": STAGE_MODELS,
    "outputs": (FileOutput, EventsOutput, RecordOutput, DisplayOutput, NullOutput),
}
ANY = "*"
"""Part of a section's path that the user names."""

_SECTIONS: dict[tuple[str, ...], type[Section]] = {
    (): Definition,
    ("sources",): Source,
    ("sources", "reconnect"): Reconnect,
    ("sources", "infer", ANY): SourceInfer,
    ("stages", "infer", "swap"): Swap,
    ("stages", "infer", "operate_on"): OperateOn,
    ("stages", "analyze", "zones"): ZoneRule,
    ("stages", "analyze", "lines"): LineRule,
    ("stages", "analyze", "directions"): DirectionRule,
    ("stages", "prompt", "trigger"): PromptTrigger,
    ("stages", "prompt", "budget"): PromptBudget,
    ("stages", "message", "tls"): TlsSection,
    ("stages", "message", "outbox"): OutboxSection,
    ("stages", "message", "sensors", ANY): SensorSection,
    ("stages", "message", "places", ANY): PlaceSection,
    ("stages", "message", "analytics", ANY): AnalyticsSection,
    ("mux",): Mux,
    ("runtime",): Runtime,
    **{(section, model.KEY): model for section, models in _ITEMS.items() for model in models},
}
KEYS: dict[tuple[str, ...], tuple[str, ...]] = {
    **{
        section: tuple(field.alias or name for name, field in model.model_fields.items())
        for section, model in _SECTIONS.items()
    },
    **{(section,): tuple(model.KEY for model in models) for section, models in _ITEMS.items()},
}
"""The keys that each section takes; sections are named by their path without list indexes."""

SURE, LIKELY = 0.8, 0.6
"""How similar words must be (difflib's ratio) to be suggested."""


def report(document: Document, error: ValidationError) -> None:
    """Add each of pydantic's errors to the problems of ``document``."""
    for details in error.errors(include_url=False, include_input=False):
        _report_one(document, details)


def _known_path(document: Document, location: KeyPath) -> KeyPath:
    """Pydantic's location without the parts that are in no definition (branches of unions)."""
    for length in range(len(location), 0, -1):
        if _has(document.at(location[: length - 1]), location[length - 1]):
            return location[:length]
    return ()


def _has(value: Any, key: str | int) -> bool:
    return key in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(key, int)


def _report_one(document: Document, details: ErrorDetails) -> None:
    kind, context = details["type"], details.get("ctx", {})
    location = details["loc"]
    path = _known_path(document, location)
    if kind == "missing":
        document.problem(location, "is missing")
    elif kind == "extra_forbidden":
        key = str(location[-1])
        document.problem(location, f"unknown key '{key}'", suggest_key(key, location[:-1]), of_key=True)
    elif kind == "too_short" and document.at(path):
        pass  # pydantic counts the items that are valid, and has told of the others
    elif kind.startswith("union_tag"):
        _report_item(document, path)
    else:
        message, hint = _words(kind, context, document.shown(path), document.at(path))
        document.problem(path, message, hint)


def _words(kind: str, context: Mapping[str, Any], shown: str, value: Any) -> tuple[str, str]:
    """Message and hint for an error about one value."""
    if value is None:
        return "has no value", "write one, or remove the key"
    if kind == "sentence":
        return str(context["message"]), str(context["hint"])
    if isinstance(value, dict | list) and kind not in ("too_short", "model_type", "tuple_type", "dict_type"):
        return f"takes a single value, not a {'list' if isinstance(value, list) else 'mapping'}", ""
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        return f"{shown} is not one of {', '.join(choices)}", did_you_mean(shown.strip("'"), choices)
    if kind == "wrong":
        return f"{shown} {context['message']}", str(context["hint"])
    quoted = "write it without quotes" if isinstance(value, Scalar) and _would_be_plain(value) else ""
    sentences = {
        "bool_type": (f"{shown} is not a boolean", quoted or "write true or false"),
        "int_type": (f"{shown} is not a whole number", quoted),
        "float_type": (f"{shown} is not a number", quoted),
        "string_type": (f"{shown} is not text", "put it in quotes"),
        "model_type": (f"takes keys and values, not {_kind_of(value)}", ""),
        "dict_type": (f"takes keys and values, not {_kind_of(value)}", ""),
        "tuple_type": (f"takes a list, not {_kind_of(value)}", "start each item with '- '"),
        "too_short": ("is empty", "give at least one"),
        "too_long": ("has too many items", ""),
        "string_too_long": (f"is longer than {context.get('max_length')} characters", ""),
        "greater_than": (f"{shown} is too small", f"more than {context.get('gt'):g}" if "gt" in context else ""),
        "greater_than_equal": (f"{shown} is too small", f"at least {context.get('ge'):g}" if "ge" in context else ""),
        "less_than_equal": (f"{shown} is too large", f"at most {context.get('le'):.10g}" if "le" in context else ""),
        "multiple_of": (f"{shown} is not a multiple of {context.get('multiple_of')}", ""),
    }
    return sentences.get(kind, (f"{shown} is not valid here", ""))


def _would_be_plain(value: Scalar) -> bool:
    """Whether quoted text would be a number or a boolean without its quotes."""
    return not value.plain and not isinstance(resolve(Scalar(value)), str)


def _kind_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "a single value"


# --- items of stages and outputs --------------------------------------------------------------------------------------


def _report_item(document: Document, path: KeyPath) -> None:
    """A list item that is not a mapping of one known key."""
    section, item = str(path[0]), document.at(path)
    noun, names = section.removesuffix("s"), KEYS[(section,)]
    if item is None or item == {}:
        document.problem(path, "is empty", f"write one of {', '.join(names)}")
    elif not isinstance(item, dict):
        known = isinstance(item, str) and item in names
        hint = f"write '{item}: {{}}'" if known else f"write one of {', '.join(names)} and a colon"
        document.problem(path, f"takes a key with options, not {_kind_of(item)}", hint)
    elif len(item) > 1:
        first = next((name for name in item if name in names), names[0])
        document.problem(
            path,
            f"has {len(item)} keys, an item is one {noun}",
            f"indent the options below '{first}:', and start each {noun} with '- '",
        )
    else:
        key = next(iter(item))
        document.problem((*path, key), f"unknown {noun} '{key}'", suggest_key(key, (section,)), of_key=True)


# --- did you mean -----------------------------------------------------------------------------------------------------


def did_you_mean(word: str, known: Collection[str], cutoff: float = LIKELY) -> str:
    """``did you mean 'x'?`` for the nearest known word, or nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(word.lower(), by_lower, 1, cutoff)
    return f"did you mean '{by_lower[near[0]]}'?" if near else ""


def suggest_key(key: str, path: KeyPath) -> str:
    """What to write instead of an unknown key: a similar one, the section it belongs to, or the list of keys."""
    section = tuple(part for part in path if isinstance(part, str))
    known = KEYS.get(section) or KEYS.get((*section[:-1], ANY), ())
    homes = [".".join(home) for home, keys in KEYS.items() if key in keys and home and ANY not in home]
    if hint := did_you_mean(key, known, SURE):
        return hint
    if key in KEYS[()]:
        return "it belongs at the top level"
    if homes:
        return f"it belongs in {' or '.join(homes[:3])}"
    return did_you_mean(key, known) or (f"known: {', '.join(known)}" if known else "it takes no options")

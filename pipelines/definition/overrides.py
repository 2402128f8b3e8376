"""``--set path.to.key=value``: changes to a definition from the command line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from pipelines.definition.document import Document
from pipelines.definition.problems import DefinitionError, KeyPath, Place, Problem
from pipelines.definition.scalars import Scalar
from pipelines.definition.uris import default_name, unique_names
from pipelines.definition.yaml_text import parse_yaml


class _PathError(ValueError):
    """The path of a --set leads nowhere; the text says why, ``hint`` what would."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def apply_overrides(document: Document, overrides: Sequence[str]) -> None:
    """Set values in ``document``, in order.

    List items are named by index (``sources.0.uri``), sources also by name (``sources.door.uri``), stages and outputs
    by their key (``stages.infer.confidence``). A value that starts with a bracket or a quote is YAML, all other text
    is taken as it is. What cannot be set becomes a problem of the document.
    """
    for override in overrides:
        path_text, equals, value = override.partition("=")
        path_text = path_text.strip()
        place = Place(f"--set {path_text}", text=value)
        try:
            if not equals or not path_text:
                raise _PathError("has no key or no '='", "write --set path.to.key=value")
            path = _find(document, path_text)
            document.replace(path, _parse_value(value, place))
        except _PathError as error:
            document.problems.append(Problem(place.file, None, None, "", str(error), error.hint))
        except DefinitionError as error:
            document.problems.append(
                Problem(place.file, None, None, "", error.problems[0].message, "put the value in quotes")
            )


def _parse_value(value: str, place: Place) -> Document:
    if not value.startswith(("[", "{", '"', "'")):
        scalar = Scalar(value)
        return Document(None if scalar.null else scalar, place.file, {(): place})
    fragment = parse_yaml(value, place.file)
    if fragment.problems:
        raise DefinitionError(fragment.problems)
    fragment.values = {path: Place(place.file, text=inner.text) for path, inner in fragment.values.items()}
    fragment.keys = {path: Place(place.file) for path in fragment.keys}
    return fragment


def _find(document: Document, text: str) -> KeyPath:
    """The path that ``text`` names; the mappings on the way are made where they are missing."""
    path: KeyPath = ()
    rest = re.sub(r"\[(\d+)\]", r".\1", text)
    while True:
        here = _open(document, path)
        part, rest = _item(path, here, rest) if isinstance(here, list) else _split(rest)
        path = (*path, *part)
        if not rest:
            return path


def _split(rest: str) -> tuple[KeyPath, str]:
    key, _, rest = rest.partition(".")
    if not key:
        raise _PathError("has an empty key", "write --set path.to.key=value")
    return (key,), rest


def _open(document: Document, path: KeyPath) -> Any:
    """The mapping or list at ``path``; a source that is only text and keys without a value become mappings."""
    here = document.at(path)
    if isinstance(here, dict | list):
        return here
    if here is not None and (len(path) != 2 or path[0] != "sources"):
        raise _PathError(f"'{path[-1]}' is a single value: there is no key below it")
    place = document.place(path)
    inner = {} if here is None else {"uri": here}
    document.replace(path, Document(inner, place.file, {(key,): place for key in inner} | {(): place}))
    return document.at(path)


def _item(path: KeyPath, items: list[Any], rest: str) -> tuple[KeyPath, str]:
    """The part of a path that names an item of a list, and the text after it."""
    first = rest.partition(".")[0]
    if first.isdecimal():
        if int(first) < len(items):
            return (int(first),), rest.partition(".")[2]
        raise _PathError(f"there is no {path[-1]}[{first}]", f"it has {len(items)} items, counted from 0")
    names = _source_names(items) if path == ("sources",) else _item_keys(items)
    found = [(i, name) for i, name in enumerate(names) if name and (rest == name or rest.startswith(f"{name}."))]
    if len(found) > 1:
        raise _PathError(f"'{first}' is ambiguous", "use " + " or ".join(f"{path[-1]}.{i}.{name}" for i, name in found))
    if not found:
        near = difflib.get_close_matches(first, [name for name in names if name], 1)
        known = (
            f"did you mean '{near[0]}'?"
            if near
            else f"there are: {', '.join(name for name in names if name) or 'none'}"
        )
        raise _PathError(f"no '{first}' in {path[-1]}", known)
    index, name = found[0]
    after = rest[len(name) :].removeprefix(".")
    return ((index,) if path == ("sources",) else (index, name)), after


def _item_keys(items: list[Any]) -> list[str]:
    return [next(iter(item)) if isinstance(item, dict) and len(item) == 1 else "" for item in items]


def _source_names(items: list[Any]) -> list[str]:
    mappings = [item if isinstance(item, dict) else {"uri": item} for item in items]
    names = [str(item["name"]) if item.get("name") else None for item in mappings]
    return unique_names(names, [default_name(str(item.get("uri") or "")) for item in mappings])

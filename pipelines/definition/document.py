"""The text of a definition as plain data that remembers where each value is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pipelines.definition.problems import KeyPath, Place, Problem, format_path, redact

_LONGEST_SHOWN = 60
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(slots=True)
class Document:
    """Plain data (dict, list, `Scalar`, None), places of its values and keys, and the problems found so far.

    ``look_for_files``: whether a file that it names and that is not there is a problem.
    """

    data: Any
    file: str
    values: dict[KeyPath, Place] = field(default_factory=dict)
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    faulty: set[KeyPath] = field(default_factory=set)
    look_for_files: bool = True

    def place(self, path: KeyPath, of_key: bool = False) -> Place:
        """Where the value (or key) at ``path`` is written, else the nearest thing that contains it."""
        if of_key and path in self.keys:
            return self.keys[path]
        ancestors = (path[:length] for length in range(len(path), -1, -1))
        return next((self.values[known] for known in ancestors if known in self.values), Place(self.file))

    def shown(self, path: KeyPath) -> str:
        """The scalar at ``path`` for a message, as it is written (``${VAR}`` stays) and in quotes; else 'the value'."""
        text = redact(self.values[path].text) if path in self.values else ""
        text = " ".join(text.split())
        if not text or not text.isprintable():
            return "the value"
        return f"'{text}'" if len(text) <= _LONGEST_SHOWN else f"'{text[: _LONGEST_SHOWN - 1]}…'"

    def problem(self, path: KeyPath, message: str, hint: str = "", of_key: bool = False) -> None:
        """Add a problem, unless the same value or one that contains it has one already."""
        if any(path[:length] in self.faulty for length in range(len(path) + 1)):
            return
        self.faulty.add(path)
        place = self.place(path, of_key)
        self.problems.append(Problem(place.file, place.line, place.column, format_path(path), message, hint))

    def at(self, path: KeyPath) -> Any:
        """The value at ``path``; None when there is none."""
        value = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def map_values(self, function: Callable[[KeyPath, Any], Any]) -> None:
        """Replace every value that is no list and no mapping by ``function(path, value)``."""

        def walk(value: Any, path: KeyPath) -> Any:
            if isinstance(value, dict):
                return {key: walk(item, (*path, key)) for key, item in value.items()}
            if isinstance(value, list):
                return [walk(item, (*path, index)) for index, item in enumerate(value)]
            return function(path, value)

        self.data = walk(self.data, ())

    def refuse_control_characters(self) -> None:
        """Turn text that no name, path or address can hold into problems."""

        def check(path: KeyPath, value: Any) -> Any:
            odd = _NOT_TEXT.search(value) if isinstance(value, str) else None
            if odd is None:
                return value
            self.problem(path, f"holds U+{ord(odd[0]):04X}, which is not text", "remove it")
            return None

        self.map_values(check)

    def replace(self, path: KeyPath, fragment: Document) -> None:
        """Put another document's data at ``path`` (whose parent exists), with its places."""
        for table in (self.values, self.keys):
            for known in [known for known in table if known[: len(path)] == path and known != path]:
                del table[known]
        parent = self.at(path[:-1])
        parent[path[-1]] = fragment.data
        self.values.update({path + inner: place for inner, place in fragment.values.items()})
        self.keys.update({path + inner: place for inner, place in fragment.keys.items()})
        self.keys[path] = fragment.place(())


def document_from_data(data: Any, origins: Mapping[KeyPath, str], label: str) -> Document:
    """A document of values that come from a program, e.g. command-line options.

    Args:
        data: mappings, lists, text, numbers, paths. Text is taken as it is: no environment variables in it.
        origins: what to call the place of a value in messages, by path, e.g. ``--model``.
        label: what to call the place of everything else.
    """
    document = Document(None, label)
    label_of = {(): label, **origins}

    def copy(value: Any, path: KeyPath, where: str) -> Any:
        where = label_of.get(path, where)
        document.values[path] = Place(where)
        if isinstance(value, Mapping):
            return {str(key): copy(item, (*path, str(key)), where) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, (*path, index), where) for index, item in enumerate(value)]
        if isinstance(value, PurePath):
            value = str(value)
        document.values[path] = Place(where, text="" if value is None else str(value))
        return value

    document.data = copy(data, (), label)
    return document

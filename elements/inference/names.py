"""Class names: from the model, from the user, or COCO's."""

from __future__ import annotations

import ast
import difflib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from elements.inference.coco import COCO_NAMES
from elements.inference.errors import ModelError

log = logging.getLogger("gstorch.inference")

Labels = str | Sequence[str] | None


def names_of_metadata(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Names that the model carries: ``names`` as ultralytics writes it, a dict or list literal. Empty if none.

    Raises:
        ModelError: if the entry is there and cannot be read.
    """
    text = metadata.get("names")
    if not text:
        return ()
    try:
        return _as_names(ast.literal_eval(text))
    except (ValueError, SyntaxError) as error:
        raise ModelError(f"the model's metadata entry 'names' is not a list or dict of names: {text[:80]!r}") from error


def declared_names(value: Any) -> tuple[str, ...]:
    """Names that a class of one's own declares: texts in a row, or in a dict by class number; ``None`` if it has none.

    Raises:
        ModelError: if it is something else, such as the text that ``("plate")`` is.
    """
    if value is None:
        return ()
    try:
        names = _as_names(value if isinstance(value, str | Mapping) else list(value))
        texts = value.values() if isinstance(value, Mapping) else value
        if all(isinstance(name, str) for name in texts):
            return names
    except (ValueError, TypeError):
        pass  # told below
    raise ModelError(f"names = {value!r:.80}: the names of the classes are needed, as in ('plate',) or {{0: 'plate'}}")


def read_labels(labels: Labels) -> tuple[str, ...]:
    """Names that the user gives: a list, or a file (one name per line, or YAML: a list or a ``names:`` entry).

    Raises:
        ModelError: if the file is missing or holds no names.
    """
    if not labels:
        return ()
    if not isinstance(labels, str):
        return tuple(str(name) for name in labels)
    path = Path(labels)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ModelError(f"label file '{labels}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"label file '{labels}' is not UTF-8 text: save it as UTF-8") from error
    names = _yaml_names(labels, text) if path.suffix.lower() in (".yaml", ".yml") else _lines(text)
    if not names:
        raise ModelError(f"label file '{labels}' holds no names: write one name per line")
    return names


def choose_names(metadata: Mapping[str, str], labels: Labels, num_classes: int | None) -> tuple[str, ...]:
    """The names in force: the model's own, else the user's, else COCO's for 80 classes, else the class numbers.

    ``num_classes`` is ``None`` for layouts that do not tell. The result may then be empty: numbers serve as names.
    """
    own, given = names_of_metadata(metadata), read_labels(labels)
    if own:
        if given and given != own:
            log.warning("labels are not used: the model carries its own %d class names", len(own))
        return own
    if given:
        return given
    if num_classes == len(COCO_NAMES):
        log.info("the model has 80 classes and no names: COCO's names are used")
        return COCO_NAMES
    log.warning("the model has no class names and no labels are given: class numbers are used as names")
    return tuple(str(i) for i in range(num_classes or 0))


def class_ids_of(classes: Sequence[str | int], names: Sequence[str]) -> frozenset[int]:
    """Class numbers for a list of names or numbers.

    Raises:
        ModelError: if a name or number is not one of the model's.
    """
    return frozenset(_class_id(entry, names) for entry in classes)


def _class_id(entry: str | int, names: Sequence[str]) -> int:
    if entry in names:
        return names.index(str(entry))
    if str(entry).isdecimal() and (not names or int(entry) < len(names)):
        return int(entry)
    near = difflib.get_close_matches(str(entry), names, n=1)
    some = ", ".join(names[:10]) + ", …" * (len(names) > 10)
    hint = f"did you mean '{near[0]}'?" if near else f"the model has: {some}"
    raise ModelError(f"classes: '{entry}' is not a class of the model: {hint}")


def _as_names(value: Any) -> tuple[str, ...]:
    """Names from a list, or from a dict whose keys are the class numbers 0, 1, …"""
    if isinstance(value, Mapping):
        by_id = {int(key): str(name) for key, name in value.items()}
        if sorted(by_id) != list(range(len(by_id))):
            raise ValueError("class numbers must run from 0 without gaps")
        return tuple(by_id[i] for i in range(len(by_id)))
    if isinstance(value, (list, tuple)):
        return tuple(str(name) for name in value)
    raise ValueError("neither a list nor a dict")


def _yaml_names(path: str, text: str) -> tuple[str, ...]:
    try:
        value = yaml.safe_load(text)
        if isinstance(value, Mapping) and "names" in value:
            value = value["names"]
        return _as_names(value)
    except (yaml.YAMLError, ValueError) as error:
        raise ModelError(f"label file '{path}': expected a YAML list of names: {error}") from error


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())

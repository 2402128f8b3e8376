"""YAML scalars: text that a field reads as the type it wants."""

from __future__ import annotations

import math
import re
from typing import Any

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,300})")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {text: value for value in (True, False) for text in (str(value), str(value).lower(), str(value).upper())}


class Scalar(str):
    """The text of one YAML scalar.

    It stays text until a field asks for its value, so ``name: 007`` and ``password: no`` keep what was typed.

    Attributes:
        plain: written without quotes, so it may mean a number or a boolean.
        secret: holds text that came from an environment variable.
    """

    plain: bool
    secret: bool

    def __new__(cls, text: str, plain: bool = True, secret: bool = False) -> Scalar:
        """A scalar with this text."""
        scalar = super().__new__(cls, text)
        scalar.plain = plain
        scalar.secret = secret
        return scalar

    @property
    def null(self) -> bool:
        """True for what YAML reads as no value."""
        return self.plain and str(self) in _NULL


def resolve(value: Any) -> Any:
    """The bool, int, float or str that a scalar means in YAML 1.2; any other value unchanged.

    Only true and false are booleans. Text with a leading zero (``010``), ``1:30``, ``no`` and ``on`` is text.
    """
    if not isinstance(value, Scalar):
        return value
    text = str(value)
    if not value.plain:
        return text
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text

"""JSON that every reader takes, whatever others have attached to the metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """A value as compact JSON in UTF-8.

    NaN and infinity become null, NumPy's scalars and arrays numbers and lists, code points that UTF-8 cannot hold (what
    Python makes of invalid UTF-8) U+FFFD.

    >>> encode({"p": float("nan"), "label": "a \\udcff", 3: np.float32(0.5)}).decode()
    '{"p":null,"label":"a \ufffd","3":0.5}'
    """
    try:
        return _encode(value).encode()
    except (ValueError, TypeError):  # UnicodeEncodeError is a ValueError
        return _encode(strict(value)).encode()


def strict(value: Any) -> Any:
    """The value with everything in it as JSON can say it; see `encode`.

    Raises:
        TypeError: of an object that has no counterpart in JSON.
    """
    if isinstance(value, Mapping):
        return {_text(key if isinstance(key, str) else str(key)): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, np.generic | np.ndarray):
        return strict(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode

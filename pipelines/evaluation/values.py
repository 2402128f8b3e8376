"""Values of annotation files: what a number must be so that it can be measured with."""

from __future__ import annotations

import json
import math
from typing import Any

_LARGEST = 2**63 - 1  # of the arrays that hold track ids and frame numbers


def finite(value: Any) -> float:
    """The number.

    Raises:
        ValueError, TypeError: if it is none, or not finite.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a finite number")
    return number


def whole(value: Any) -> int:
    """The number as an integer of 64 bits.

    Raises:
        ValueError, TypeError: if it is none, or does not fit.
    """
    number = value if isinstance(value, int) else int(finite(value)) if isinstance(value, float) else int(value)
    if abs(number) > _LARGEST:
        raise ValueError(f"{value} is too large a number")
    return number


def text(value: Any, what: str) -> str:
    """The text.

    Raises:
        TypeError: if it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} {value!r} is not text")
    return value


def parsed(json_text: str) -> Any:
    """What a JSON text holds.

    Raises:
        json.JSONDecodeError: if it is none, or nested too deeply to be read.
    """
    try:
        return json.loads(json_text)
    except RecursionError as error:
        raise json.JSONDecodeError("nested too deeply", json_text, 0) from error

"""What the fields of a definition are made of: text, numbers, paths, durations and rates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    SecretStr,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from pipelines.definition.scalars import Scalar, resolve

T = TypeVar("T")

VARIABLE = r"\$\{.+\}"
"""Regular expression of an environment variable, for the JSON Schema's patterns."""


def wrong(message: str, hint: str = "") -> PydanticCustomError:
    """An error about a value. The message continues a sentence that starts with the value as it was written."""
    return PydanticCustomError("wrong", "{message}", {"message": message, "hint": hint})


def wrong_text(message: str, hint: str = "") -> PydanticCustomError:
    """An error whose message is a whole sentence and doesn't repeat the value."""
    return PydanticCustomError("sentence", "{message}", {"message": message, "hint": hint})


# --- text, numbers, booleans ------------------------------------------------------------------------------------------


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, Scalar) else value


def _check_line(value: str) -> str:
    if not value.strip():
        raise wrong_text("is empty", "write a name")
    if not value.isprintable():
        raise wrong("has a line break or a tab in it", "names become part of log lines")
    return value


def _check_name(value: str) -> str:
    if "/" in _check_line(value):
        raise wrong("has a '/' in it", "names become part of file names")
    return value


Text = Annotated[str, BeforeValidator(_as_text)]
Line = Annotated[Text, AfterValidator(_check_line), Field(max_length=200)]
"""A name that others gave: ``Qwen/Qwen2.5-VL``, ``building/2/door``."""
Name = Annotated[Text, AfterValidator(_check_name), Field(max_length=200)]
"""A name that is ours to use in file names."""
SecretText = Annotated[SecretStr, BeforeValidator(_as_text)]
Integer = Annotated[int, Strict(), BeforeValidator(resolve)]
Number = Annotated[float, Strict(), BeforeValidator(resolve)]
Boolean = Annotated[bool, Strict(), BeforeValidator(resolve)]
Pixels = Annotated[int, Strict(), Field(ge=16, le=16384), BeforeValidator(resolve)]
BatchSize = Annotated[int, Strict(), Field(ge=1, le=1024), BeforeValidator(resolve)]


# --- automatic values -------------------------------------------------------------------------------------------------


def _auto_as_none(value: Any) -> Any:
    return None if value == "auto" else value


class _AutoSchema:
    """JSON Schema of `Auto`: the word instead of null."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        return {**schema, "anyOf": [{"const": "auto"}, *options]}


Auto = Annotated[T | None, BeforeValidator(_auto_as_none), _AutoSchema()]
"""``auto`` (None) or a value: ``Auto[Integer]``."""


# --- paths ------------------------------------------------------------------------------------------------------------


def base_directory(context: Any) -> Path:
    """The directory that relative paths start from; the loader passes it as validation context."""
    return Path(context["base_dir"]) if context else Path()


def as_path(value: Any, info: ValidationInfo) -> Any:
    """A path as typed (``~``, ``%``, ``#`` mean themselves), absolute when the loader gave a base directory."""
    if not isinstance(value, str):
        return value
    if not value:
        raise wrong_text("is empty", "write the path of a file")
    return base_directory(info.context) / str(value)


FilePath = Annotated[Path, BeforeValidator(as_path)]


# --- quantities -------------------------------------------------------------------------------------------------------

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = r"(?:\d+(?:\.\d+)?(?:us|ms|s|min|m|h))+"
_PER_SECOND = r"(\d+(?:\.\d+)?)/(s|min)"
_RATE = r"(\d+(?:\.\d+)?)([kM])"
_BYTES = r"(\d+(?:\.\d+)?)([kMG])"
_BARE_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")


def parse_duration(value: Any) -> float:
    """Seconds from text like ``40ms``, ``10s`` or ``1m30s``.

    Raises:
        PydanticCustomError: without a unit, or not a duration at all.
    """
    text = str(value)
    if _BARE_NUMBER.fullmatch(text):
        raise wrong("has no unit", f"write {text}ms or {text}s")
    if not isinstance(value, str) or not re.fullmatch(_DURATION, text):
        raise wrong("is not a duration", "write a number and a unit: 40ms, 10s, 1m30s, 2h")
    parts = re.findall(r"(\d+(?:\.\d+)?)([a-z]+)", text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_rate(value: Any) -> int:
    """Bits per second from text like ``4M`` or ``800k``.

    Raises:
        PydanticCustomError: without a unit, or not a rate at all.
    """
    text = str(value)
    if _BARE_NUMBER.fullmatch(text):
        raise wrong("has no unit", "bits per second, e.g. 800k or 4M")
    match = re.fullmatch(_RATE, text) if isinstance(value, str) else None
    if match is None or float(match[1]) == 0:
        raise wrong("is not a bit rate", "write bits per second with k or M: 800k, 4M, 2.5M")
    return round(float(match[1]) * {"k": 1e3, "M": 1e6}[match[2]])


def parse_per_second(value: Any) -> float:
    """How often a second, from text like ``20/s`` or ``90/min``.

    Raises:
        PydanticCustomError: without a unit, or not such a text at all.
    """
    text = str(value)
    if _BARE_NUMBER.fullmatch(text):
        raise wrong("has no unit", f"write {text}/s or {text}/min")
    match = re.fullmatch(_PER_SECOND, text) if isinstance(value, str) else None
    if match is None or float(match[1]) == 0:
        raise wrong("is not a rate", "write a number above 0 per second or minute: 20/s, 90/min")
    return float(match[1]) / _SECONDS[match[2]]


def parse_bytes(value: Any) -> int:
    """Bytes from text like ``500M`` or ``1G`` (powers of 1000).

    Raises:
        PydanticCustomError: without a unit, or not a size at all.
    """
    text = str(value)
    if _BARE_NUMBER.fullmatch(text):
        raise wrong("has no unit", "bytes, e.g. 500M or 1G")
    match = re.fullmatch(_BYTES, text) if isinstance(value, str) else None
    if match is None:
        raise wrong("is not a size in bytes", "write a number with k, M or G: 500M, 1.5G")
    return round(float(match[1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[match[2]])


def _text_schema(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$|{VARIABLE}", "examples": [example]})


Duration = Annotated[float, BeforeValidator(parse_duration), _text_schema(_DURATION, "10s")]
"""Seconds, written with a unit."""
PerSecond = Annotated[float, BeforeValidator(parse_per_second), _text_schema(_PER_SECOND, "20/s")]
"""How often a second, written with a unit."""
Rate = Annotated[int, BeforeValidator(parse_rate), _text_schema(_RATE, "4M")]
"""Bits per second, written with k or M."""
Bytes = Annotated[int, BeforeValidator(parse_bytes), _text_schema(_BYTES, "1G")]
"""A size in bytes, written with k, M or G."""

"""Handles of the metadata API: what a native wrapper of a raw pointer is, with crashes turned into errors.

A handle keeps its data in ``_meta``. A handle without valid data has an `Invalid` there, so that reading or writing any
attribute raises instead of touching freed memory, and valid handles pay nothing for the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

H = TypeVar("H", bound="Handle")


class Invalid:
    """Takes the place of a handle's data; any access raises RuntimeError with the reason. It is falsy."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(self._reason)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(self._reason)

    def __bool__(self) -> bool:
        return False


NULL = Invalid("null metadata handle: the buffer has no batch metadata, or the index was out of range")
STALE = Invalid(
    "stale metadata handle: an item of frame_items, object_items, … is valid only until the iteration moves on, and "
    "metadata only inside the callback; copy the values that you need inside the loop"
)


class Handle:
    """Base of the metadata classes."""

    __slots__ = ("_meta",)

    def __init__(self, meta: Any) -> None:
        self._meta = meta


def items(view: type[H], metas: Iterable[Any]) -> Iterator[H]:
    """A single-pass iterator of handles without a length. Each handle turns stale when the next one is asked for."""
    for meta in metas:
        handle = view(meta)
        yield handle
        handle._meta = STALE


def readable(path: str) -> Any:
    """A read-only attribute that lives at ``path`` of the handle's data."""
    return property(attrgetter(f"_meta.{path}"))


def writable(path: str, convert: Callable[[Any], Any]) -> Any:
    """An attribute that lives at ``path`` of the handle's data; ``convert`` raises TypeError for misfits."""

    def assign(self: Handle, value: Any) -> None:
        try:
            converted = convert(value)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.{path} = {value!r}: {error}") from None
        setattr(self._meta, path, converted)

    return property(attrgetter(f"_meta.{path}"), assign)


def struct(path: str, kind: type) -> Any:
    """An attribute with an osd struct: reading gives the live struct, assigning copies into it."""

    def convert(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"an osd.{kind.__name__} is needed")
        return value.__copy__()  # type: ignore[attr-defined]

    return writable(path, convert)

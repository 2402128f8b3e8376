"""User metadata: what anybody attaches to batches, frames and objects, found by its type."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from elements.portable import meta as data
from elements.portable.pyservicemaker.handles import NULL, Handle, items, writable

# NvDsMetaType of nvdsmeta.h
TENSOR_OUTPUT_META = 12
SEGMENTATION_META = 13
OBJECT_REID_META = 17
PREPROCESS_BATCH_META = 28
ANALYTICS_FRAME_META = 32
ANALYTICS_OBJECT_META = 33


def int32(value: Any) -> int:
    """The value as a number for a 32 bit field.

    Raises:
        TypeError: if it is none, or out of range.
    """
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    if isinstance(value, float | str | bytes) or not hasattr(value, "__int__"):
        raise TypeError("an integer is needed")
    if not -(1 << 31) <= int(value) < 1 << 31:
        raise TypeError("out of range for a 32 bit integer")
    return int(value)


class Appendable(Handle):
    """A handle from ``acquire_*`` may be appended once; NVIDIA's module would link the struct into two lists."""

    __slots__ = ("_acquired",)

    def __init__(self, meta: Any, acquired: bool = False) -> None:
        self._meta = meta
        self._acquired = acquired

    def _give(self) -> Any:
        """The data, handed over to a list.

        Raises:
            RuntimeError: if it is in one already.
        """
        if not self._acquired:
            raise RuntimeError(f"this {type(self).__name__} was appended before; acquire a new one")
        self._acquired = False
        return self._meta


class UserMetadata(Appendable):
    """User metadata of a batch, frame or object. ``meta_type`` as in nvdsmeta.h; own types start at 8193."""

    __slots__ = ()

    meta_type: int = writable("meta_type", int32)

    def set_user_data_json(self, data: Any, meta_type: int) -> None:
        """Store anything that ``json.dumps`` takes, and the type number.

        Raises:
            TypeError: if it cannot be serialised.
        """
        self._meta.data = json.dumps(data)
        self._meta.meta_type = int32(meta_type)

    def get_user_data_json(self) -> Any:
        """What `set_user_data_json` stored, or None if nothing is stored.

        Raises:
            RuntimeError: if the metadata holds something else (NVIDIA's module reads it as if it were text).
        """
        stored = self._meta.data
        if stored is None:
            return None
        if not isinstance(stored, str):
            raise RuntimeError(f"user metadata of type {self.meta_type} does not hold JSON text")
        return json.loads(stored)

    def as_nvdsanalytics_frame(self) -> Any:
        """NvDsAnalyticsFrameMeta: what nvdsanalytics found in the frame.

        Raises:
            RuntimeError: if the metadata holds something else.
        """
        return self._as(ANALYTICS_FRAME_META, "NvDsAnalyticsFrameMeta")

    def as_nvdsanalytics_obj(self) -> Any:
        """NvDsAnalyticsObjInfo: what nvdsanalytics found about the object.

        Raises:
            RuntimeError: if the metadata holds something else.
        """
        return self._as(ANALYTICS_OBJECT_META, "NvDsAnalyticsObjInfo")

    def _as(self, meta_type: int, name: str) -> Any:
        if self.meta_type != meta_type:
            raise RuntimeError(f"user metadata of type {self.meta_type} is no {name} ({meta_type})")
        return self._meta.data

    def __bool__(self) -> bool:
        return bool(self._meta)


def _user_items(metas: Iterable[data.UserMeta], meta_type: int) -> Iterator[UserMetadata]:
    return items(UserMetadata, (meta for meta in metas if meta.meta_type == meta_type))


class HasUserMetadata(Handle):
    """What batches, frames and objects share."""

    __slots__ = ()

    def user_meta_items(self, meta_type: int) -> Iterator[UserMetadata]:
        """User metadata of one type, single pass."""
        return _user_items(self._meta.user, meta_type)

    def retrieve_structure_usermeta(self, type_name: str) -> list[UserMetadata]:
        """User metadata that holds a GstStructure of this name: none, since no element of this runtime attaches any."""
        return []


def user_items_of(meta_type: int) -> Any:
    """A read-only attribute with the user metadata of one type; an empty list behind a null handle."""

    def get(self: HasUserMetadata) -> Iterable[UserMetadata]:
        return [] if self._meta is NULL else self.user_meta_items(meta_type)

    return property(get)

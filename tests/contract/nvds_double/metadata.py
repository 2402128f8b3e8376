"""pyservicemaker's metadata handles: raw pointers into DeepStream's structs, found by the offsets of nvdsmeta.h."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from ctypes import c_void_p
from typing import Any

from tests.contract.nvds_double import osd
from tests.contract.nvds_double.native import Crash, f32, i32, lib, text_at, u32, u64

LABEL_BYTES = 127


class _Metadata(ctypes.Structure):
    """``class Metadata { virtual ~Metadata(); void* data_; }``; like pybind11, ctypes keeps the pointer to the value
    behind the object's header."""

    _fields_ = (("_table", c_void_p), ("_data", c_void_p))

    def __setattr__(self, name: str, value: Any) -> None:
        bound = getattr(type(self), name, None)
        if name != "_data" and not (isinstance(bound, property) and bound.fset):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r} to set")
        super().__setattr__(name, value)

    @property
    def _at(self) -> int:
        if not self._data:
            raise Crash(f"{type(self).__name__}: null pointer")
        return self._data


def _handle(kind: type, address: int | None) -> Any:
    made = kind.__new__(kind)
    made._data = address
    return made


class _Items:
    """A single-pass iterator with one slot: every item is the same handle, null at the end."""

    def __init__(self, kind: type, head: int, meta_type: int | None = None) -> None:
        self._slot, self._next, self._meta_type = _handle(kind, None), head, meta_type

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._next:
            node = self._next
            self._slot._data, self._next = u64(node).value, u64(node + 8).value
            if self._meta_type is None or i32(self._slot._data + 8).value == self._meta_type:
                return self._slot
        self._slot._data = None
        raise StopIteration


def _read(number: Any, offset: int) -> Any:
    return property(lambda self: number(self._at + offset).value)


def _write(number: Any, offset: int, low: float = 0, high: float = 2**64 - 1) -> Any:
    def assign(self: _Metadata, value: Any) -> None:
        if (number is not f32 and isinstance(value, float)) or not low <= value <= high:
            raise TypeError(f"{type(self).__name__}: incompatible function arguments: {value!r}")
        number(self._at + offset).value = value

    return property(_read(number, offset).fget, assign)


def _struct(kind: type, offset: int) -> Any:
    def assign(self: _Metadata, value: Any) -> None:
        if type(value) is not kind:
            raise TypeError(f"incompatible function arguments: {kind.__name__} is needed")
        ctypes.memmove(self._at + offset, ctypes.addressof(value), ctypes.sizeof(kind))

    return property(lambda self: kind.from_address(self._at + offset), assign)


def _any_float(offset: int) -> Any:
    return _write(f32, offset, -3.4e38, 3.4e38)


class UserMetadata(_Metadata):
    meta_type = _write(i32, 8, -(2**31), 2**31 - 1)

    def set_user_data_json(self, data: Any, meta_type: int) -> None:
        raise Crash("the callbacks that it installs free the wrong pointer")

    def get_user_data_json(self) -> Any:
        payload = u64(self._at + 40).value
        return json.loads(text_at(payload)) if payload else None

    def __bool__(self) -> bool:
        return bool(self._data)


class LabelInfo(_Metadata):
    class_id, label_id, prob, num_classes = _read(u32, 184), _read(u32, 188), _read(f32, 192), _read(u32, 40)

    @property
    def label(self) -> str:
        return text_at(u64(self._at + 176).value or self._at + 44)


class ClassifierMetadata(_Metadata):
    n_labels, unique_component_id = _read(u32, 40), _read(u32, 44)

    @property
    def classifier_type(self) -> str:
        name = u64(self._at + 56).value
        return text_at(name) if name else ""

    def get_label_info(self, index: int) -> LabelInfo:
        for position, item in enumerate(_Items(LabelInfo, u64(self._at + 48).value)):
            if position == index:
                return _handle(LabelInfo, item._data)
        return _handle(LabelInfo, None)

    def get_n_label(self, index: int) -> str:
        labels = [item.label for item in _Items(LabelInfo, u64(self._at + 48).value)]
        return next((label for label in labels[index:] if label), "")


class DisplayMetadata(_Metadata):
    n_rects, n_labels = _read(u32, 40), _read(u32, 44)

    def add_rect(self, rect: osd.Rect) -> None:
        n = self.n_rects
        if n < 16:
            ctypes.memmove(self._at + 64 + 112 * n, ctypes.addressof(rect), 112)
            u32(self._at + 40).value = n + 1

    def add_text(self, text: osd.Text) -> None:
        if type(text) is not osd.Text:
            raise TypeError("incompatible function arguments: Text is needed")
        n = self.n_labels
        if n < 16:
            ctypes.memmove(self._at + 1856 + 104 * n, ctypes.addressof(text), 104)
            u64(self._at + 1856 + 104 * n).value = lib.g_strdup(text._text)
            u32(self._at + 44).value = n + 1


class ObjectMetadata(_Metadata):
    unique_component_id, class_id = _write(u32, 48, 0, 2**32 - 1), _write(u32, 52, 0, 2**32 - 1)
    object_id = _write(u64, 56)
    confidence, tracker_confidence = _any_float(96), _any_float(100)
    rect_params = _struct(osd.Rect, 104)
    mask_params = _struct(osd.Mask, 216)
    text_params = _struct(osd.TextParams, 240)

    @property
    def label(self) -> str:
        return text_at(self._at + 344)

    @label.setter
    def label(self, value: str) -> None:
        data = value.encode()
        if len(data) > LABEL_BYTES:
            raise Crash(f"a label of {len(data)} bytes overflows the C array")
        ctypes.memmove(self._at + 344, data + b"\0", len(data) + 1)

    @property
    def classifier_items(self) -> _Items:
        return _Items(ClassifierMetadata, u64(self._at + 472).value)

    def user_meta_items(self, meta_type: int) -> _Items:
        return _Items(UserMetadata, u64(self._at + 480).value, meta_type)

    def append(self, user_meta: UserMetadata) -> None:
        if not isinstance(user_meta, UserMetadata):
            raise TypeError("append(): incompatible function arguments")
        lib.nvds_add_user_meta_to_obj(self._at, user_meta._at)


class FrameMetadata(_Metadata):
    pad_index, batch_id, frame_number = _read(u32, 40), _read(u32, 44), _read(i32, 48)
    buffer_pts, ntp_timestamp, source_id = _read(u64, 56), _read(u64, 64), _read(u32, 72)
    source_width, source_height = _read(u32, 80), _read(u32, 84)
    pipeline_width, pipeline_height = _read(u32, 160), _read(u32, 164)

    @property
    def object_items(self) -> _Items:
        return _Items(ObjectMetadata, u64(self._at + 104).value)

    def user_meta_items(self, meta_type: int) -> _Items:
        return _Items(UserMetadata, u64(self._at + 120).value, meta_type)

    def append(self, meta: Any) -> None:
        if isinstance(meta, DisplayMetadata):
            lib.nvds_add_display_meta_to_frame(self._at, meta._at)
        elif isinstance(meta, ObjectMetadata):
            lib.nvds_add_obj_meta_to_frame(self._at, meta._at, None)
        else:
            raise TypeError("Invalid type for FrameMetadata.append")


class BatchMetadata(_Metadata):
    is_audio = False

    @property
    def n_frames(self) -> int:
        return u32(self._data + 44).value if self._data else 0

    @property
    def frame_items(self) -> Any:
        return _Items(FrameMetadata, u64(self._data + 96).value) if self._data else []

    def user_meta_items(self, meta_type: int) -> _Items:
        return _Items(UserMetadata, u64(self._at + 104).value, meta_type)

    def acquire_object_meta(self) -> ObjectMetadata:
        return _handle(ObjectMetadata, lib.nvds_acquire_obj_meta_from_pool(self._at))

    def acquire_display_meta(self) -> DisplayMetadata:
        return _handle(DisplayMetadata, lib.nvds_acquire_display_meta_from_pool(self._at))

    def acquire_user_meta(self) -> UserMetadata:
        return _handle(UserMetadata, lib.nvds_acquire_user_meta_from_pool(self._at))

    def append(self, meta: Any) -> None:
        raise TypeError("Invalid type for BatchMetadata.append")


def batch_handle(address: int | None) -> BatchMetadata:
    """The handle of a batch; null if ``address`` is."""
    return _handle(BatchMetadata, address)

"""Reads a batch by the offsets of nvdsmeta.h and struct.unpack alone: neither the double's handles nor our binding."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from elements.base import Gst
from tests.contract.nvds_double.native import lib


def walk(buffer: Gst.Buffer) -> dict[str, Any]:
    """Everything that is in the buffer's batch; lists in the order in which they lie there (objects newest first)."""
    return walk_batch(lib.gst_buffer_get_nvds_batch_meta(hash(buffer)))


def walk_batch(at: int) -> dict[str, Any]:
    assert _get("<i", at, 8) == 1
    assert _get("<Q", at, 0) == at
    frames = [_frame(item) for item in _list(at, 96)]
    assert len(frames) == _get("<I", at, 44)
    return {"max_frames": _get("<I", at, 40), "frames": frames, "user": _user(at, 104), "pools": _pools(at)}


def _frame(at: int) -> dict[str, Any]:
    assert _get("<i", at, 8) == 2
    objects = [_object(item) for item in _list(at, 104)]
    assert len(objects) == _get("<I", at, 96)
    return {
        "source_id": _get("<I", at, 72),
        "batch_id": _get("<I", at, 44),
        "frame_number": _get("<i", at, 48),
        "infer_done": _get("<i", at, 100),
        "objects": objects,
        "user": _user(at, 120),
    }


def _object(at: int) -> dict[str, Any]:
    assert _get("<i", at, 8) == 3
    return {
        "at": at,
        "parent": _get("<Q", at, 40),
        "component_id": _get("<i", at, 48),
        "class_id": _get("<i", at, 52),
        "object_id": _get("<Q", at, 56),
        "detector_box": _many("<4f", at, 64),
        "confidence": _get("<f", at, 96),
        "rect": _many("<4f", at, 104),
        "border_width": _get("<I", at, 120),
        "border_color": _many("<4d", at, 128),
        "has_bg_color": _get("<I", at, 160),
        "rotation_angle": _get("<f", at, 208),
        "mask": _mask(at),
        "display_text": _text(_get("<Q", at, 240)),
        "text_offset": _many("<2I", at, 248),
        "font": (_text(_get("<Q", at, 256)), _get("<I", at, 264)),
        "label": ctypes.string_at(at + 344).decode(),
        "classifiers": [_classifier(item) for item in _list(at, 472)],
        "user": _user(at, 480),
    }


def _mask(at: int) -> tuple[float, np.ndarray] | None:
    data, size, threshold, width, height = _many("<QIfII", at, 216)
    if not data:
        return None
    assert size == 4 * width * height
    return threshold, np.frombuffer(ctypes.string_at(data, size), np.float32).reshape(height, width)


def _classifier(at: int) -> dict[str, Any]:
    assert _get("<i", at, 8) == 5
    labels = [_label(item) for item in _list(at, 48)]
    assert len(labels) == _get("<I", at, 40)
    return {"type": _text(_get("<Q", at, 56)), "component_id": _get("<i", at, 44), "labels": labels}


def _label(at: int) -> tuple[str, int, float]:
    long_label = _get("<Q", at, 176)
    text = _text(long_label) if long_label else ctypes.string_at(at + 44).decode()
    return text, _get("<I", at, 184), _get("<f", at, 192)


def _user(at: int, offset: int) -> list[tuple[int, str]]:
    return [(_get("<i", item, 8), _text(_get("<Q", item, 40))) for item in _list(at, offset)]


def _pools(at: int) -> dict[str, int]:
    """How many elements of each pool are in use."""
    names = {"frame": 48, "object": 56, "classifier": 64, "display": 72, "user": 80, "label": 88}
    return {name: _get("<I", _get("<Q", at, offset), 16) for name, offset in names.items()}


def _list(at: int, offset: int) -> list[int]:
    found, node = [], _get("<Q", at, offset)
    while node:
        data, node = _many("<2Q", node, 0)
        found.append(data)
    return found


def _text(at: int) -> str | None:
    return ctypes.string_at(at).decode() if at else None


def _many(kind: str, at: int, offset: int) -> tuple[Any, ...]:
    return struct.unpack(kind, ctypes.string_at(at + offset, struct.calcsize(kind)))


def _get(kind: str, at: int, offset: int) -> Any:
    return _many(kind, at, offset)[0]

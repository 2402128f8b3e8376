"""The osd structs as pyservicemaker binds them: the C structs of nvll_osd_struct.h themselves.

Reading a struct-valued attribute gives a live view, assigning copies the bytes, pointers included.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_float, c_int32, c_uint32, c_void_p
from enum import IntEnum
from typing import Any

import numpy as np

from tests.contract.nvds_double.native import Crash, lib


class FontFamily(IntEnum):
    Serif = 0


_FONTS = [ctypes.create_string_buffer(b"Serif")]  # static in the native module


class _Struct(ctypes.Structure):
    """Refuses unknown attributes and misfits, as pybind11 does. Names with an underscore are not bound there."""

    def __setattr__(self, name: str, value: Any) -> None:
        kind = dict(type(self)._fields_).get(name)
        if kind is None and not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if kind in (c_uint32, c_int32) and (isinstance(value, float) or not 0 <= value < 2**32):
            raise TypeError(f"{type(self).__name__}.{name}: incompatible function arguments: {value!r}")
        super().__setattr__(name, value)


class Color(_Struct):
    _fields_ = (("r", c_double), ("g", c_double), ("b", c_double), ("a", c_double))

    def __init__(self, r: float, g: float, b: float, a: float) -> None:
        super().__init__(r, g, b, a)


class Font(_Struct):
    _fields_ = (("_name", c_void_p), ("size", c_uint32), ("color", Color))

    def __init__(self) -> None:
        raise TypeError("Font: No constructor defined!")

    @property
    def name(self) -> str:
        if not self._name:
            raise Crash("font name read before it is set")
        return ctypes.string_at(self._name).decode()

    @name.setter
    def name(self, value: FontFamily) -> None:
        if not isinstance(value, FontFamily):
            raise TypeError("incompatible function arguments: a FontFamily is needed")
        self._name = ctypes.addressof(_FONTS[value])


class TextParams(_Struct):
    """``display_text`` is the struct's own only in so far as setting it frees what is there."""

    _fields_ = (
        ("_text", c_void_p),
        ("x_offset", c_uint32),
        ("y_offset", c_uint32),
        ("font_params", Font),
        ("set_bg_clr", c_int32),
        ("text_bg_clr", Color),
    )

    @property
    def display_text(self) -> str:
        return ctypes.string_at(self._text).decode() if self._text else ""

    @display_text.setter
    def display_text(self, value: str) -> None:
        data = value.encode()
        lib.free(self._text)  # delete[] in the native module
        self._text = lib.malloc(len(data) + 1)
        ctypes.memmove(self._text, data + b"\0", len(data) + 1)


class Text(_Struct):
    """For display metadata, which copies the text; the struct keeps its own."""

    _fields_ = (
        ("_text", c_char_p),
        ("x_offset", c_uint32),
        ("y_offset", c_uint32),
        ("font", Font),
        ("set_bg_color", c_int32),
        ("bg_color", Color),
    )

    @property
    def display_text(self) -> str:
        if self._text is None:
            raise Crash("display_text read before it is set")
        return self._text.decode()

    @display_text.setter
    def display_text(self, value: str) -> None:
        self._text = value.encode()


class Rect(_Struct):
    _fields_ = (
        ("left", c_float),
        ("top", c_float),
        ("width", c_float),
        ("height", c_float),
        ("border_width", c_uint32),
        ("border_color", Color),
        ("has_bg_color", c_uint32),
        ("_reserved", c_uint32),
        ("bg_color", Color),
        ("_has_color_info", c_int32),
        ("_color_id", c_int32),
        ("rotation_angle", c_float),
    )


class Mask(_Struct):
    _fields_ = (
        ("_data", c_void_p),
        ("_size", c_uint32),
        ("threshold", c_float),
        ("_width", c_uint32),
        ("_height", c_uint32),
    )

    @property
    def mask_array(self) -> np.ndarray:
        if not self._data:
            return np.empty(0, np.float32)
        image = ctypes.string_at(self._data, 4 * self._width * self._height)
        return np.frombuffer(image, np.float32).reshape(self._height, self._width).copy()

    @mask_array.setter
    def mask_array(self, array: np.ndarray) -> None:
        self._data, self._size = array.ctypes.data, array.size * 4  # nobody keeps the array
        self._height, self._width = array.shape


SIZES = {Color: 32, Font: 48, TextParams: 104, Rect: 112, Mask: 24}
for _struct, _size in SIZES.items():
    assert ctypes.sizeof(_struct) == _size, _struct

"""The drawing types of pyservicemaker's ``osd`` module.

Places and sizes are pixels of the frame that the object lies in; colours are RGBA from 0 to 1; angles are degrees,
positive is clockwise on the screen. The types are as strict as NVIDIA's: constructors take no arguments (a `Color`
takes four), integers are unsigned 32 bit, an unknown or ill-typed attribute raises. Struct-valued attributes are live
when read and copied when assigned.

Three reads that crash NVIDIA's module give an empty value here: `Text.display_text`, `Font.name` and
`Mask.mask_array` before they are set.
"""

import operator
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Arrow",
    "ArrowHead",
    "Circle",
    "Color",
    "Font",
    "FontFamily",
    "Line",
    "Mask",
    "Rect",
    "Text",
    "TextParams",
]

Unsigned = Annotated[int, "unsigned 32 bit"]
FloatMap = NDArray[np.float32]
S = TypeVar("S", bound="_Struct")


class _Struct:
    """A C struct: typed attributes in slots, zeroed by the constructor, compared and copied by value."""

    __slots__ = ()
    _names: tuple[str, ...] = ()  # of the slots

    def __init__(self) -> None:
        self._clear()

    @classmethod
    def _zero(cls) -> Self:
        struct = cls.__new__(cls)
        struct._clear()
        return struct

    def _clear(self) -> None:
        """Set every attribute to its zero."""

    def __copy__(self) -> Self:
        raise NotImplementedError  # `_struct` writes it

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = ((getattr(self, slot), getattr(other, slot)) for slot in self._names)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{slot[1:]}={getattr(self, slot)!r}" for slot in self._names)
        return f"{type(self).__name__}({values})"


def _struct(cls: type[S]) -> type[S]:
    """Class decorator: the annotations become typed attributes over slots. Reading one costs no Python call."""
    kinds = cls.__annotations__
    body = {key: value for key, value in vars(cls).items() if key not in ("__dict__", "__weakref__")}
    body["__slots__"] = tuple(f"_{name}" for name in kinds)
    body["_names"] = body["__slots__"]
    body |= _written_out(kinds)
    for name, kind in kinds.items():
        body[name] = property(operator.attrgetter(f"_{name}"), _setter(f"{cls.__name__}.{name}", f"_{name}", kind))
    return cast("type[S]", type(cls.__name__, cls.__bases__, body))


def _written_out(kinds: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """`_clear` and ``__copy__`` of a struct, line by line: each object of a batch has a dozen structs made and copied,
    and loops over their attributes take four times as long.
    """
    scope: dict[str, Any] = {"new": object.__new__}
    clear, copy = ["def _clear(self):"], ["def __copy__(self):", "    twin = new(type(self))"]
    for name, kind in kinds.items():
        nested = isinstance(kind, type) and issubclass(kind, _Struct)
        scope[f"zero_{name}"] = kind._zero if nested else _zero_of(kind)
        clear.append(f"    self._{name} = zero_{name}{'()' if nested else ''}")
        copy.append(f"    twin._{name} = self._{name}{'.__copy__()' if nested else ''}")
    exec("\n".join([*clear, *copy, "    return twin"]), scope)
    return {name: scope[name] for name in ("_clear", "__copy__")}


def _zero_of(kind: Any) -> Any:
    """Of a kind whose values never change; an empty array has nothing to change."""
    if kind is Unsigned:
        return 0
    if kind is FloatMap:
        return np.empty(0, np.float32)
    return kind(0) if issubclass(kind, IntEnum) else kind()


def _setter(where: str, slot: str, kind: Any) -> Callable[[Any, Any], None]:
    if isinstance(kind, type) and issubclass(kind, _Struct | IntEnum):

        def convert(value: Any) -> Any:
            if not isinstance(value, kind):
                raise TypeError(f"an osd.{kind.__name__} is needed")
            return value.__copy__() if isinstance(value, _Struct) else value

    else:
        convert = {Unsigned: unsigned, float: number, str: text, FloatMap: _float_map, _FontName: _font_name}[kind]

    def assign(self: Any, value: Any) -> None:
        try:
            setattr(self, slot, convert(value))
        except TypeError as error:
            raise TypeError(f"osd.{where} = {value!r}: {error}") from None

    return assign


def number(value: Any) -> float:
    """A float from anything with ``__float__``; text is refused.

    Raises:
        TypeError: if it is not a number.
    """
    if type(value) is float:
        return value
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError("a number is needed")
    return float(value)


def unsigned(value: Any, bits: int = 32) -> int:
    """An int from 0 to 2^bits - 1. A Python float is refused, as pybind11 does.

    Raises:
        TypeError: if the value is of another type or out of range.
    """
    if type(value) is int and 0 <= value < 1 << bits:
        return value
    if isinstance(value, float | str | bytes) or not hasattr(value, "__int__"):
        raise TypeError("an integer is needed")
    whole = int(value)
    if not 0 <= whole < 1 << bits:
        raise TypeError(f"out of range for an unsigned {bits} bit integer")
    return whole


def text(value: Any) -> str:
    """A str from str or UTF-8 bytes.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if not isinstance(value, str):
        raise TypeError("a str is needed")
    return value


def _float_map(value: Any) -> FloatMap:
    """NVIDIA's setter keeps a bare pointer and checks nothing; here the array is kept and a misfit is refused."""
    if not (isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype == np.float32):
        raise TypeError("a two-dimensional float32 array is needed")
    if not value.flags.c_contiguous:
        raise TypeError("a C-contiguous array is needed (np.ascontiguousarray)")
    return value


place_of = operator.attrgetter("_left", "_top", "_width", "_height", "_rotation_angle")
"""These five of a `Rect`, in one call: every object of every frame is read."""


class FontFamily(IntEnum):
    """The one font family that pyservicemaker names."""

    Serif = 0


class ArrowHead(IntEnum):
    """Where an arrow has its head."""

    Start = 0
    End = 1
    Both = 2


class _FontName(str):
    """Kind of `Font.name`: written as a `FontFamily`, read as a str."""


def _font_name(value: Any) -> str:
    if not isinstance(value, FontFamily):
        raise TypeError("an osd.FontFamily is needed")
    return value.name


@_struct
class Color(_Struct):
    """RGBA, each 0 to 1."""

    r: float
    g: float
    b: float
    a: float

    def __init__(self, r: float, g: float, b: float, a: float) -> None:
        self.r, self.g, self.b, self.a = r, g, b, a


@_struct
class Font(_Struct):
    """Font of a text. There is no constructor: change the ``font`` of a `Text` or ``font_params`` of a `TextParams`."""

    name: _FontName
    size: Unsigned
    color: Color

    def __init__(self) -> None:
        raise TypeError("osd.Font: No constructor defined!")


@_struct
class Text(_Struct):
    """A free text of a display meta."""

    display_text: str
    x_offset: Unsigned
    y_offset: Unsigned
    font: Font
    set_bg_color: Unsigned
    bg_color: Color


@_struct
class TextParams(_Struct):
    """The text of an object."""

    display_text: str
    x_offset: Unsigned
    y_offset: Unsigned
    font_params: Font
    set_bg_clr: Unsigned
    text_bg_clr: Color


@_struct
class Rect(_Struct):
    """A rectangle, turned about its centre by ``rotation_angle`` degrees."""

    left: float
    top: float
    width: float
    height: float
    border_width: Unsigned
    border_color: Color
    has_bg_color: Unsigned
    bg_color: Color
    rotation_angle: float


@_struct
class Line(_Struct):
    """A line from (x1, y1) to (x2, y2)."""

    x1: Unsigned
    y1: Unsigned
    x2: Unsigned
    y2: Unsigned
    width: Unsigned
    color: Color


@_struct
class Arrow(_Struct):
    """A line with one or two heads."""

    x1: Unsigned
    y1: Unsigned
    x2: Unsigned
    y2: Unsigned
    width: Unsigned
    head: ArrowHead
    color: Color


@_struct
class Circle(_Struct):
    """A circle about (xc, yc)."""

    xc: Unsigned
    yc: Unsigned
    radius: Unsigned
    color: Color
    has_bg_color: Unsigned
    bg_color: Color
    width: Unsigned


@_struct
class Mask(_Struct):
    """A (height, width) float32 map that covers the object's box; points above ``threshold`` are painted."""

    threshold: float
    mask_array: FloatMap

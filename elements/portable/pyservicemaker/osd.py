"""The drawing types of pyservicemaker's ``osd`` module, as plain data.

Sizes and places are pixels of the frame that the object lies in; colours are RGBA from 0 to 1; angles are degrees,
positive is clockwise on the screen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Color:
    """RGBA, each 0 to 1."""

    r: float
    g: float
    b: float
    a: float


def _black() -> Color:
    return Color(0.0, 0.0, 0.0, 0.0)


class FontFamily(IntEnum):
    """The one font family that pyservicemaker names."""

    Serif = 0


@dataclass(slots=True)
class Font:
    """Font of a text; ``name`` takes a `FontFamily` or a str."""

    name: FontFamily | str = ""
    size: int = 0
    color: Color = field(default_factory=_black)


@dataclass(slots=True)
class Text:
    """A free text of a display meta."""

    display_text: str = ""
    x_offset: int = 0
    y_offset: int = 0
    font: Font = field(default_factory=Font)
    set_bg_color: bool = False
    bg_color: Color = field(default_factory=_black)


@dataclass(slots=True)
class TextParams:
    """The text of an object."""

    display_text: str = ""
    x_offset: int = 0
    y_offset: int = 0
    font_params: Font = field(default_factory=Font)
    set_bg_clr: bool = False
    text_bg_clr: Color = field(default_factory=_black)


@dataclass(slots=True)
class Rect:
    """A rectangle, turned about its centre by ``rotation_angle`` degrees."""

    left: float = 0.0
    top: float = 0.0
    width: float = 0.0
    height: float = 0.0
    border_width: int = 0
    border_color: Color = field(default_factory=_black)
    has_bg_color: bool = False
    bg_color: Color = field(default_factory=_black)
    rotation_angle: float = 0.0


@dataclass(slots=True)
class Line:
    """A line from (x1, y1) to (x2, y2)."""

    x1: int = 0
    y1: int = 0
    x2: int = 0
    y2: int = 0
    width: int = 0
    color: Color = field(default_factory=_black)


class ArrowHead(IntEnum):
    """Where an arrow has its head."""

    Start = 0
    End = 1
    Both = 2


@dataclass(slots=True)
class Arrow:
    """A line with one or two heads."""

    x1: int = 0
    y1: int = 0
    x2: int = 0
    y2: int = 0
    width: int = 0
    head: ArrowHead = ArrowHead.Start
    color: Color = field(default_factory=_black)


@dataclass(slots=True)
class Circle:
    """A circle about (xc, yc)."""

    xc: int = 0
    yc: int = 0
    radius: int = 0
    color: Color = field(default_factory=_black)
    has_bg_color: bool = False
    bg_color: Color = field(default_factory=_black)
    width: int = 1


@dataclass(slots=True)
class Mask:
    """A float map that covers the object's box; points above ``threshold`` are painted."""

    threshold: float = 0.0
    mask_array: NDArray[np.float32] | None = None

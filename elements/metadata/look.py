"""What objects of a detector look like on the screen: as nvinfer leaves them for nvdsosd."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any, NamedTuple

BORDER_WIDTH = 3
FONT_SIZE = 11
TEXT_ABOVE = 10  # pixels from the box's top to the label's
LARGEST = 2**32 - 1  # of an unsigned offset


class Look(NamedTuple):
    """A rectangle and a text, as osd structs, whose places and words somebody else sets."""

    rect: Any
    text: Any


class _Looks(threading.local):
    """One per thread and osd module, since making the structs takes as long as writing an object."""

    def __init__(self) -> None:
        self._made: dict[ModuleType, Look] = {}

    def of(self, osd: ModuleType) -> Look:
        """The structs keep what was set before: places and angles, which every object sets anew."""
        if osd not in self._made:
            self._made[osd] = Look(_red_rect(osd), _white_text(osd))
        return self._made[osd]


look_of = _Looks().of
"""The look in an ``osd`` module of pyservicemaker, for this thread."""


def place_text(text: Any, left: float, top: float) -> None:
    """Put an object's text above the corner of its box; the fields are unsigned."""
    text.x_offset = min(max(0, int(left)), LARGEST)
    text.y_offset = min(max(0, int(top) - TEXT_ABOVE), LARGEST)


def _red_rect(osd: Any) -> Any:
    rect = osd.Rect()
    rect.border_width = BORDER_WIDTH
    rect.border_color = osd.Color(1.0, 0.0, 0.0, 1.0)
    return rect


def _white_text(osd: Any) -> Any:
    text = osd.TextParams()
    font = text.font_params
    font.name = osd.FontFamily.Serif
    font.size = FONT_SIZE
    font.color = osd.Color(1.0, 1.0, 1.0, 1.0)
    text.set_bg_clr = 1
    text.text_bg_clr = osd.Color(0.0, 0.0, 0.0, 1.0)
    return text

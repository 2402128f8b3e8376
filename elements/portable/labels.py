"""Texts on RGB pictures: any script, inside of the picture, rendered once per text and style."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.portable import osd
from elements.portable.drawing import Image, rgb

_PIXELS_PER_POINT = 96 / 72  # font sizes are points, as in DeepStream (Pango at 96 dpi)
_SMALLEST, _LARGEST = 6, 200  # pixels
_WEIGHT = 500  # between regular and bold: thin strokes drown in video
_LONGEST = 500  # characters
_CACHED_TEXTS = 512

Rgba = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Sprite:
    """A rendered text: ``color`` (h, w, 3) uint8, premultiplied by its opacity; ``rest`` (h, w, 3) float32 is the part
    of the picture that shines through, None if nothing does."""

    color: Image
    rest: NDArray[np.float32] | None


def draw_text(image: Image, text: osd.Text) -> None:
    """A free text of a display meta; its place is the top left corner."""
    background = text.bg_color if text.set_bg_color else None
    draw_label(image, text.display_text, (text.x_offset, text.y_offset), text.font.size, text.font.color, background)


def draw_object_text(image: Image, text: osd.TextParams) -> None:
    """The text of an object; its place is the top left corner."""
    background = text.text_bg_clr if text.set_bg_clr else None
    font = text.font_params
    draw_label(image, text.display_text, (text.x_offset, text.y_offset), font.size, font.color, background)


def draw_label(
    image: Image,
    text: str,
    place: tuple[int, int],
    size: int,
    color: osd.Color,
    background: osd.Color | None = None,
) -> None:
    """Draw ``text`` with its top left corner at ``place`` (x, y), moved so that it is inside of the picture.

    ``size`` is in points of 4/3 pixels, line breaks are honoured, and what is wider than the picture is cut at the
    right. The fonts are OpenCV's own (Latin, Cyrillic, Greek, CJK, Arabic, Hebrew); the font's name changes nothing.
    """
    if not text.strip() or color.a <= 0:
        return
    sprite = _sprite(text[:_LONGEST], size, _rgba(color), _rgba(background) if background else None)
    height, width = sprite.color.shape[:2]
    x = max(0, min(_signed(place[0]), image.shape[1] - width))
    y = max(0, min(_signed(place[1]), image.shape[0] - height))
    part = image[y : y + height, x : x + width]
    painted = sprite.color[: part.shape[0], : part.shape[1]]
    if sprite.rest is None:
        part[:] = painted
    else:
        shining = cv2.multiply(part, sprite.rest[: part.shape[0], : part.shape[1]], dtype=cv2.CV_8U)
        cv2.add(shining, painted, dst=part)


@functools.lru_cache(maxsize=_CACHED_TEXTS)
def _sprite(text: str, points: int, color: Rgba, background: Rgba | None) -> _Sprite:
    pixels = round(min(_LARGEST, max(_SMALLEST, points * _PIXELS_PER_POINT)))
    coverage = _coverage(text, pixels)
    painted, rest = _blending(color, background)
    return _Sprite(painted.take(coverage, axis=0), None if rest is None else rest.take(coverage, axis=0))


@functools.lru_cache(maxsize=64)
def _blending(color: Rgba, background: Rgba | None) -> tuple[Image, NDArray[np.float32] | None]:
    """By coverage 0 to 255: the colour painted (256, 3) uint8, and the part that shines through (256, 3) float32."""
    text = np.linspace(0, min(1.0, color[3]), 256)[:, None]
    under = min(1.0, max(0.0, background[3])) if background else 0.0
    painted = text * np.array(rgb(osd.Color(*color)))
    if background:
        painted += (1 - text) * under * np.array(rgb(osd.Color(*background)))
    rest = np.repeat((1 - text) * (1 - under), 3, axis=1).astype(np.float32)
    return np.rint(painted).astype(np.uint8), rest if rest.any() else None


def _coverage(text: str, pixels: int) -> NDArray[np.uint8]:
    """(h, w) uint8: how much of each pixel the text covers, with a margin around it."""
    face = _font_face()
    lines = text.expandtabs(4).splitlines()
    pad, pitch = max(2, pixels // 5), round(pixels * 1.25)
    room = pixels * max(map(len, lines)) + 2 * pad  # no glyph is wider than high by more than the pad
    canvas = np.zeros((pitch * len(lines) + 2 * pad, room), np.uint8)
    ends = [
        cv2.putText(canvas, line, (pad, pad + number * pitch + pixels), (255,), face, pixels, _WEIGHT)[0][0]
        for number, line in enumerate(lines)
    ]
    return canvas[:, : max(ends) + pad]


@functools.cache
def _font_face() -> cv2.FontFace:
    """OpenCV's built-in font; the one for all scripts steps in for what it lacks.

    Raises:
        RuntimeError: if OpenCV is older than 5.0.
    """
    if not hasattr(cv2, "FontFace"):
        raise RuntimeError(
            f"OpenCV {cv2.__version__} cannot draw texts of all scripts; install opencv-python 5.0 or newer"
        )
    return cv2.FontFace("sans")


def _rgba(color: osd.Color) -> Rgba:
    return color.r, color.g, color.b, color.a


def _signed(offset: int) -> int:
    """Offsets are unsigned 32 bit: DeepStream's elements write a negative one as its complement."""
    return offset - (1 << 32) if offset >= 1 << 31 else offset

"""Boxes, masks, texts, lines, arrows and circles on RGB pictures: what nvdsosd draws, with OpenCV.

Pictures are (H, W, 3) uint8 RGB, C-contiguous, and painted in place. Shapes may lie partly or wholly outside of the
picture, be huge or not finite: what is visible is drawn, the rest ignored. A place of x pixels is the left edge of
column x, so a box of left 10 and width 20 covers columns 10 to 29; edges between pixels go to the nearest one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.metadata.masks import mask_in_window
from elements.metadata.rotated import bounds
from elements.portable import osd

Image = NDArray[np.uint8]
Box = tuple[int, int, int, int]  # x1, y1, x2, y2; x2 and y2 excluded

_SHIFT = 4  # OpenCV's fixed-point coordinates: 1/16 pixel
_FAR = 1e5  # pixels; beyond it the place of an edge cannot be seen in any picture
_MASK_OPACITY = 0.5


def draw_rect(image: Image, rect: osd.Rect) -> None:
    """The fill, then the border (inside of the box), turned clockwise about the centre by the rotation angle."""
    if not _is_box(rect):
        return
    if abs(rect.rotation_angle) > 0.001:
        _draw_turned(image, rect)
        return
    box = _pixels(rect)
    if rect.has_bg_color:
        fill_box(image, box, rect.bg_color)
    width = min(rect.border_width, (min(box[2] - box[0], box[3] - box[1]) + 1) // 2)
    if width > 0:
        x1, y1, x2, y2 = box
        for band in (
            (x1, y1, x2, y1 + width),
            (x1, y2 - width, x2, y2),
            (x1, y1 + width, x1 + width, y2 - width),
            (x2 - width, y1 + width, x2, y2 - width),
        ):
            fill_box(image, band, rect.border_color)


def fill_box(image: Image, box: Box, color: osd.Color) -> None:
    """Fill a box, blended by the colour's alpha."""
    x1, y1, x2, y2 = _visible(image, box)
    if x2 <= x1 or y2 <= y1 or color.a <= 0:
        return
    part = image[y1:y2, x1:x2]
    if color.a >= 1:
        part[:] = rgb(color)
    else:
        cv2.addWeighted(np.broadcast_to(_color_row(color), part.shape), color.a, part, 1 - color.a, 0, dst=part)


def draw_mask(image: Image, rect: osd.Rect, mask: osd.Mask) -> None:
    """Tint where the mask, stretched over the box and turned with it, exceeds its threshold.

    The tint is the box's fill colour if it has one, else its border colour at half opacity.
    """
    if not _is_box(rect) or mask.mask_array.size == 0:
        return
    box = (rect.left, rect.top, rect.left + rect.width, rect.top + rect.height)
    angle = math.radians(rect.rotation_angle)
    window = _visible(image, _around(box, angle) if angle else _pixels(rect))
    x1, y1, x2, y2 = window
    if x2 <= x1 or y2 <= y1:
        return
    inside = mask_in_window(mask.mask_array, mask.threshold, box, window, angle)
    color, alpha = (rect.bg_color, rect.bg_color.a) if rect.has_bg_color else (rect.border_color, _MASK_OPACITY)
    part = image[y1:y2, x1:x2]
    tinted = cv2.addWeighted(np.broadcast_to(_color_row(color), part.shape), alpha, part, 1 - alpha, 0)
    cv2.copyTo(tinted, inside.view(np.uint8), part)


def draw_line(image: Image, line: osd.Line) -> None:
    """A line of ``width`` pixels with smooth edges."""
    _draw_stroke(image, (line.x1, line.y1), (line.x2, line.y2), line.width, line.color)


def draw_arrow(image: Image, arrow: osd.Arrow) -> None:
    """A line with a filled head at its start, its end, or both."""
    start, end = (arrow.x1, arrow.y1), (arrow.x2, arrow.y2)
    length = math.dist(start, end)
    if length == 0:
        return
    _draw_stroke(image, start, end, arrow.width, arrow.color)
    size = min(length, 6 + 3 * max(1, arrow.width))
    heads = {osd.ArrowHead.Start: [(start, end)], osd.ArrowHead.End: [(end, start)]}
    for tip, tail in heads.get(arrow.head, [(start, end), (end, start)]):
        along = np.subtract(tail, tip) / length * size
        across = np.array([-along[1], along[0]]) / 2
        corners = np.array([tip, tip + along + across, tip + along - across])
        _painted(image, corners, 1, arrow.color, lambda part, c, p: cv2.fillPoly(part, [p], c, cv2.LINE_AA, _SHIFT))


def draw_circle(image: Image, circle: osd.Circle) -> None:
    """A circle about (xc, yc): the fill, then the outline, which is centred on the radius."""
    center, radius = np.array([[circle.xc, circle.yc]], float), min(circle.radius, int(_FAR))
    if radius == 0:
        return
    bounds = np.concatenate([center - radius, center + radius])

    def disc(thickness: int) -> Callable[..., Any]:
        def paint(part: Image, color: Any, points: NDArray[np.int32]) -> None:
            middle = (points[0] + points[1]) // 2
            cv2.circle(part, middle.tolist(), radius << _SHIFT, color, thickness, cv2.LINE_AA, _SHIFT)

        return paint

    if circle.has_bg_color:
        _painted(image, bounds, 1, circle.bg_color, disc(cv2.FILLED))
    if circle.width > 0:
        _painted(image, bounds, circle.width, circle.color, disc(min(circle.width, 255)))


def blur_box(image: Image, rect: osd.Rect) -> None:
    """Make what is in the box unrecognisable."""
    if not _is_box(rect):
        return
    x1, y1, x2, y2 = _visible(image, _pixels(rect))
    if x2 > x1 and y2 > y1:
        part = image[y1:y2, x1:x2]
        size = max(3, min(x2 - x1, y2 - y1) // 3)
        cv2.blur(part, (size, size), dst=part, borderType=cv2.BORDER_REPLICATE)


def rgb(color: osd.Color) -> tuple[int, int, int]:
    """The colour as 8 bit RGB, without its alpha."""
    red, green, blue = (min(255, max(0, round(part * 255))) for part in (color.r, color.g, color.b))
    return red, green, blue


# --- helpers ----------------------------------------------------------------------------------------------------------


def _draw_turned(image: Image, rect: osd.Rect) -> None:
    angle = math.radians(rect.rotation_angle)
    center = np.array([rect.left + rect.width / 2, rect.top + rect.height / 2])
    along = np.array([math.cos(angle), math.sin(angle)])  # y points down, so a positive angle turns clockwise
    across = np.array([-along[1], along[0]])

    def corners(inset: float) -> NDArray[np.float64]:  # OpenCV paints half a pixel beyond the path that it is given
        half_x, half_y = (max(0.0, size / 2 - inset) for size in (rect.width, rect.height))
        signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        # OpenCV's coordinates are pixel centres
        return np.array([center + sx * half_x * along + sy * half_y * across for sx, sy in signs]) - 0.5

    if rect.has_bg_color:
        _painted(
            image, corners(0.5), 1, rect.bg_color, lambda part, c, p: cv2.fillPoly(part, [p], c, cv2.LINE_AA, _SHIFT)
        )
    width = min(rect.border_width, 255)
    if width > 0:
        _painted(
            image,
            corners((width + 1) / 2),
            width,
            rect.border_color,
            lambda part, c, p: cv2.polylines(part, [p], True, c, width, cv2.LINE_AA, _SHIFT),
        )


def _draw_stroke(image: Image, start: tuple[int, int], end: tuple[int, int], width: int, color: osd.Color) -> None:
    width = min(max(1, width), 255)
    _painted(
        image,
        np.array([start, end], float),
        width,
        color,
        lambda part, c, p: cv2.line(part, p[0].tolist(), p[1].tolist(), c, width, cv2.LINE_AA, _SHIFT),
    )


def _painted(
    image: Image, points: NDArray[np.float64], width: int, color: osd.Color, paint: Callable[[Image, Any, Any], Any]
) -> None:
    """Call ``paint(part, colour, fixed-point places in part)`` for the visible part around ``points``, blended."""
    if color.a <= 0 or not np.isfinite(points).all():
        return
    points = np.clip(points, -_FAR, _FAR)
    margin = width / 2 + 2
    low, high = np.floor(points.min(axis=0) - margin), np.ceil(points.max(axis=0) + margin)
    x1, y1, x2, y2 = _visible(image, (int(low[0]), int(low[1]), int(high[0]), int(high[1])))
    if x2 <= x1 or y2 <= y1:
        return
    part = image[y1:y2, x1:x2]
    places = np.rint((points - (x1, y1)) * (1 << _SHIFT)).astype(np.int32)
    if color.a >= 1:
        paint(part, rgb(color), places)
        return
    layer = part.copy()
    paint(layer, rgb(color), places)
    cv2.addWeighted(layer, color.a, part, 1 - color.a, 0, dst=part)


def _is_box(rect: osd.Rect) -> bool:
    places = (rect.left, rect.top, rect.width, rect.height, rect.rotation_angle)
    return all(map(math.isfinite, places)) and rect.width > 0 and rect.height > 0


def _pixels(rect: osd.Rect) -> Box:
    """The box on whole pixels, at least one wide and high."""
    x1, y1 = _nearest(rect.left), _nearest(rect.top)
    return x1, y1, max(x1 + 1, _nearest(rect.left + rect.width)), max(y1 + 1, _nearest(rect.top + rect.height))


def _around(box: tuple[float, float, float, float], angle: float) -> Box:
    """The whole pixels around a turned box, as far as any picture can show them."""
    edges = np.clip(bounds(box, angle)[0], -_FAR, _FAR)
    return math.floor(edges[0]), math.floor(edges[1]), math.ceil(edges[2]), math.ceil(edges[3])


def _nearest(place: float) -> int:
    return math.floor(min(_FAR, max(-_FAR, place)) + 0.5)


def _visible(image: Image, box: Box) -> Box:
    height, width = image.shape[:2]
    return max(0, box[0]), max(0, box[1]), min(width, box[2]), min(height, box[3])


def _color_row(color: osd.Color) -> Image:
    return np.array(rgb(color), np.uint8)

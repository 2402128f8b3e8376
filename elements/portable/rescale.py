"""Metadata follows the picture: what nvvideoconvert and the tiler do to boxes, texts and drawings.

Observed on NVIDIA's nvvideoconvert: places, box sizes and text offsets are scaled; the font size follows the height;
border and line widths, detector boxes, rotation angles and masks stay. A mirrored picture turns angles round here
(NVIDIA's keeps them, which tilts the box the wrong way); display metas are not mirrored there and neither here.
"""

from __future__ import annotations

from dataclasses import dataclass

from elements.portable.meta import DisplayMeta, FrameMeta
from elements.portable.osd import Arrow, Line, Rect

COUNTERCLOCKWISE, ROTATE_180, CLOCKWISE, HORIZONTAL, UPPER_RIGHT, VERTICAL, UPPER_LEFT = range(1, 8)
TURNS = (COUNTERCLOCKWISE, CLOCKWISE, UPPER_RIGHT, UPPER_LEFT)  # width and height change places
_MIRRORS = (HORIZONTAL, VERTICAL, UPPER_RIGHT, UPPER_LEFT)


@dataclass(frozen=True, slots=True)
class Scaling:
    """``new = old * (sx, sy) + (dx, dy)`` in pixels."""

    sx: float
    sy: float
    dx: float = 0.0
    dy: float = 0.0

    def apply(self, frame: FrameMeta) -> None:
        """Move and scale everything that is drawn on the frame."""
        for item in frame.objects:
            self._rect(item.rect)
            item.text.x_offset, item.text.y_offset = self._point(item.text.x_offset, item.text.y_offset)
            item.text.font_params.size = int(item.text.font_params.size * self.sy)
        for display in frame.displays:
            self._display(display)

    def _display(self, display: DisplayMeta) -> None:
        for rect in display.rects:
            self._rect(rect)
        for text in display.texts:
            text.x_offset, text.y_offset = self._point(text.x_offset, text.y_offset)
        lines: list[Line | Arrow] = [*display.lines, *display.arrows]
        for line in lines:
            line.x1, line.y1 = self._point(line.x1, line.y1)
            line.x2, line.y2 = self._point(line.x2, line.y2)
        for circle in display.circles:
            circle.xc, circle.yc = self._point(circle.xc, circle.yc)
            circle.radius = int(circle.radius * min(self.sx, self.sy))

    def _rect(self, rect: Rect) -> None:
        rect.left, rect.top = rect.left * self.sx + self.dx, rect.top * self.sy + self.dy
        rect.width, rect.height = rect.width * self.sx, rect.height * self.sy

    def _point(self, x: int, y: int) -> tuple[int, int]:
        """Whole pixels, not negative: these fields are unsigned."""
        return max(0, int(x * self.sx + self.dx)), max(0, int(y * self.sy + self.dy))


def flip(frame: FrameMeta, method: int, width: int, height: int) -> None:
    """Turn or mirror the objects of a frame of ``width`` x ``height`` pixels by nvvideoconvert's ``flip-method``."""
    for item in frame.objects:
        rect, text = item.rect, item.text
        x, y = text.x_offset - rect.left, text.y_offset - rect.top  # labels stay where they are relative to the box
        right, bottom = width - rect.left - rect.width, height - rect.top - rect.height
        rect.left, rect.top = {
            COUNTERCLOCKWISE: (rect.top, right),
            ROTATE_180: (right, bottom),
            CLOCKWISE: (bottom, rect.left),
            HORIZONTAL: (right, rect.top),
            UPPER_RIGHT: (bottom, right),
            VERTICAL: (rect.left, bottom),
            UPPER_LEFT: (rect.top, rect.left),
        }[method]
        if method in TURNS:
            rect.width, rect.height = rect.height, rect.width
        if method in _MIRRORS:
            rect.rotation_angle = -rect.rotation_angle
        text.x_offset, text.y_offset = max(0, int(rect.left + x)), max(0, int(rect.top + y))

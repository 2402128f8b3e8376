"""What nvdsosd paints on one frame, and in which order; no GStreamer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from elements.portable import osd
from elements.portable.drawing import (
    Image,
    blur_box,
    draw_arrow,
    draw_circle,
    draw_line,
    draw_mask,
    draw_rect,
)
from elements.portable.labels import draw_label, draw_object_text, draw_text
from elements.portable.meta import FrameMeta, ObjectMeta


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock's text, place (x, y) of its top left corner in pixels, font size in points, and colour."""

    text: str
    place: tuple[int, int]
    size: int
    color: osd.Color


@dataclass(frozen=True, slots=True)
class Overlay:
    """What to paint. ``blurred`` holds (unique component id, class id) of objects to blur."""

    text: bool = True
    boxes: bool = True
    masks: bool = False
    blurred: frozenset[tuple[int, int]] = frozenset()

    def is_empty(self, frame: FrameMeta) -> bool:
        """Whether nothing of ``frame`` is to be painted, so that no picture is needed."""
        return not any(d.rects or d.texts or d.lines or d.arrows or d.circles for d in frame.displays) and not any(
            (self.boxes and (item.rect.border_width or item.rect.has_bg_color))
            or (self.text and item.text.display_text)
            or (self.masks and item.mask.mask_array.size)
            or self._is_blurred(item)
            for item in frame.objects
        )

    def draw(self, image: Image, frame: FrameMeta, clock: Clock | None = None) -> None:
        """Paint the frame's objects and display metas on its (H, W, 3) RGB picture, in DeepStream's order.

        The order is boxes, masks, texts, lines, arrows, circles, blurs; within each, objects before display metas.
        """
        if self.boxes:
            for rect in self._rects(frame):
                draw_rect(image, rect)
        if self.masks:
            for item in frame.objects:
                draw_mask(image, item.rect, item.mask)
        if self.text:
            for item in frame.objects:
                draw_object_text(image, item.text)
            for display in frame.displays:
                for text in display.texts:
                    draw_text(image, text)
        for display in frame.displays:
            for line in display.lines:
                draw_line(image, line)
        for display in frame.displays:
            for arrow in display.arrows:
                draw_arrow(image, arrow)
        for display in frame.displays:
            for circle in display.circles:
                draw_circle(image, circle)
        for item in frame.objects:
            if self._is_blurred(item):
                blur_box(image, item.rect)
        if clock:
            draw_label(image, clock.text, clock.place, clock.size, clock.color)

    def _rects(self, frame: FrameMeta) -> Iterator[osd.Rect]:
        for item in frame.objects:
            yield item.rect
        for display in frame.displays:
            yield from display.rects

    def _is_blurred(self, item: ObjectMeta) -> bool:
        return (item.unique_component_id, item.class_id) in self.blurred

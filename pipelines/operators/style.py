"""How objects are drawn: colour by class (masks too), line width, label text."""

from __future__ import annotations

from typing import Any

from pyservicemaker import osd

from elements.metadata.classified import labels_of
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report

# ten hues that stay apart on video, brightest first
PALETTE = (
    (0.00, 0.75, 1.00),
    (1.00, 0.45, 0.10),
    (0.35, 0.90, 0.30),
    (1.00, 0.25, 0.45),
    (0.75, 0.55, 1.00),
    (1.00, 0.85, 0.10),
    (0.15, 0.85, 0.75),
    (1.00, 0.60, 0.80),
    (0.65, 0.80, 0.35),
    (0.60, 0.70, 1.00),
)


class DrawStyle(Operator):
    """Writes the drawing parameters of every object for nvdsosd. Sizes are mux-frame pixels.

    Args:
        labels: whether objects carry a text.
        ids: whether the text has the track id.
        confidence: whether the text has the confidence.
        line_width: border width; 0 draws no box.
        font_size: text size in points.
        report: see `Operator`.
        attributes: whether the text has the labels that classifiers gave.
    """

    def __init__(
        self,
        labels: bool,
        ids: bool,
        confidence: bool,
        line_width: int,
        font_size: int,
        report: Report,
        attributes: bool = True,
    ) -> None:
        super().__init__(report)
        self._labels, self._ids, self._confidence, self._attributes = labels, ids, confidence, attributes
        self._line_width, self._font_size = line_width, font_size

    def process(self, batch_meta: Any) -> None:
        """Style every object of the batch."""
        for frame in batch_meta.frame_items:
            for item in frame.object_items:
                self._style(item)

    def _style(self, item: Any) -> None:
        colour = colour_of(item.class_id)
        rect = item.rect_params
        rect.border_width = self._line_width
        rect.border_color = colour
        text = item.text_params
        text.display_text = self._text(item)
        text.x_offset = max(0, round(rect.left))
        text.y_offset = max(0, round(rect.top) - round(self._font_size * 1.9) - self._line_width)
        text.font_params.size = self._font_size
        text.font_params.color = osd.Color(0.0, 0.0, 0.0, 1.0)
        text.set_bg_clr = True
        text.text_bg_clr = colour

    def _text(self, item: Any) -> str:
        if not self._labels:
            return ""
        parts = [item.label]
        if self._ids and item.object_id != UNTRACKED_OBJECT_ID:
            parts.append(f"#{item.object_id}")
        if self._confidence and item.confidence >= 0:
            parts.append(f"{item.confidence:.2f}")
        if self._attributes:
            parts.extend(label.text for labels in labels_of(item).values() for label in labels if label.text)
        return " ".join(parts)


def colour_of(class_id: int) -> Any:
    """The colour of a class, opaque."""
    return osd.Color(*PALETTE[class_id % len(PALETTE)], 1.0)

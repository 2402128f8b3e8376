"""Key points of objects as circles and lines, for nvdsosd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyservicemaker import osd

from elements.metadata.edit import find_jsons
from elements.metadata.writer import KEYPOINTS
from pipelines.operators.base import Operator, Report
from pipelines.operators.style import colour_of

# COCO's 17: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles, each left before right
COCO_LIMBS = (
    *((0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 5), (4, 6)),  # head
    *((5, 6), (5, 7), (7, 9), (6, 8), (8, 10)),  # arms
    *((5, 11), (6, 12), (11, 12), (11, 13), (13, 15), (12, 14), (14, 16)),  # trunk and legs
)
COCO_POINTS = 17
LEAST_SCORE = 0.3
IN_ONE_DISPLAY = 16  # MAX_ELEMENTS_IN_DISPLAY_META of nvdsmeta.h
_HEIGHT_PER_RADIUS = 180

Point = tuple[int, int]


class DrawKeypoints(Operator):
    """Adds display metas with the key points of the objects, in the colour of their class.

    It works before the tiler, in mux-frame pixels: what comes after moves display metas with the picture, but not the
    JSON that holds the points. Objects of 17 points get COCO's skeleton. Points of a score below 0.3 and those outside
    of the frame are left out.

    Args:
        line_width: of the skeleton, pixels.
        report: see `Operator`.
    """

    def __init__(self, line_width: int, report: Report) -> None:
        super().__init__(report)
        self._line_width = max(1, line_width)

    def process(self, batch_meta: Any) -> None:
        """Draw the key points of every frame."""
        for frame in batch_meta.frame_items:
            radius = max(self._line_width, round(frame.pipeline_height / _HEIGHT_PER_RADIUS))
            lines: list[Any] = []
            circles: list[Any] = []
            for item in frame.object_items:
                points = find_jsons(item, (KEYPOINTS,)).get(KEYPOINTS)
                if points:
                    self._draw(points, colour_of(item.class_id), radius, lines, circles)
            for display in _displays(batch_meta, lines, circles):
                frame.append(display)

    def _draw(
        self, points: list[list[float | None]], colour: Any, radius: int, lines: list[Any], circles: list[Any]
    ) -> None:
        """Add one object's drawings."""
        seen = {number: place for number, point in enumerate(points) if (place := _visible(point))}
        limbs = COCO_LIMBS if len(points) == COCO_POINTS else ()
        for a, b in limbs:
            if a in seen and b in seen:
                line = osd.Line()
                (line.x1, line.y1), (line.x2, line.y2) = seen[a], seen[b]
                line.width, line.color = self._line_width, colour
                lines.append(line)
        for x, y in seen.values():
            circle = osd.Circle()
            circle.xc, circle.yc, circle.radius = x, y, radius
            circle.color = circle.bg_color = colour
            circle.has_bg_color = circle.width = 1
            circles.append(circle)


def _visible(point: list[float | None]) -> Point | None:
    """The pixel that a point lies in, if it is to be drawn. Places are unsigned there."""
    x, y, score = point
    if x is None or y is None or score is None or score < LEAST_SCORE or x < 0 or y < 0:
        return None
    return int(x), int(y)


def _displays(batch_meta: Any, lines: list[Any], circles: list[Any]) -> Iterator[Any]:
    """Filled display metas, as many as it takes; each holds 16 of a kind."""
    for start in range(0, max(len(lines), len(circles)), IN_ONE_DISPLAY):
        display = batch_meta.acquire_display_meta()
        for line in lines[start : start + IN_ONE_DISPLAY]:
            display.add_line(line)
        for circle in circles[start : start + IN_ONE_DISPLAY]:
            display.add_circle(circle)
        yield display

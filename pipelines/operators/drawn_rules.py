"""Zones and lines of analyze stages with their counts, for nvdsosd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from elements.analytics.geometry import Point
from elements.analytics.rules import Line, Rules, Zone
from elements.metadata.edit import find_jsons
from pipelines.operators.base import Operator, Report
from pipelines.operators.exchange import ANALYTICS, draw, placement_of
from pipelines.operators.view import Drawing

# as DeepStream's nvdsanalytics has them
ZONE_COLOUR = (1.0, 1.0, 0.0, 1.0)
CROWDED_COLOUR = (1.0, 0.4, 0.0, 1.0)
LINE_COLOUR = (0.0, 1.0, 0.0, 1.0)
_TICK = 0.15  # length of the mark that shows which way is in, as a share of the distance to ``towards``


class DrawRules(Operator):
    """Adds display metas before the tiler: outlines of zones with who is inside, lines with both counts.

    Args:
        drawn: rules by source id, by the name of their stage.
        padding: whether the stream mux keeps the aspect ratio by padding.
        mux_size: see `pipelines.operators.exchange.placement_of`.
        font_size: points.
        line_width: mux-frame pixels.
        report: see `Operator`.
    """

    def __init__(
        self,
        drawn: Mapping[str, Mapping[int, Rules]],
        padding: bool,
        mux_size: tuple[int, int] | None,
        font_size: int,
        line_width: int,
        report: Report,
    ) -> None:
        super().__init__(report)
        self._drawn, self._padding, self._mux_size = drawn, padding, mux_size
        self._font_size, self._line_width = font_size, line_width

    def process(self, batch_meta: Any) -> None:
        """Draw the rules of every frame's source."""
        for frame in batch_meta.frame_items:
            found = find_jsons(frame, (ANALYTICS,)).get(ANALYTICS, {})
            placement = placement_of(frame, self._padding, self._mux_size)
            size = placement.source_width, placement.source_height
            drawings = [
                drawing
                for stage, by_source in self._drawn.items()
                if stage in found and frame.source_id in by_source
                for drawing in self._drawings(by_source[frame.source_id], found[stage], size)
            ]
            draw(batch_meta, frame, drawings, placement)

    def _drawings(self, rules: Rules, counts: Mapping[str, Any], size: tuple[int, int]) -> Iterator[Drawing]:
        for zone in rules.zones:
            yield from self._zone(zone, counts["zones"][zone.name], size)
        for line in rules.lines:
            yield from self._line(line, counts["lines"][line.name], size)

    def _zone(self, zone: Zone, count: Mapping[str, Any], size: tuple[int, int]) -> Iterator[Drawing]:
        colour = CROWDED_COLOUR if count.get("crowded") else ZONE_COLOUR
        corners = tuple(_pixels(point, size) for point in (*zone.polygon, zone.polygon[0]))
        yield Drawing(corners, colour, size=self._line_width)
        top = min(zone.polygon, key=lambda point: (point[1], point[0]))
        yield Drawing((_pixels(top, size),), colour, f"{zone.name} {count['count']}", self._font_size)

    def _line(self, line: Line, count: Mapping[str, Any], size: tuple[int, int]) -> Iterator[Drawing]:
        middle = ((line.start[0] + line.end[0]) / 2, (line.start[1] + line.end[1]) / 2)
        tick = tuple(m + (t - m) * _TICK for m, t in zip(middle, line.towards, strict=True))
        ends = _pixels(line.start, size), _pixels(line.end, size)
        yield Drawing(ends, LINE_COLOUR, size=self._line_width)
        yield Drawing((_pixels(middle, size), _pixels((tick[0], tick[1]), size)), LINE_COLOUR, size=self._line_width)
        text = f"{line.name} in {count['in']} out {count['out']}"
        yield Drawing((_pixels(line.start, size),), LINE_COLOUR, text, self._font_size)


def _pixels(point: Point, size: tuple[int, int]) -> Point:
    """Shares of the picture as source-frame pixels, the last ones at 1: what lies beyond is not drawn."""
    return point[0] * (size[0] - 1), point[1] * (size[1] - 1)

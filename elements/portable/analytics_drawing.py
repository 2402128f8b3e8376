"""What nvdsanalytics draws: areas, crowds, lines and directions with their labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from elements.analytics.geometry import Point
from elements.analytics.nvds_config import Stream
from elements.analytics.nvds_engine import FrameInfo
from elements.portable import osd
from elements.portable.meta import DisplayMeta

YELLOW, ORANGE, GREEN, RED = (1.0, 1.0, 0.0), (1.0, 0.5, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
IN_ONE_DISPLAY = 16  # MAX_ELEMENTS_IN_DISPLAY_META of nvdsmeta.h
_WIDTH = 4

Rgb = tuple[float, float, float]
_Stroke = tuple[Point, Point, Rgb]
_Label = tuple[Point, str, Rgb]


def displays(rules: Stream, found: FrameInfo, font_size: int) -> Iterator[DisplayMeta]:
    """Display metas for one frame, as many as it takes: rules in pixels of the frame, labels "name=count"."""
    strokes, labels = [*_strokes(rules)], [*_labels(rules, found)]
    for start in range(0, max(len(strokes), len(labels)), IN_ONE_DISPLAY):
        end = start + IN_ONE_DISPLAY
        yield DisplayMeta(
            lines=[_line(*stroke) for stroke in strokes[start:end]],
            texts=[_text(*label, font_size) for label in labels[start:end]],
        )


def _strokes(rules: Stream) -> Iterator[_Stroke]:
    for areas, colour in ((rules.rois, YELLOW), (rules.crowds, ORANGE)):
        for polygon in areas.polygons.values():
            yield from ((a, b, colour) for a, b in itertools.pairwise((*polygon, polygon[0])))
    yield from ((*line.ends, GREEN) for line in rules.lines.lines.values())
    yield from ((*vector, RED) for vector in rules.directions.vectors.values())


def _labels(rules: Stream, found: FrameInfo) -> Iterator[_Label]:
    for label, polygon in rules.rois.polygons.items():
        yield polygon[0], f"{label}={found.obj_in_roi_cnt[label]}", YELLOW
    for label, polygon in rules.crowds.polygons.items():
        note = f"{label}: overcrowded" if found.oc_status[label] else label
        yield polygon[0], f"{note}={found.obj_in_roi_cnt[label]}", ORANGE
    for label, line in rules.lines.lines.items():
        yield line.ends[0], f"{label}={found.obj_lc_cum_cnt[label]}", GREEN
    for label, vector in rules.directions.vectors.items():
        yield vector[0], label, RED


def _line(start: Point, end: Point, colour: Rgb) -> osd.Line:
    line = osd.Line()
    (line.x1, line.y1), (line.x2, line.y2) = _whole(start), _whole(end)
    line.width, line.color = _WIDTH, osd.Color(*colour, 1.0)
    return line


def _text(place: Point, content: str, colour: Rgb, size: int) -> osd.Text:
    text = osd.Text()
    text.display_text = content
    text.x_offset, text.y_offset = _whole(place)
    text.font.size = size
    text.font.color = osd.Color(*colour, 1.0)
    return text


def _whole(point: Point) -> tuple[int, int]:
    """Whole pixels, not negative: the fields are unsigned."""
    return max(0, round(point[0])), max(0, round(point[1]))

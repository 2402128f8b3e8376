"""What DeepStream's nvdsanalytics says of the objects of one stream, as far as it has been observed or documented.

It knows no hysteresis: a line is crossed in the very frame in which the bottom centre of a box has passed it, at most
once per object, and areas hold whoever is in them in this frame. For steady counts see `elements.analytics.engine`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from elements.analytics.geometry import Point, inside, passes, turn
from elements.analytics.nvds_config import Areas, CrossedLine, Stream

FORGET_NS = 300_000_000
STILL_FRAMES, STILL_PIXELS = 50, 4.0
"""An object is STOPPED when its anchor stays within `STILL_PIXELS` for so many frames (NVIDIA's: 46 to 59)."""
STOPPED = "STOPPED"


class _Mode(NamedTuple):
    """Who moves: least squared displacement in pixels, in how many frames at least, and least cosine to the vector."""

    displacement2: float
    frames: int
    cosine: float


MODES = {"loose": _Mode(1000, 3, 0.1), "balanced": _Mode(3000, 10, 0.5), "strict": _Mode(6000, 20, 0.8)}
_LONGEST = 30
"""Frames within which an object must have come so far; NVIDIA's is not known."""


class Seen(NamedTuple):
    """An object: class, track id (``None``: not tracked), and bottom centre of its box in pixels."""

    class_id: int
    track_id: int | None
    foot: Point


@dataclass(slots=True)
class FrameInfo:
    """NvDsAnalyticsFrameMeta: by label whether an area is crowded, how many are in it, and who crossed a line in this
    frame and so far; objects by class."""

    oc_status: dict[str, bool] = field(default_factory=dict)
    obj_in_roi_cnt: dict[str, int] = field(default_factory=dict)
    obj_lc_curr_cnt: dict[str, int] = field(default_factory=dict)
    obj_lc_cum_cnt: dict[str, int] = field(default_factory=dict)
    unique_id: int = 0
    obj_cnt: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class ObjectInfo:
    """NvDsAnalyticsObjInfo: labels of areas, crowds, lines just crossed, direction, and ``STOPPED``."""

    roi_status: list[str] = field(default_factory=list)
    oc_status: list[str] = field(default_factory=list)
    lc_status: list[str] = field(default_factory=list)
    dir_status: str = ""
    unique_id: int = 0
    obj_status: str = ""

    def __bool__(self) -> bool:
        """Whether there is something to say."""
        return bool(self.roi_status or self.oc_status or self.lc_status or self.dir_status or self.obj_status)


@dataclass(slots=True)
class _Memory:
    """What is remembered of a tracked object."""

    places: deque[Point] = field(default_factory=lambda: deque(maxlen=_LONGEST + 1))
    crossed: set[str] = field(default_factory=set)
    seen_ns: int = 0
    rest: Point = (0.0, 0.0)
    still_frames: int = 0


class NvdsStream:
    """One stream.

    Args:
        rules: of its pad, in pixels of the configuration's picture.
        scale: (x, y) factors from there to pixels of the frames.
        unique_id: of the element.
    """

    def __init__(self, rules: Stream, scale: Point, unique_id: int) -> None:
        self.rules = scaled(rules, scale)
        self._unique_id = unique_id
        self._objects: dict[int, _Memory] = {}
        self._crossings = dict.fromkeys(self.rules.lines.lines, 0)

    @property
    def needs_tracks(self) -> bool:
        """Whether there are lines or directions, which look at tracked objects only."""
        return bool(self.rules.lines.lines or self.rules.directions.vectors)

    def process(self, pts_ns: int, objects: Sequence[Seen]) -> tuple[FrameInfo, list[ObjectInfo]]:
        """One frame, and what there is to say of it and of each object."""
        frame = FrameInfo(unique_id=self._unique_id)
        found = [ObjectInfo(unique_id=self._unique_id) for _ in objects]
        for seen in objects:
            frame.obj_cnt[seen.class_id] = frame.obj_cnt.get(seen.class_id, 0) + 1
        self._areas(frame, found, objects)
        crossings = dict.fromkeys(self._crossings, 0)
        for seen, info in zip(objects, found, strict=True):
            if seen.track_id is not None:
                self._follow(seen, seen.track_id, info, pts_ns)
                for label in info.lc_status:
                    crossings[label] += 1
                    self._crossings[label] += 1
        frame.obj_lc_curr_cnt, frame.obj_lc_cum_cnt = crossings, dict(self._crossings)
        self._objects = {i: m for i, m in self._objects.items() if 0 <= pts_ns - m.seen_ns <= FORGET_NS}
        return frame, found

    def _areas(self, frame: FrameInfo, found: Sequence[ObjectInfo], objects: Sequence[Seen]) -> None:
        for label, polygon in self.rules.rois.polygons.items():
            within = _within(self.rules.rois, polygon, objects)
            frame.obj_in_roi_cnt[label] = sum(within)
            for info, is_in in zip(found, within, strict=True):
                if is_in:
                    info.roi_status.append(label)
        for label, polygon in self.rules.crowds.polygons.items():
            within = _within(self.rules.crowds, polygon, objects)
            frame.obj_in_roi_cnt[label] = sum(within)
            frame.oc_status[label] = sum(within) >= self.rules.crowds.threshold
            for info, is_in in zip(found, within, strict=True):
                if is_in and frame.oc_status[label]:
                    info.oc_status.append(label)

    def _follow(self, seen: Seen, track_id: int, info: ObjectInfo, pts_ns: int) -> None:
        memory = self._objects.setdefault(track_id, _Memory(rest=seen.foot))
        memory.places.append(seen.foot)
        memory.seen_ns = pts_ns
        lines, directions = self.rules.lines, self.rules.directions
        if not lines.classes or seen.class_id in lines.classes:
            for label, line in lines.lines.items():
                if label not in memory.crossed and _crosses(memory.places, line, lines.extended, MODES[lines.mode]):
                    memory.crossed.add(label)
                    info.lc_status.append(label)
        if not directions.classes or seen.class_id in directions.classes:
            mode = MODES[directions.mode]
            cosines = {label: _cosine(memory.places, way, mode) for label, way in directions.vectors.items()}
            best = max(cosines, key=lambda label: cosines[label], default="")
            info.dir_status = best if best and cosines[best] >= mode.cosine else ""
        if math.dist(memory.rest, seen.foot) > STILL_PIXELS:
            memory.rest, memory.still_frames = seen.foot, 0
        memory.still_frames += 1
        info.obj_status = STOPPED if memory.still_frames > STILL_FRAMES else ""


def scaled(rules: Stream, scale: Point) -> Stream:
    """The rules with all points multiplied by ``scale`` (x, y)."""

    def points(given: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x * scale[0], y * scale[1]) for x, y in given)

    def pair(given: tuple[Point, Point]) -> tuple[Point, Point]:
        start, end = points(given)
        return start, end

    def areas(given: Areas) -> Areas:
        polygons = {label: points(polygon) for label, polygon in given.polygons.items()}
        return Areas(polygons, given.classes, given.inverse, given.threshold)

    lines = {label: CrossedLine(pair(line.way), pair(line.ends)) for label, line in rules.lines.lines.items()}
    vectors = {label: pair(vector) for label, vector in rules.directions.vectors.items()}
    return Stream(
        areas(rules.rois),
        areas(rules.crowds),
        type(rules.lines)(lines, rules.lines.classes, rules.lines.extended, rules.lines.mode),
        type(rules.directions)(vectors, rules.directions.classes, rules.directions.mode),
    )


def _within(areas: Areas, polygon: Sequence[Point], objects: Sequence[Seen]) -> list[bool]:
    return [
        (not areas.classes or seen.class_id in areas.classes) and inside(polygon, seen.foot) != areas.inverse
        for seen in objects
    ]


def _crosses(places: Sequence[Point], line: CrossedLine, extended: bool, mode: _Mode) -> bool:
    """Whether the newest step leads over the line, and the way of the last frames along its vector."""
    if len(places) < 2:
        return False
    step, ends = (places[-2], places[-1]), line.ends
    if (turn(*ends, step[0]) > 0) == (turn(*ends, step[1]) > 0) or not (extended or passes(step, ends)):
        return False
    return _cosine(places, line.way, mode) >= mode.cosine


def _cosine(places: Sequence[Point], way: tuple[Point, Point], mode: _Mode) -> float:
    """Of the angle between the way of the last frames and a vector; -1 where the object did not come far enough."""
    x, y = places[-1]
    far = ((x - a, y - b) for a, b in reversed(list(places)[: -mode.frames]))
    moved = next(((dx, dy) for dx, dy in far if dx * dx + dy * dy >= mode.displacement2), None)
    wanted = way[1][0] - way[0][0], way[1][1] - way[0][1]
    if moved is None or wanted == (0, 0):
        return -1.0
    return (moved[0] * wanted[0] + moved[1] * wanted[1]) / (math.hypot(*moved) * math.hypot(*wanted))

"""One tracked object as the rules see it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from elements.analytics.geometry import Point

Event = dict[str, Any]


class Sighting(NamedTuple):
    """An object of one frame: its track, its class, and its anchor as shares of the picture."""

    track_id: int
    class_id: int
    label: str
    point: Point


@dataclass(slots=True)
class Track:
    """A track and how it was seen last.

    Attributes:
        seen: its newest sighting.
        time_s: of that, seconds of stream time.
        before: the anchor of the sighting before; at first that of the first one.
        frames: in which it was seen.
        hold: frames in a row after which a new state of it counts; infinite before the track is confirmed.
    """

    seen: Sighting
    time_s: float
    before: Point
    frames: int = 0
    hold: float = 0.0

    @property
    def id(self) -> int:
        """Its track id."""
        return self.seen.track_id

    def is_one_of(self, classes: Collection[str | int]) -> bool:
        """Whether a rule for these classes (none: all) looks at it."""
        return not classes or self.seen.label in classes or self.seen.class_id in classes


def event(kind: str, rule: str, name: str, track: Track, time_s: float, **more: Any) -> Event:
    """What happened, as plain data: ``{"event": kind, rule: name, "track_id": …, "label": …, "time_s": …}``."""
    return {
        "event": kind,
        rule: name,
        "track_id": track.id,
        "label": track.seen.label,
        "time_s": round(time_s, 3),
        **more,
    }

"""Who moves in a direction."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from elements.analytics.geometry import Point
from elements.analytics.held import Held
from elements.analytics.rules import Direction
from elements.analytics.tracks import Event, Track, event

WINDOW_S = 1.0
LEAST_DISTANCE = 0.05
"""Who came less far than this share of the picture's height within `WINDOW_S` of stream time stands still."""
_MOST_PLACES = 64


@dataclass(slots=True)
class _Motion:
    """Whether a track moves in the direction, and its places of the last second: (time, x, y), in picture heights."""

    along: Held[bool] = field(default_factory=Held)
    places: deque[tuple[float, float, float]] = field(default_factory=lambda: deque(maxlen=_MOST_PLACES))


class DirectionWatch:
    """Watches for one direction in one source.

    A track moves along it when it came at least `LEAST_DISTANCE` far within `WINDOW_S`, within the tolerance of the
    vector; both are measured on the picture as it is seen, not as a square.

    Attributes:
        counts: how often tracks began to move so, by class name.
    """

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.counts: Counter[str] = Counter()
        self._tracks: dict[int, _Motion] = {}
        self._least_cosine = math.cos(math.radians(direction.tolerance))

    def see(self, track: Track, aspect: float) -> Iterator[Event]:
        """A track was seen in a picture of ``aspect`` (width / height); yields when it begins to move along."""
        if not track.is_one_of(self.direction.classes):
            return
        motion = self._tracks.setdefault(track.id, _Motion())
        x, y = track.seen.point
        motion.places.append((track.time_s, x * aspect, y))
        while motion.places[0][0] < track.time_s - WINDOW_S:
            motion.places.popleft()
        if motion.along.see(self._is_along(motion, aspect), track.time_s, track.hold) and motion.along.value:
            self.counts[track.seen.label or str(track.seen.class_id)] += 1
            yield event("direction", "direction", self.direction.name, track, motion.along.since)

    def lose(self, track: Track, reason: str) -> Iterator[Event]:
        """A track is gone."""
        self._tracks.pop(track.id, None)
        return iter(())

    def holds(self, track: Track) -> bool:
        """Whether a track moves along the direction."""
        motion = self._tracks.get(track.id)
        return motion is not None and motion.along.value is True

    def result(self) -> dict[str, Any]:
        """The counts so far, as plain data."""
        return {"count": self.counts.total(), "classes": dict(self.counts)}

    def _is_along(self, motion: _Motion, aspect: float) -> bool:
        (_, x1, y1), (_, x2, y2) = motion.places[0], motion.places[-1]
        moved: Point = (x2 - x1, y2 - y1)
        distance = math.hypot(*moved)
        if distance < LEAST_DISTANCE:
            return False
        wanted = (self.direction.towards[0] * aspect, self.direction.towards[1])
        cosine = (moved[0] * wanted[0] + moved[1] * wanted[1]) / (distance * math.hypot(*wanted))
        return cosine >= self._least_cosine

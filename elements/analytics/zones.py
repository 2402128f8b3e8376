"""Who is in a zone, since when, and whether they are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from elements.analytics.geometry import inside
from elements.analytics.held import Held
from elements.analytics.rules import Zone
from elements.analytics.tracks import Event, Track, event


@dataclass(slots=True)
class _Presence:
    """Whether a track is inside; if so, since when, and the class name by which it was counted."""

    inside: Held[bool] = field(default_factory=Held)
    entered_s: float = 0.0
    label: str = ""


class ZoneWatch:
    """Watches one zone of one source.

    A track that is inside enters, also one that is seen for the first time there. It leaves with the first frame
    outside, or where it was seen last if it is lost inside. So those who are inside are always the entries less the
    exits, of each class; a track whose class changes inside leaves as what it came as.

    Attributes:
        entries: by class name.
        exits: by class name.
        crowded: whether it is overcrowded.
    """

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.entries: Counter[str] = Counter()
        self.exits: Counter[str] = Counter()
        self.crowded = False
        self._tracks: dict[int, _Presence] = {}
        self._changed_s = self._crowded_s = 0.0

    @property
    def count(self) -> int:
        """How many are inside."""
        return self.entries.total() - self.exits.total()

    def see(self, track: Track) -> Iterator[Event]:
        """A track was seen; yields its entry or exit."""
        if not track.is_one_of(self.zone.classes):
            return
        presence = self._tracks.setdefault(track.id, _Presence())
        if not presence.inside.see(inside(self.zone.polygon, track.seen.point), track.time_s, track.hold):
            return
        if presence.inside.value:
            yield self._enter(track, presence)
        elif presence.label:
            yield self._leave(track, presence, presence.inside.since, "left")

    def lose(self, track: Track, reason: str) -> Iterator[Event]:
        """A track is gone; yields its exit if it was inside."""
        presence = self._tracks.pop(track.id, None)
        if presence is not None and presence.label:
            outside = presence.inside.newest is False
            yield self._leave(track, presence, presence.inside.since if outside else track.time_s, reason)

    def judge(self) -> Iterator[Event]:
        """After all tracks of a frame: yields the start or end of overcrowding."""
        limit = self.zone.crowded_at
        if limit is None or (self.count >= limit) == self.crowded:
            return
        self.crowded = not self.crowded
        told: Event = {"zone": self.zone.name, "count": self.count, "time_s": round(self._changed_s, 3)}
        if self.crowded:
            self._crowded_s = self._changed_s
            yield {"event": "overcrowding-start", **told}
        else:
            yield {"event": "overcrowding-end", **told, "duration_s": round(self._changed_s - self._crowded_s, 3)}

    def dwell_s(self, track: Track) -> float | None:
        """Seconds that a track has been inside; ``None`` if it is not."""
        presence = self._tracks.get(track.id)
        return round(track.time_s - presence.entered_s, 3) if presence is not None and presence.label else None

    def result(self) -> dict[str, Any]:
        """The state after a frame, as plain data."""
        found: dict[str, Any] = {
            "count": self.count,
            "classes": dict(self.entries - self.exits),  # who is inside
            "entries": self.entries.total(),
            "exits": self.exits.total(),
        }
        return found if self.zone.crowded_at is None else {**found, "crowded": self.crowded}

    def _enter(self, track: Track, presence: _Presence) -> Event:
        presence.entered_s, presence.label = presence.inside.since, track.seen.label or str(track.seen.class_id)
        self.entries[presence.label] += 1
        self._changed_s = presence.entered_s
        return event("entry", "zone", self.zone.name, track, presence.entered_s)

    def _leave(self, track: Track, presence: _Presence, time_s: float, reason: str) -> Event:
        self.exits[presence.label] += 1
        self._changed_s, label, presence.label = time_s, presence.label, ""
        dwell_s = round(time_s - presence.entered_s, 3)
        told = {"entered_s": round(presence.entered_s, 3), "dwell_s": dwell_s, "reason": reason}
        return {**event("exit", "zone", self.zone.name, track, time_s, **told), "label": label}

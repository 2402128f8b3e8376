"""The rules of one source, applied to its frames."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from elements.analytics.directions import DirectionWatch
from elements.analytics.lines import LineWatch
from elements.analytics.rules import Rules, Settings
from elements.analytics.tracks import Event, Sighting, Track
from elements.analytics.zones import ZoneWatch


@dataclass(frozen=True, slots=True)
class Findings:
    """What one frame brought, as plain data.

    Attributes:
        events: what happened, in order; with the time at which it happened, which may be some frames ago.
        frame: counts of zones, lines and directions, by rule name.
        objects: one entry per sighting; empty where there is nothing to say.
    """

    events: list[Event]
    frame: dict[str, Any]
    objects: list[dict[str, Any]]


class SourceAnalytics:
    """Zones, lines and directions of one source.

    Tracks are forgotten `Settings.lost_after` seconds after they were last seen, and when the stream's time steps back
    (it began anew); the counts go on.

    Args:
        rules: what to look for.
        settings: when it counts.
    """

    def __init__(self, rules: Rules, settings: Settings) -> None:
        self._settings = settings
        self._zones = [ZoneWatch(zone) for zone in rules.zones]
        self._lines = [LineWatch(line) for line in rules.lines]
        self._directions = [DirectionWatch(direction) for direction in rules.directions]
        self._watches: list[ZoneWatch | LineWatch | DirectionWatch] = [*self._zones, *self._lines, *self._directions]
        self._tracks: dict[int, Track] = {}
        self._time_s = -math.inf
        self._counts = self._count()

    def update(self, time_s: float, sightings: Sequence[Sighting], aspect: float = 16 / 9) -> Findings:
        """Take one frame.

        Args:
            time_s: of the frame, seconds of stream time.
            sightings: its tracked objects.
            aspect: width / height of the picture.
        """
        events = list(self._forget(time_s, {sighting.track_id for sighting in sightings}))
        tracks = [self._seen(sighting, time_s) for sighting in sightings]
        crossed: list[list[Event]] = []
        for track in tracks:
            crossings = [event for line in self._lines for event in line.see(track)]
            crossed.append(crossings)
            events += crossings
            events += [event for zone in self._zones for event in zone.see(track)]
            events += [event for direction in self._directions for event in direction.see(track, aspect)]
            track.before = track.seen.point
        events += [event for zone in self._zones for event in zone.judge()]
        objects = [self._of_object(track, lines) for track, lines in zip(tracks, crossed, strict=True)]
        if events:
            self._counts = self._count()  # no count changes without an event
        return Findings(events, self._counts, objects)

    @property
    def counts(self) -> dict[str, Any]:
        """Counts of zones, lines and directions so far, by rule name. Not to be written to."""
        return self._counts

    def _count(self) -> dict[str, Any]:
        found = {
            "zones": {watch.zone.name: watch.result() for watch in self._zones},
            "lines": {watch.line.name: watch.result() for watch in self._lines},
            "directions": {watch.direction.name: watch.result() for watch in self._directions},
        }
        return {kind: results for kind, results in found.items() if results}

    def _seen(self, sighting: Sighting, time_s: float) -> Track:
        track = self._tracks.get(sighting.track_id)
        if track is None:
            track = self._tracks[sighting.track_id] = Track(sighting, time_s, sighting.point)
        track.seen, track.time_s = sighting, time_s
        track.frames += 1
        track.hold = self._settings.hold_frames if track.frames >= self._settings.confirm_frames else math.inf
        return track

    def _forget(self, time_s: float, seen: Collection[int]) -> Iterator[Event]:
        """Let go of tracks that are lost, or of all if the stream began anew.

        A track that is back is kept, however long the source gave no frames.
        """
        restarted = time_s < self._time_s
        self._time_s = time_s
        oldest = time_s - self._settings.lost_after
        for track in list(self._tracks.values()):
            if not restarted and (track.id in seen or track.time_s >= oldest):
                continue
            del self._tracks[track.id]
            for watch in self._watches:
                yield from watch.lose(track, "restart" if restarted else "lost")

    def _of_object(self, track: Track, crossings: Sequence[Event]) -> dict[str, Any]:
        dwell_s = {watch.zone.name: dwell for watch in self._zones if (dwell := watch.dwell_s(track)) is not None}
        found = {
            "zones": list(dwell_s),
            "dwell_s": dwell_s,
            "crossed": [{"line": event["line"], "direction": event["direction"]} for event in crossings],
            "directions": [watch.direction.name for watch in self._directions if watch.holds(track)],
        }
        return {kind: values for kind, values in found.items() if values}

"""Who crosses a line, and which way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from elements.analytics.geometry import passes, turn
from elements.analytics.held import Held
from elements.analytics.rules import Line
from elements.analytics.tracks import Event, Track, event

IN, OUT = "in", "out"


@dataclass(slots=True)
class _Side:
    """On which side a track is (``True``: that of ``towards``), and whether it came there between the line's ends."""

    side: Held[bool] = field(default_factory=Held)
    passed: bool = False


class LineWatch:
    """Watches one line of one source.

    The side on which a track is first held is where it starts, without a crossing; exactly on the line is the side of
    ``towards``. Each time that it holds the other side, and came there between the line's ends, it crosses: in towards
    ``towards``, else out. Who walks around an end changes sides without crossing.

    Attributes:
        counts: crossings by way, ``in`` and ``out``, and class name.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.counts: dict[str, Counter[str]] = {IN: Counter(), OUT: Counter()}
        self._tracks: dict[int, _Side] = {}
        self._sign = 1 if turn(line.start, line.end, line.towards) > 0 else -1

    def see(self, track: Track) -> Iterator[Event]:
        """A track was seen; yields its crossing."""
        if not track.is_one_of(self.line.classes):
            return
        state = self._tracks.setdefault(track.id, _Side())
        side = turn(self.line.start, self.line.end, track.seen.point) * self._sign >= 0
        if state.side.newest is not None and side != state.side.newest:
            state.passed = passes((track.before, track.seen.point), (self.line.start, self.line.end))
        before = state.side.value
        if state.side.see(side, track.time_s, track.hold) and before is not None and state.passed:
            way = IN if side else OUT
            self.counts[way][track.seen.label or str(track.seen.class_id)] += 1
            yield event("crossing", "line", self.line.name, track, state.side.since, direction=way)

    def lose(self, track: Track, reason: str) -> Iterator[Event]:
        """A track is gone; that is no crossing."""
        self._tracks.pop(track.id, None)
        return iter(())

    def result(self) -> dict[str, Any]:
        """The counts so far, as plain data."""
        classes = sorted({*self.counts[IN], *self.counts[OUT]})
        return {
            IN: self.counts[IN].total(),
            OUT: self.counts[OUT].total(),
            "classes": {name: {IN: self.counts[IN][name], OUT: self.counts[OUT][name]} for name in classes},
        }

"""Who is asked about, when, and with which pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elements.analytics.geometry import Point, anchors, inside
from elements.prompting.options import PromptOptions
from elements.prompting.pictures import Album, Picture

GONE_AFTER_S = 30.0  # stream time without sight after which a track does not come back
AGAIN_AFTER_S = 60.0  # stream time after which a track whose request failed may be asked about again
MOST_TRACKS = 2_000  # of one source


@dataclass(frozen=True, slots=True)
class Seen:
    """An object of a frame.

    Attributes:
        track_id: ``None`` if it is not tracked.
        class_id: number of its class.
        label: name of its class.
        box: (x1, y1, x2, y2), unrotated, source pixels.
        angle: radians, clockwise on the screen, about the box's centre.
    """

    track_id: int | None
    class_id: int
    label: str
    box: tuple[float, float, float, float]
    angle: float = 0.0


@dataclass(frozen=True, slots=True)
class Due:
    """Somebody to ask about; ``track_id`` is ``None`` for a whole frame."""

    track_id: int | None
    label: str
    pictures: list[Picture]


Look = Callable[[Seen | None], Picture | None]
"""Makes a picture of an object, or of the whole frame; ``None`` if there is nothing to be seen of it."""


@dataclass(slots=True)
class _Track:
    album: Album
    first_s: float
    seen_s: float
    named: bool = False  # by an event, since it was asked about last
    again_s: float = -math.inf  # from when on it may be asked about


@dataclass(slots=True)
class _Source:
    album: Album
    time_s: float = -math.inf
    asked_s: float = -math.inf
    tracks: dict[int, _Track] = field(default_factory=dict)


class Watch:
    """Watches the objects of all sources. One thread.

    A track is asked about once, and again after ``refresh``. The pictures are those of the time before it is due, as
    far as it was one of the wanted classes then.
    """

    def __init__(self, options: PromptOptions) -> None:
        self._options, self._trigger = options, options.trigger
        self._sources: dict[int, _Source] = {}

    def update(
        self,
        source_id: int,
        time_s: float,
        size: tuple[int, int],
        seen: Sequence[Seen],
        events: Sequence[Mapping[str, Any]],
        look: Look,
    ) -> list[Due]:
        """Take one frame; who is to be asked about now.

        Args:
            source_id: of the frame.
            time_s: of the frame, seconds of stream time.
            size: (width, height) of the source's picture, pixels.
            seen: its objects.
            events: what other stages say of it; an event names tracks by ``track_id`` or ``tracks``.
            look: makes pictures; called for few.
        """
        source = self._source(source_id, time_s)
        happened = [event for event in events if event.get("event") in self._trigger.events]
        named = {track_id for event in happened for track_id in _tracks_of(event)}
        wanted = [one for one in seen if self._is_wanted(one)]
        for one in wanted:
            self._note(source, one, named, time_s)
        self._drop_gone(source, time_s)
        if self._options.per == "frame":
            return self._due_frame(source, time_s, size, wanted, bool(happened), look)
        return self._due_tracks(source, time_s, size, wanted, look)

    def failed(self, source_id: int, track_id: int | None) -> None:
        """There is no answer about a track: it may be asked about again, later."""
        source = self._sources.get(source_id)
        track = source.tracks.get(track_id) if source is not None and track_id is not None else None
        if source is not None and track is not None:
            track.again_s = min(track.again_s, source.time_s + AGAIN_AFTER_S)

    def forget(self, source_id: int) -> None:
        """Drop what is known of a source, which has ended."""
        self._sources.pop(source_id, None)

    # --- tracks -------------------------------------------------------------------------------------------------------

    def _due_tracks(
        self, source: _Source, time_s: float, size: tuple[int, int], wanted: Sequence[Seen], look: Look
    ) -> list[Due]:
        ready: list[tuple[float, _Track, Seen]] = []
        for one, point in zip(wanted, _anchors(wanted, size), strict=True):
            track = None if one.track_id is None else source.tracks[one.track_id]
            if track is None or track.again_s - self._options.within > time_s:
                continue  # a picture of it would be too old when it is needed
            if track.album.wants(time_s):
                _take(track.album, look(one))
            if self._is_ready(track, point, time_s) and (track.named or not self._trigger.events):
                ready.append((track.first_s, track, one))
        ready.sort(key=lambda item: item[0])
        return [due for _, track, one in ready if (due := self._ask_about(source, track, one, time_s, look))]

    def _ask_about(self, source: _Source, track: _Track, one: Seen, time_s: float, look: Look) -> Due | None:
        if time_s - source.asked_s < self._trigger.interval:
            return None
        if not track.album.pictures(time_s):
            _take(track.album, look(one))
        pictures = track.album.pictures(time_s)
        if not pictures:
            return None
        track.album.clear()
        track.named = False
        track.again_s = time_s + self._options.refresh if self._options.refresh else math.inf
        source.asked_s = time_s
        return Due(one.track_id, one.label, pictures)

    def _note(self, source: _Source, one: Seen, named: Collection[int], time_s: float) -> None:
        if one.track_id is None:
            return
        track = source.tracks.pop(one.track_id, None)
        if track is None:
            track = _Track(Album(self._options.frames, self._options.within), time_s, time_s)
        source.tracks[one.track_id] = track  # last seen last
        track.seen_s = time_s
        track.named = track.named or one.track_id in named

    # --- frames -------------------------------------------------------------------------------------------------------

    def _due_frame(
        self, source: _Source, time_s: float, size: tuple[int, int], wanted: Sequence[Seen], happened: bool, look: Look
    ) -> list[Due]:
        if self._options.frames > 1 and source.album.wants(time_s):
            _take(source.album, look(None))
        trigger = self._trigger
        if time_s - source.asked_s < trigger.interval or (trigger.events and not happened):
            return []
        if (trigger.classes or trigger.zones or trigger.min_age) and not any(
            self._is_ready(source.tracks.get(-1 if one.track_id is None else one.track_id), point, time_s)
            for one, point in zip(wanted, _anchors(wanted, size), strict=True)
        ):
            return []
        if self._options.frames == 1 or not source.album.pictures(time_s):
            _take(source.album, look(None))
        source.asked_s = time_s
        pictures = source.album.pictures(time_s)
        source.album.clear()
        return [Due(None, "", pictures)] if pictures else []

    # --- both ---------------------------------------------------------------------------------------------------------

    def _is_wanted(self, one: Seen) -> bool:
        classes = self._trigger.classes
        return not classes or one.label in classes or one.class_id in classes

    def _is_ready(self, track: _Track | None, point: Point, time_s: float) -> bool:
        trigger = self._trigger
        if track is None and trigger.min_age:
            return False
        if track is not None and (time_s - track.first_s < trigger.min_age - 1e-6 or time_s < track.again_s):
            return False
        return not trigger.zones or any(inside(zone, point) for zone in trigger.zones)

    def _source(self, source_id: int, time_s: float) -> _Source:
        source = self._sources.get(source_id)
        if source is None or time_s < source.time_s:  # the stream began anew
            looks = 1  # of a frame the newest is as good as any
            source = self._sources[source_id] = _Source(Album(self._options.frames, self._options.within, looks))
        source.time_s = time_s
        return source

    def _drop_gone(self, source: _Source, time_s: float) -> None:
        """Drop tracks that were out of sight for long, and old pictures. They lie in the order of their last sight."""
        for track_id in list(source.tracks):
            track = source.tracks[track_id]
            if time_s - track.seen_s > GONE_AFTER_S or len(source.tracks) > MOST_TRACKS:
                del source.tracks[track_id]
            elif track.seen_s < time_s:
                track.album.pictures(time_s)
            else:
                return


def _take(album: Album, picture: Picture | None) -> None:
    if picture is not None:
        album.add(picture)


def _anchors(seen: Sequence[Seen], size: tuple[int, int]) -> list[Point]:
    if not seen:
        return []
    boxes = np.array([one.box for one in seen], np.float32)
    return anchors(boxes, np.array([one.angle for one in seen], np.float32), size)


def _tracks_of(event: Mapping[str, Any]) -> list[int]:
    """The tracks that an event names."""
    several = event.get("tracks", ())
    named = [event.get("track_id"), *(several if isinstance(several, list | tuple) else ())]
    return [track_id for track_id in named if isinstance(track_id, int)]

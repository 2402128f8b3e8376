"""What is known about each source: before the start (facts) and while running (state)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pipelines.definition import Source
from pipelines.media import MediaError, MediaInfo, discover
from pipelines.outcome import SourceCount

DISCOVERY_TIMEOUT_S = 5.0
TRUNCATED_SLACK_S = 1.0
TRUNCATED_SLACK_SHARE = 0.05


class SourceState(StrEnum):
    """Life of a source. A file ends ``finished`` or ``truncated``, a live one is ``lost`` and may come back."""

    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    TRUNCATED = "truncated"
    LOST = "lost"
    FAILED = "failed"
    STOPPED = "stopped"


ENDED = frozenset({SourceState.FINISHED, SourceState.TRUNCATED, SourceState.FAILED, SourceState.STOPPED})


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What discovery found: ``media`` of a file, or the ``error`` that keeps it from being played. Live: neither."""

    media: MediaInfo | None = None
    error: str = ""


@dataclass(slots=True)
class SourceStatus:
    """One source's state while running; ``reason`` says why where it is not the ordinary course."""

    source: Source
    facts: SourceFacts
    state: SourceState = SourceState.STARTING
    reason: str = ""

    @property
    def live(self) -> bool:
        """Whether the source has no end of its own."""
        return self.source.kind == "rtsp" or self.source.loop

    @property
    def expected_frames(self) -> int | None:
        """About how many frames the file has."""
        return self.facts.media.frames if self.facts.media and not self.live else None

    def ended_early(self, count: SourceCount) -> bool:
        """Whether a file came to its end with a good part of it missing."""
        media = self.facts.media
        if media is None or media.duration_s is None or not media.frames:
            return False
        slack = max(TRUNCATED_SLACK_S, TRUNCATED_SLACK_SHARE * media.duration_s)
        return count.frames == 0 or (media.duration_s - count.position > slack and count.frames < media.frames * 0.98)

    def gave_up(self, reason: str | None) -> str:
        """Why a camera is not connected to any more, after the last attempt failed for ``reason``."""
        attempts = self.source.reconnect.attempts
        return f"gave up after {attempts} attempt{'s' if attempts != 1 else ''} to reconnect: {reason or self.reason}"


def survey(sources: Sequence[Source]) -> list[SourceFacts]:
    """Look into every file before anything starts, all at once. Live sources are not contacted."""
    with ThreadPoolExecutor(max_workers=min(8, len(sources))) as pool:
        return list(pool.map(_look, sources))


def _look(source: Source) -> SourceFacts:
    if source.kind == "rtsp":
        return SourceFacts()
    try:
        return SourceFacts(media=discover(gst_uri(source), DISCOVERY_TIMEOUT_S))
    except MediaError as error:
        return SourceFacts(error=str(error))


def gst_uri(source: Source) -> str:
    """The URI that GStreamer is given; may hold credentials."""
    uri: Any = source.gst_uri
    return uri.get_secret_value() if hasattr(uri, "get_secret_value") else str(uri)


def only_cameras_are_away(statuses: Iterable[SourceStatus]) -> bool:
    """Whether silence is in order: what has not ended are cameras that are being connected to."""
    open_sources = [status for status in statuses if status.state not in ENDED]
    return bool(open_sources) and all(
        status.state is SourceState.LOST or (status.state is SourceState.STARTING and status.source.kind == "rtsp")
        for status in open_sources
    )

"""What a run came to: counts per source, how it ended, exit codes."""

from __future__ import annotations

from dataclasses import dataclass, field

EXIT_COMPLETE, EXIT_FAILED, EXIT_REJECTED, EXIT_PARTIAL = 0, 1, 2, 3
REMEMBERED_TRACKS = 4096


@dataclass(slots=True)
class SourceCount:
    """Running totals of one source. ``position`` is its newest timestamp in seconds of stream time."""

    frames: int = 0
    objects: int = 0
    tracks: int = 0
    position: float = 0.0
    first_frame_at: float | None = None
    last_frame_at: float | None = None
    _recent: dict[int, None] = field(default_factory=dict)

    def see_track(self, track_id: int) -> None:
        """Count a track once. Only the newest `REMEMBERED_TRACKS` ids are kept, so a run of months stays small."""
        if track_id in self._recent:
            del self._recent[track_id]
        else:
            self.tracks += 1
        self._recent[track_id] = None
        if len(self._recent) > REMEMBERED_TRACKS:
            del self._recent[next(iter(self._recent))]

    def elapsed(self) -> float:
        """Seconds of wall time between the first and the newest frame."""
        if self.first_frame_at is None or self.last_frame_at is None:
            return 0.0
        return self.last_frame_at - self.first_frame_at

    def rate(self) -> float:
        """Frames per second since the first frame."""
        elapsed = self.elapsed()
        return (self.frames - 1) / elapsed if elapsed > 0 else 0.0


@dataclass(slots=True)
class Outcome:
    """How a run ended. ``error`` and ``trace`` tell why it failed as a whole.

    ``stuck``: the pipeline would not stop; leave the process with ``os._exit``.
    """

    error: str = ""
    trace: str = ""
    interrupted: bool = False
    stuck: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    first_result_s: float | None = None

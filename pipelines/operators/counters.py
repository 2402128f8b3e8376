"""Frames, objects and tracks per source, counted where the metadata is final."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report


@dataclass(slots=True)
class SourceCount:
    """Running totals of one source. ``position`` is its newest timestamp in seconds of stream time."""

    frames: int = 0
    objects: int = 0
    tracks: set[int] = field(default_factory=set)
    position: float = 0.0
    first_frame_at: float | None = None
    last_frame_at: float | None = None

    def elapsed(self) -> float:
        """Seconds of wall time between the first and the newest frame."""
        if self.first_frame_at is None or self.last_frame_at is None:
            return 0.0
        return self.last_frame_at - self.first_frame_at

    def rate(self) -> float:
        """Frames per second since the first frame."""
        elapsed = self.elapsed()
        return (self.frames - 1) / elapsed if elapsed > 0 else 0.0


class Counter(Operator):
    """Adds up what passes. ``counts`` is indexed by source id and shared with the runner, which only reads."""

    def __init__(self, counts: list[SourceCount], report: Report) -> None:
        super().__init__(report)
        self._counts = counts

    def process(self, batch_meta: Any) -> None:
        """Count the frames of one batch."""
        now = time.monotonic()
        for frame in batch_meta.frame_items:
            count = self._counts[frame.source_id]
            count.frames += 1
            count.position = frame.buffer_pts / 1e9
            count.last_frame_at = now
            if count.first_frame_at is None:
                count.first_frame_at = now
            for item in frame.object_items:
                count.objects += 1
                if item.object_id != UNTRACKED_OBJECT_ID:
                    count.tracks.add(item.object_id)

"""Frames, objects and tracks per source, counted where the metadata is final."""

from __future__ import annotations

import time
from typing import Any

from elements.metadata.edit import object_ids
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report
from pipelines.outcome import SourceCount


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
            ids = object_ids(frame)
            count.objects += len(ids)
            for track_id in ids:
                if track_id != UNTRACKED_OBJECT_ID:
                    count.see_track(track_id)

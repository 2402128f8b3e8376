from __future__ import annotations

from pipelines.outcome import REMEMBERED_TRACKS, SourceCount


def test_a_track_counts_once_however_long_it_lives():
    count = SourceCount()
    for track_id in range(1, 3 * REMEMBERED_TRACKS):
        count.see_track(track_id)
        count.see_track(1)
    assert count.tracks == 3 * REMEMBERED_TRACKS - 1
    assert len(count._recent) == REMEMBERED_TRACKS

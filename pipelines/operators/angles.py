"""Angles behind NVIDIA's nvtracker, which follows upright rectangles and knows of none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.metadata.edit import find_editor
from elements.metadata.rotated import degrees, same_outline
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report

_REMEMBERED_S = 10.0  # longer than trackers keep a target without detections
_RATE_WEIGHT = 0.3  # of the newest frame in the smoothed rate of turning
_COAST_S = 1.0  # how long an object without a detection goes on turning


@dataclass(slots=True)
class _Turning:
    """A track that has an angle: its last detection as x1, y1, x2, y2, angle (mux pixels, radians), and its rate."""

    box: NDArray[np.float64]
    seen_s: float
    rate: float = 0.0  # radians per second

    def angle_at(self, time_s: float) -> float:
        return float(self.box[4]) + self.rate * min(max(0.0, time_s - self.seen_s), _COAST_S)


class AngleCarrier(Operator):
    """Carries the angle of rotated objects per track id, as the portable tracker does by itself.

    The tracker moves, resizes and cuts an object's rectangle as if it were upright, and leaves its ``rotation_angle``.
    A tracked object that the detector found gets the detector's rectangle back, and its sides and angle are named so
    that they continue those of the frames before. One that the tracker continued without a detection (confidence below
    0) keeps the centre that the tracker gives it, and gets the track's last sides, and the last angle and its rate of
    turning. Objects of tracks that never had an angle are left alone.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._sources: dict[int, dict[int, _Turning]] = {}

    def process(self, batch_meta: Any) -> None:
        """Rewrite the rectangles of one batch."""
        for frame in batch_meta.frame_items:
            tracks = self._sources.setdefault(frame.source_id, {})
            time_s = frame.buffer_pts / 1e9
            for item in frame.object_items:
                if item.object_id != UNTRACKED_OBJECT_ID:
                    _carry(item, tracks, time_s)
            self._sources[frame.source_id] = _remembered(tracks, time_s)


def _carry(item: Any, tracks: dict[int, _Turning], time_s: float) -> None:
    track = tracks.get(item.object_id)
    if item.confidence < 0:
        if track is not None:
            _write(item.rect_params, _continued(item.rect_params, track, time_s))
        return
    angle = math.radians(item.rect_params.rotation_angle)
    if track is None and not angle:
        return
    detected = np.array([*_detected(item), angle])
    if track is None:
        tracks[item.object_id] = _Turning(detected, time_s)
    else:
        detected = same_outline(detected, np.array([*track.box[:4], track.angle_at(time_s)]))
        _follow(track, detected, time_s)
    _write(item.rect_params, detected)


def _follow(track: _Turning, detected: NDArray[np.float64], time_s: float) -> None:
    elapsed = time_s - track.seen_s
    if elapsed > 0:
        rate = float(detected[4] - track.box[4]) / elapsed
        track.rate += _RATE_WEIGHT * (rate - track.rate)
    track.box, track.seen_s = detected, time_s


def _continued(rect: Any, track: _Turning, time_s: float) -> NDArray[np.float64]:
    x, y = rect.left + rect.width / 2, rect.top + rect.height / 2
    half_width, half_height = (track.box[2:4] - track.box[:2]) / 2
    angle = track.angle_at(time_s)
    return np.array([x - half_width, y - half_height, x + half_width, y + half_height, angle])


def _detected(item: Any) -> tuple[float, float, float, float]:
    """xyxy of the detector's rectangle; the tracker's where the metadata library cannot be read."""
    editor = find_editor(item)
    box = editor.detector_box(item) if editor is not None else None
    rect = item.rect_params
    left, top, width, height = box or (rect.left, rect.top, rect.width, rect.height)
    return left, top, left + width, top + height


def _write(rect: Any, box: NDArray[np.float64]) -> None:
    x1, y1, x2, y2, angle = box.tolist()
    rect.left, rect.top, rect.width, rect.height = x1, y1, x2 - x1, y2 - y1
    rect.rotation_angle = degrees(angle)


def _remembered(tracks: Mapping[int, _Turning], time_s: float) -> dict[int, _Turning]:
    """The tracks without those of long ago, and without those of a time to come (the stream began anew)."""
    return {i: track for i, track in tracks.items() if 0 <= time_s - track.seen_s <= _REMEMBERED_S}

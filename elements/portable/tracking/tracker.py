"""Tracks of one source: ByteTrack of the ``trackers`` library, driven by stream time.

The library associates and filters. What is added here is DeepStream's life cycle: ids from 1 per source, targets that
keep their class, ages in stream time, and boxes for frames that were not inferred.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trackers import ByteTrackTracker

from elements.metadata.detections import FloatArray
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.rotation import TurnedBoxFilter, TurnedIoU

UNCONFIRMED = 0

# The rate for which the library's Kalman noise is read. At 10/s the speed estimate is smooth enough to carry an
# occluded person; at 30/s the noise of the detector's boxes dominates it, most of all at low frame rates.
_MOTION_RATE = 10.0
_LONGEST_GAP_S = 10.0  # after a longer silence nothing can be told about where a target went
_SAME_TIME_S = 1e-6  # between frames of one timestamp: the library wants time to advance
_STEP_BACK_S = 1e-3  # more than that is another recording
_OVERLAP = TurnedIoU()


@dataclass(slots=True)
class Predicted:
    """Active targets on a frame without detections: ``ids`` (N,) int64 and ``boxes`` (N, 5) float32, turned boxes (xyxy
    and radians), unclipped."""

    ids: NDArray[np.int64]
    boxes: FloatArray


@dataclass(slots=True)
class Tracked:
    """What became of N detections. Boxes are turned boxes: xyxy and radians.

    Attributes:
        ids: (N,) int64, `UNCONFIRMED` for those without an active target.
        boxes: (N, 5) float32, filtered boxes of their targets (the detection's own where there is none).
        measured: (N, 5) float32, the detections. For targets that turn, sides and angle are named so that they continue
            the target's: the angle is continuous, over any number of turns.
        turns: (N,) bool, targets that ever had an angle.
    """

    ids: NDArray[np.int64]
    boxes: FloatArray
    measured: FloatArray
    turns: NDArray[np.bool_]


class _Boxes:
    """The part of ``supervision.Detections`` that ByteTrack uses, and which input each output row came from.

    Building the real one costs as much as the association of a few objects.
    """

    __slots__ = ("confidence", "index", "tracker_id", "xyxy")

    def __init__(self, xyxy: FloatArray, confidence: FloatArray, index: NDArray[np.int64]) -> None:
        self.xyxy, self.confidence, self.index = xyxy, confidence, index
        self.tracker_id: NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.xyxy)

    def __getitem__(self, rows: NDArray[np.int64]) -> _Boxes:
        return _Boxes(self.xyxy[rows], self.confidence[rows], self.index[rows])


class SourceTracker:
    """Targets of one source.

    Ids count from ``first_id``; with ``useUniqueID`` the upper 32 bits are random. With ``checkClassMatch`` each class
    is associated by itself, so that a target never changes its class.
    """

    def __init__(self, config: TrackerConfig, first_id: int = 1) -> None:
        self.config = config
        self.next_id = first_id
        self._high_bits = secrets.randbits(31) << 32 if config.use_unique_id else 0
        self._time: float | None = None
        self._groups: dict[int, _Group] = {}

    def update(self, boxes: FloatArray, scores: FloatArray, class_ids: NDArray[Any], time_s: float) -> Tracked:
        """Associate the detections of an inferred frame.

        Args:
            boxes: (N, 5) turned boxes (xyxy, radians), finite, in pixels of one frame of reference for all calls.
            scores: (N,) 0 to 1.
            class_ids: (N,) integers.
            time_s: stream time in seconds. If it steps back or jumps far ahead, all targets end and new ids follow.
        """
        now, elapsed = self._advance(time_s)
        boxes = boxes.astype(np.float32)
        ids, turns = np.full(len(boxes), UNCONFIRMED, np.int64), np.zeros(len(boxes), bool)
        tracked = Tracked(ids, boxes.copy(), boxes.copy(), turns)
        groups = class_ids if self.config.check_class_match else np.zeros(len(boxes), np.int64)
        rows = np.flatnonzero(scores >= self.config.min_detector_confidence)
        for key in {*self._groups, *groups[rows].tolist()}:
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(self.config)
            mine = rows[groups[rows] == key]
            group.associate(_Boxes(boxes[mine], scores[mine], mine), now, elapsed)
            others = sum(len(g.targets) for g in self._groups.values() if g is not group)
            group.limit(max(0, self.config.max_targets_per_stream - others))
            group.report(tracked, self._new_id)
            if not group.targets:
                del self._groups[key]
        return tracked

    def predict(self, time_s: float) -> Predicted:
        """Where the targets seen on the last inferred frame are at ``time_s``. Changes nothing."""
        ahead = 0.0 if self._time is None else time_s - self._time
        if not 0 <= ahead <= self.config.shadow_seconds:
            return Predicted(np.empty(0, np.int64), np.empty((0, 5), np.float32))
        found = [entry for group in self._groups.values() for entry in group.predict(ahead)]
        ids = np.array([i for i, _ in found], np.int64)
        return Predicted(ids, np.array([box for _, box in found], np.float32).reshape(-1, 5))

    def clear(self) -> None:
        """End all targets; ids go on counting."""
        self._groups.clear()
        self._time = None

    def alive(self) -> set[int]:
        """Ids that can still be given to a detection or a prediction."""
        return {i for group in self._groups.values() for i in group.ids.values()}

    def _advance(self, time_s: float) -> tuple[float, float]:
        """Move the clock; return it and the seconds since the last inferred frame."""
        if self._time is not None and not -_STEP_BACK_S <= time_s - self._time <= _LONGEST_GAP_S:
            self.clear()
        if self._time is None:
            self._time = time_s
            return time_s, 0.0
        now = max(time_s, self._time + _SAME_TIME_S)
        elapsed, self._time = now - self._time, now
        return now, elapsed

    def _new_id(self) -> int:
        new = self.next_id
        self.next_id += 1
        return self._high_bits | new


class _Group:
    """One association: the targets of one class (or of all, without ``checkClassMatch``)."""

    def __init__(self, config: TrackerConfig) -> None:
        self.config = config
        self.ids: dict[int, int] = {}  # the library's id -> ours
        self._result: Any = ()
        self._tracker = ByteTrackTracker(
            lost_track_buffer=config.max_shadow_tracking_age,
            frame_rate=_MOTION_RATE,
            track_activation_threshold=config.tentative_detector_confidence,
            high_conf_det_threshold=config.tentative_detector_confidence,
            minimum_iou_threshold=config.min_matching_score_4_iou,
            state_estimator_class=TurnedBoxFilter,
            iou=_OVERLAP,
        )

    @property
    def targets(self) -> list[Any]:
        """The library's tracks, tentative ones included."""
        tracks: list[Any] = self._tracker.tracks
        return tracks

    def associate(self, detections: _Boxes, time_s: float, elapsed: float) -> None:
        """Continue, start and end targets; ``elapsed`` seconds after the last inferred frame."""
        before = self._tracker.tracks
        # The library ends overdue targets before it associates. One gap between frames, however long, is no miss: an
        # inferred frame must have passed without the target.
        self._tracker.maximum_time_without_update = max(self.config.shadow_seconds, elapsed)
        hits = self.config.hits_to_confirm(elapsed)
        self._tracker.minimum_consecutive_frames = hits
        self._result = self._tracker.update(detections, timestamp=time_s)
        self._keep_tentative(before)
        self._refuse_duplicates()
        if hits == 1:
            self._confirm_new(detections)

    def limit(self, room: int) -> None:
        """Refuse the newest targets beyond ``room``; an active target is never ended for a new one."""
        if len(self.targets) > room:
            self._tracker.tracks = sorted(self.targets, key=lambda t: (t.tracker_id < 0, -t.age))[:room]

    def report(self, tracked: Tracked, new_id: Callable[[], int]) -> None:
        """Write ids and boxes of the detections that active targets took."""
        active = {target.tracker_id: target for target in self.targets if target.tracker_id >= 0}
        self.ids = {theirs: ours for theirs, ours in self.ids.items() if theirs in active}
        if not len(self._result):  # an empty result of the library has no rows to go through
            return
        for row, theirs in zip(self._result.index.tolist(), self._result.tracker_id.tolist(), strict=True):
            if theirs in active:
                if theirs not in self.ids:
                    self.ids[theirs] = new_id()
                tracked.ids[row] = self.ids[theirs]
                state = active[theirs].state_estimator
                tracked.boxes[row], tracked.measured[row] = state.state_to_bbox(), state.measured
                tracked.turns[row] = state.turns

    def predict(self, ahead_s: float) -> list[tuple[int, NDArray[np.float64]]]:
        """(id, box) of the targets that the last inferred frame confirmed, ``ahead_s`` seconds later."""
        found = []
        for target in self.targets:
            if target.time_since_update == 0 and target.tracker_id in self.ids:
                state = target.state_estimator.kf.state[:, 0]  # x1, y1, x2, y2, angle and their speeds per motion step
                found.append((self.ids[target.tracker_id], state[:5] + state[5:] * (ahead_s * _MOTION_RATE)))
        return found

    def _confirm_new(self, detections: _Boxes) -> None:
        """The library confirms at the second detection at the earliest; where one is enough, it is done here."""
        for target in self.targets:
            if target.tracker_id < 0 and target.time_since_update == 0:
                target.tracker_id = self._tracker._allocate_tracker_id()
                start = detections.index[(detections.xyxy == target.get_state_bbox()).all(axis=1)]
                self._result.tracker_id[np.isin(self._result.index, start[:1])] = target.tracker_id

    def _keep_tentative(self, before: list[Any]) -> None:
        """The library ends tentative targets at their first miss; ``earlyTerminationAge`` may be longer."""
        age = self.config.early_termination_age
        if age > 1:
            kept = {id(target) for target in self.targets}
            self._tracker.tracks += [
                target
                for target in before
                if id(target) not in kept and target.tracker_id < 0 and target.time_since_update < age
            ]

    def _refuse_duplicates(self) -> None:
        """Drop targets started on this frame that overlap an older one by more than ``minIouDiff4NewTarget``."""
        new = [target for target in self.targets if target.age == 0]
        old = [target for target in self.targets if target.age > 0]
        if new and old:
            overlaps = _OVERLAP.compute(_state_boxes(new), _state_boxes(old)).max(axis=1)
            self._tracker.tracks = old + [
                target
                for target, overlap in zip(new, overlaps, strict=True)
                if overlap <= self.config.min_iou_diff_4_new_target
            ]


def _state_boxes(targets: list[Any]) -> NDArray[np.float64]:
    return np.array([target.get_state_bbox() for target in targets])

"""Tracks of one source: ByteTrack (Zhang et al., 2021, arXiv 2110.06864), driven by stream time.

Detections that are sure go first, then the others continue targets that are left. Around that is DeepStream's life
cycle: ids from 1 per source, targets that keep their class, ages in stream time, and boxes for frames that were not
inferred. All targets are rows of one array, so that thousands cost little more than a few.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import FloatArray
from elements.portable.tracking.association import Boxes, Indices, assign, overlapping
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.motion import RATE, ahead, correct, move, new_targets, no_targets

UNCONFIRMED = 0

_LONGEST_GAP_S = 10.0  # after a longer silence nothing can be told about where a target went
_SAME_TIME_S = 1e-6  # between frames of one timestamp
_STEP_BACK_S = 1e-3  # more than that is another recording


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


class SourceTracker:
    """Targets of one source.

    Ids count from ``first_id``; with ``useUniqueID`` the upper 32 bits are random. With ``checkClassMatch`` only
    detections of its class continue a target, so that it never changes its class.
    """

    def __init__(self, config: TrackerConfig, first_id: int = 1) -> None:
        self.config = config
        self.next_id = first_id
        self._high_bits = secrets.randbits(31) << 32 if config.use_unique_id else 0
        self._time: float | None = None
        self._targets = no_targets()

    def update(self, boxes: FloatArray, scores: FloatArray, class_ids: NDArray[Any], time_s: float) -> Tracked:
        """Associate the detections of an inferred frame.

        Args:
            boxes: (N, 5) turned boxes (xyxy, radians), finite, in pixels of one frame of reference for all calls.
            scores: (N,) 0 to 1.
            class_ids: (N,) integers.
            time_s: stream time in seconds. If it steps back or jumps far ahead, all targets end and new ids follow.
        """
        elapsed = self._advance(time_s)
        groups = class_ids if self.config.check_class_match else np.zeros(len(boxes), np.int64)
        detections = Boxes(boxes.astype(np.float64), groups)
        sure = scores >= self.config.tentative_detector_confidence
        usable = scores >= self.config.min_detector_confidence
        self._move(elapsed)
        unmatched = self._associate(detections, np.flatnonzero(usable & sure))
        self._associate(detections, np.flatnonzero(usable & ~sure))
        self._end()
        self._start(detections, unmatched)
        self._confirm(elapsed)
        self._limit()
        return self._report(boxes)

    def predict(self, time_s: float) -> Predicted:
        """Where the targets seen on the last inferred frame are at ``time_s``. Changes nothing."""
        seconds = -1.0 if self._time is None else time_s - self._time
        if not 0 <= seconds <= self.config.shadow_seconds:
            return Predicted(np.empty(0, np.int64), np.empty((0, 5), np.float32))
        active = self._targets[self._active()]
        return Predicted(active["id"], ahead(active, seconds).astype(np.float32))

    def clear(self) -> None:
        """End all targets; ids go on counting."""
        self._targets = no_targets()
        self._time = None

    def alive(self) -> set[int]:
        """Ids that can still be given to a detection or a prediction."""
        ids = self._targets["id"]
        return set(ids[ids != UNCONFIRMED].tolist())

    def _advance(self, time_s: float) -> float:
        """Move the clock; return the seconds since the last inferred frame."""
        if self._time is not None and not -_STEP_BACK_S <= time_s - self._time <= _LONGEST_GAP_S:
            self.clear()
        last, self._time = self._time, time_s
        if last is None:
            return 0.0
        self._time = max(time_s, last + _SAME_TIME_S)
        return self._time - last

    def _move(self, elapsed: float) -> None:
        """Predict the targets, and end those overdue.

        One gap between frames, however long, is no miss: an inferred frame must have passed without the target.
        """
        targets = self._targets
        if not len(targets):
            return
        move(targets, elapsed * RATE)
        targets["hits"][targets["misses"] > 0] = 0
        targets["misses"] += 1
        targets["unseen_s"] += elapsed
        targets["age"] += 1
        targets["row"] = -1
        overdue = targets["unseen_s"] > max(self.config.shadow_seconds, elapsed)
        if overdue.any():
            self._targets = targets[~overdue]

    def _associate(self, detections: Boxes, rows: Indices) -> Indices:
        """Continue targets that have no detection yet by those of ``rows``; return the rows left."""
        targets = self._targets
        if not len(targets) or not len(rows):
            return rows
        waiting = np.flatnonzero(targets["row"] < 0)
        candidates = Boxes(targets["box"][waiting], targets["class_id"][waiting])
        offered = Boxes(detections.boxes[rows], detections.groups[rows])
        matched, taken = assign(candidates, offered, self.config.min_matching_score_4_iou)
        matched = waiting[matched]
        correct(targets, matched, offered.boxes[taken])
        targets["row"][matched] = rows[taken]
        targets["hits"][matched] += 1
        targets["misses"][matched] = 0
        targets["unseen_s"][matched] = 0
        return np.delete(rows, taken)

    def _end(self) -> None:
        """End tentative targets that have missed ``earlyTerminationAge`` frames."""
        targets = self._targets
        ended = ~targets["confirmed"] & (targets["misses"] >= max(1, self.config.early_termination_age))
        if ended.any():
            self._targets = targets[~ended]

    def _start(self, detections: Boxes, rows: Indices) -> None:
        """Start targets at ``rows``, but for those that overlap an older one by more than ``minIouDiff4NewTarget``."""
        if not len(rows):
            return
        old, new = self._targets, new_targets(detections.boxes[rows], detections.groups[rows], rows)
        found, _, overlap = overlapping(Boxes(new["box"], new["class_id"]), Boxes(old["box"], old["class_id"]))
        new = np.delete(new, found[overlap > self.config.min_iou_diff_4_new_target])
        self._targets = np.concatenate([old, new])

    def _confirm(self, elapsed: float) -> None:
        targets = self._targets
        targets["confirmed"] |= (targets["row"] >= 0) & (targets["hits"] >= self.config.hits_to_confirm(elapsed))

    def _limit(self) -> None:
        """Refuse the newest targets beyond ``maxTargetsPerStream``; an active one is never ended for a new one."""
        targets, room = self._targets, self.config.max_targets_per_stream
        if len(targets) > room:
            self._targets = targets[np.lexsort((-targets["age"], ~targets["confirmed"]))[:room]]

    def _active(self) -> NDArray[np.bool_]:
        """(N,) the confirmed targets that the last inferred frame saw."""
        active: NDArray[np.bool_] = self._targets["confirmed"] & (self._targets["row"] >= 0)
        return active

    def _report(self, boxes: FloatArray) -> Tracked:
        """Ids and boxes of the detections that active targets took."""
        targets, active = self._targets, self._active()
        nameless = np.flatnonzero(active & (targets["id"] == UNCONFIRMED))
        targets["id"][nameless] = self._high_bits | (self.next_id + np.arange(len(nameless)))
        self.next_id += len(nameless)
        ids, turns = np.full(len(boxes), UNCONFIRMED, np.int64), np.zeros(len(boxes), bool)
        tracked = Tracked(ids, boxes.astype(np.float32), boxes.astype(np.float32), turns)
        found = targets[active]
        rows = found["row"]
        tracked.ids[rows], tracked.turns[rows] = found["id"], found["turns"]
        tracked.boxes[rows], tracked.measured[rows] = found["box"], found["measured"]
        return tracked

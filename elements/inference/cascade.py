"""A stage that works on the objects of another: which of them the model must see, and what is known of the others."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from elements.inference.crops import CropFrame, crop_regions, moved
from elements.inference.errors import ModelError, unknown_key
from elements.inference.frame import Frame, Region
from elements.inference.result import Result
from elements.metadata.detections import Detections
from elements.metadata.rotated import bounds

MOST_TRACKS = 10_000  # whose answers are kept; the one that was out of sight for longest goes first
GONE_AFTER_S = 30.0  # stream time without sight after which a track does not come back
LONGEST_WAIT_S = 10.0  # stream time after which an answer that is not there will not come: its batch was flushed
SMALLEST = 2  # pixels; below, there is no picture to speak of
CACHED_TASKS = ("classify", "embed")
"""Tasks whose answer is about the object itself. What is found *in* an object moves with every frame."""


@dataclass(frozen=True, slots=True)
class OperateOn:
    """Which objects a stage works on, and how often.

    Attributes:
        id: component id of the stage whose objects they are.
        classes: names or numbers of their classes; empty: all.
        min_size: objects whose shorter side is below this many source pixels are left out.
        max_objects: most objects of one frame that the model is given; 0: all.
        refresh: seconds of stream time after which a track is looked at again; 0: never.
        rate: most objects per second of stream time and source that the model is given; 0: all.
        tracked: whether objects have track ids here, so that answers can be kept by them.

    Raises:
        ModelError: if a value is out of its range.
    """

    id: int
    classes: tuple[str | int, ...] = ()
    min_size: int = 0
    max_objects: int = 0
    refresh: float = 0.0
    rate: float = 0.0
    tracked: bool = True

    def __post_init__(self) -> None:
        for key in ("id", "min_size", "max_objects", "refresh", "rate"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ModelError(f"operate-on: {key}: {value!r} is not a number of 0 or more")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> OperateOn:
        """From plain values, as JSON and YAML give them.

        Raises:
            ModelError: for an unknown key, a missing ``id`` or a value out of range.
        """
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown_key(key, known, "operate-on: ")
        if "id" not in values:
            raise ModelError("operate-on: 'id' is missing: the unique-id of the stage whose objects it works on")
        return cls(**{**values, "classes": tuple(values.get("classes", ()))})


class Target(NamedTuple):
    """An object of a frame, as the stage finds it.

    Attributes:
        place: its place among the frame's objects.
        component_id: of the stage that found it.
        class_id: number of its class.
        label: name of its class.
        track_id: ``None`` if it has none.
        box: (x1, y1, x2, y2), unrotated, in pixels of the source picture.
        angle: radians, clockwise on the screen, about the box's centre.
    """

    place: int
    component_id: int
    class_id: int
    label: str
    track_id: int | None
    box: Region
    angle: float = 0.0


@dataclass(slots=True, eq=False)
class Answer:
    """What the model says of one object. It holds no picture, since it may be kept for as long as a track lives.

    Attributes:
        origin: top left corner of what the model saw, in pixels of the source.
        found: its answer, in pixels of what it saw; ``None`` while it is at work.
        names: the model's class names by number.
        version: of the model.
        failed: it had none.
    """

    origin: tuple[int, int]
    found: Detections | None = None
    names: Sequence[str] = ()
    version: str = ""
    failed: bool = False

    def in_source(self) -> Detections:
        """What was found, in pixels of the source."""
        assert self.found is not None
        return moved(self.found, self.origin)


@dataclass(slots=True)
class Plan:
    """What one batch needs.

    Attributes:
        crops: what the model is given, in one call.
        asked: the answers that it must give to them, in order.
        known: for each frame, the place of each object among the frame's objects and the answer that it gets, which
            another object of the same track may have asked for.
    """

    crops: list[CropFrame] = field(default_factory=list)
    asked: list[Answer] = field(default_factory=list)
    known: list[list[tuple[int, Answer]]] = field(default_factory=list)

    def fill(self, found: Iterable[Result]) -> None:
        """Take the model's answers. A crop that is missing among them has failed."""
        by_crop = {id(result.frame): result for result in found}
        for crop, answer in zip(self.crops, self.asked, strict=True):
            result = by_crop.get(id(crop))
            answer.failed = result is None
            if result is not None:
                answer.names, answer.version = result.names, result.version
                answer.found = result.detections


@dataclass(slots=True)
class _Entry:
    """The answer that is kept of a track; times are seconds of its source's stream time."""

    answer: Answer
    asked_at: float
    seen_at: float


class Cascade:
    """Decides which objects of a batch the model is given.

    Objects that have a track id are asked about once, and again after ``refresh``; meanwhile their answer is repeated.
    When another model takes over, tracks are looked at again from its first answer on.
    An answer without a row (below the confidence) is no answer: the track is asked about again on its next frame. Where
    ``max_objects`` or ``rate`` leave no room for all, tracks without an answer come first, then the largest objects.

    Args:
        options: which objects, and how often.
        task: what the model does; only the answers of `CACHED_TASKS` are kept.
    """

    def __init__(self, options: OperateOn, task: str) -> None:
        self.options = options
        self._keeps = options.tracked and task in CACHED_TASKS
        self._versions: dict[int, str] = {}  # of the model that answered last, by source id
        self._entries: OrderedDict[tuple[int, int], _Entry] = OrderedDict()  # (source id, track id), last seen last
        self._allowance: dict[
            int, tuple[float, float]
        ] = {}  # by source id: objects that may be asked about, since when
        self._times: dict[int, float] = {}

    def __len__(self) -> int:
        """Tracks whose answers are kept."""
        return len(self._entries)

    def plan(self, frames: Sequence[tuple[Frame, Sequence[Target]]], resting: Collection[int] = ()) -> Plan:
        """What the model must look at in these frames. Batches are planned in order; answers may come later.

        In the frames at the places ``resting`` nothing is looked at; tracks get the answers that they have.
        """
        plan = Plan()
        for place, (frame, targets) in enumerate(frames):
            plan.known.append(self._plan_frame(plan, frame, targets, place not in resting))
        return plan

    def fill(self, plan: Plan, found: Sequence[Result]) -> None:
        """Take the model's answers for a plan; plans are filled in order."""
        plan.fill(found)
        for result in found:
            self._versions[result.frame.source_id] = result.version

    def forget(self, source_id: int) -> None:
        """Drop what is kept of a source, which has ended or starts anew."""
        for key in [key for key in self._entries if key[0] == source_id]:
            del self._entries[key]
        self._allowance.pop(source_id, None)
        self._versions.pop(source_id, None)
        self._times.pop(source_id, None)

    def _plan_frame(self, plan: Plan, frame: Frame, targets: Sequence[Target], looks: bool) -> list[tuple[int, Answer]]:
        source, now = frame.source_id, frame.pts / 1e9
        if now < self._times.get(source, now):
            self.forget(source)
        self._times[source] = now
        known: list[tuple[int, Answer]] = []
        due: list[tuple[bool, float, Target, tuple[int, int, int, int]]] = []
        for target, region in self._ours(frame, targets):
            entry = self._entry(source, target, now)
            if entry is not None:
                known.append((target.place, entry.answer))
            if looks and (entry is None or self._is_stale(entry, source, now)):
                area = (region[2] - region[0]) * (region[3] - region[1])
                due.append((entry is not None, -area, target, region))
        due.sort(key=lambda item: item[:2])
        answers = dict(known)
        for _has_answer, _area, target, region in due[: self._room(source, now, len(due))]:
            answer = Answer(region[:2])
            plan.crops.append(CropFrame(frame, region))
            plan.asked.append(answer)
            answers[target.place] = answer
            self._keep(source, target, answer, now)
        self._drop_gone(source, now)
        return list(answers.items())

    def _ours(self, frame: Frame, targets: Sequence[Target]) -> list[tuple[Target, tuple[int, int, int, int]]]:
        """The objects that count, and what the model is shown of each: the upright rectangle around it."""
        options, wanted = self.options, self.options.classes
        ours = [
            t
            for t in targets
            if t.component_id == options.id and (not wanted or t.label in wanted or t.class_id in wanted)
        ]
        boxes = np.array([target.box for target in ours], np.float64).reshape(-1, 4)
        angles = np.array([target.angle for target in ours], np.float64)
        finite = np.isfinite(boxes).all(axis=1) & np.isfinite(angles)
        boxes = np.where(finite[:, None], boxes, 0)
        large = finite & ((boxes[:, 2:] - boxes[:, :2]).min(axis=1) >= options.min_size)
        if angles.any():
            turned = finite & (angles != 0)
            boxes[turned] = bounds(boxes[turned].astype(np.float32), angles[turned].astype(np.float32))
        regions = crop_regions(boxes, frame.width, frame.height)
        large &= (regions[:, 2:] - regions[:, :2]).min(axis=1) >= SMALLEST
        return [
            (target, tuple(region))
            for target, region, counts in zip(ours, regions.tolist(), large.tolist(), strict=True)
            if counts
        ]

    def _entry(self, source: int, target: Target, now: float) -> _Entry | None:
        """What is kept of the object's track, if it is worth repeating."""
        if not self._keeps or target.track_id is None:
            return None
        key = (source, target.track_id)
        entry = self._entries.get(key)
        if entry is None:
            return None
        found = entry.answer.found
        lost = found is None and not 0 <= now - entry.asked_at <= LONGEST_WAIT_S
        if lost or entry.answer.failed or (found is not None and not len(found)):
            del self._entries[key]
            return None
        entry.seen_at = now
        self._entries.move_to_end(key)
        return entry

    def _is_stale(self, entry: _Entry, source: int, now: float) -> bool:
        answer = entry.answer
        if answer.found is not None and answer.version != self._versions.get(source, answer.version):
            return True
        return bool(self.options.refresh) and now - entry.asked_at >= self.options.refresh

    def _room(self, source: int, now: float, wanted: int) -> int:
        """How many of ``wanted`` objects may be asked about now. Unused allowance adds up for one second at most."""
        most, rate = self.options.max_objects or wanted, self.options.rate
        if not rate:
            return min(wanted, most)
        left, since = self._allowance.get(source, (max(rate, 1.0), now))
        left = min(max(rate, 1.0), left + (now - since) * rate)
        granted = min(wanted, most, int(left + 1e-9))
        self._allowance[source] = (left - granted, now)
        return granted

    def _keep(self, source: int, target: Target, answer: Answer, now: float) -> None:
        if self._keeps and target.track_id is not None:
            key = (source, target.track_id)
            self._entries[key] = _Entry(answer, now, now)
            self._entries.move_to_end(key)

    def _drop_gone(self, source: int, now: float) -> None:
        """Drop the tracks that were out of sight for long. They lie at the front, in the order of their last sight."""
        while self._entries:
            (owner, _track), entry = next(iter(self._entries.items()))
            gone = now - entry.seen_at if owner == source else self._times.get(owner, math.inf) - entry.seen_at
            if gone <= GONE_AFTER_S and len(self._entries) <= MOST_TRACKS:
                return
            self._entries.popitem(last=False)

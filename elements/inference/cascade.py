"""A stage that works on the objects of another: which of them the model must see, and what is known of the others."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.inference.crops import CropBatch, crop_regions, moved, sizes_of, source_ids_of
from elements.inference.errors import ModelError, unknown_key
from elements.inference.frame import Frame
from elements.inference.result import GroupResult
from elements.metadata.batch_detections import best_of
from elements.metadata.detections import BoolArray, Detections, FloatArray, IntArray
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
            if key not in ("refresh", "rate") and value != int(value):
                raise ModelError(f"operate-on: {key}: {value!r} is not a whole number")
        if not isinstance(self.classes, tuple) or not all(isinstance(item, str | int) for item in self.classes):
            raise ModelError(f"operate-on: classes: {self.classes!r} is no list of names and numbers")

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
        classes = values.get("classes", ())
        return cls(**{**values, "classes": tuple(classes) if isinstance(classes, list | tuple) else classes})


@dataclass(frozen=True, slots=True)
class Targets:
    """The objects of a batch that the stage may work on, one row each.

    Attributes:
        frame_of: (N,) int64, place of each one's frame in the batch.
        places: their places among their frame's objects.
        class_ids: numbers of their classes.
        labels: names of their classes.
        track_ids: ``None`` where there is none.
        boxes: (N, 4) x1, y1, x2, y2, unrotated, in pixels of the source picture.
        angles: (N,) radians, clockwise on the screen, about the box's centre.
    """

    frame_of: IntArray
    places: Sequence[int]
    class_ids: Sequence[int]
    labels: Sequence[str]
    track_ids: Sequence[int | None]
    boxes: FloatArray
    angles: FloatArray


@dataclass(eq=False)
class Call:
    """What a model said of all objects that it was asked about together. It holds no picture: answers live long.

    Attributes:
        regions: for each object what the model saw of it, (N, 4) xyxy in pixels of the source.
        found: for each object, in pixels of its region.
        names: the model's class names by number.
        version: of the model.
    """

    regions: IntArray
    found: Sequence[Detections]
    names: Sequence[str]
    version: str

    @cached_property
    def best(self) -> list[tuple[int, float] | None]:
        """Class number and score of what was found of each object; ``None`` where nothing was."""
        return best_of(self.found)

    @cached_property
    def labels(self) -> list[tuple[str, int, float] | None]:
        """`best`, with the name of the class before it."""
        return [None if best is None else (self._name(best[0]), *best) for best in self.best]

    def _name(self, class_id: int) -> str:
        return self.names[class_id] if class_id < len(self.names) else str(class_id)


@dataclass(slots=True, eq=False)
class Answer:
    """What the model says of one object, which may be kept for as long as a track lives.

    Attributes:
        asked_at: seconds of stream time.
        seen_at: when an object got it last, seconds of stream time.
        call: the call that told; ``None`` while it is at work, and if it failed.
        row: which of the call's objects it is.
        failed: there will be none.
    """

    asked_at: float
    seen_at: float
    call: Call | None = None
    row: int = 0
    failed: bool = False

    @property
    def best(self) -> tuple[int, float] | None:
        """Class number and score; ``None`` as long as the model is at work, if it failed, and if it found nothing."""
        return None if self.call is None else self.call.best[self.row]

    @property
    def label(self) -> tuple[str, int, float] | None:
        """`best`, with the name of the class before it."""
        return None if self.call is None else self.call.labels[self.row]

    @property
    def found(self) -> Detections:
        """All that was found, in pixels of what the model saw."""
        assert self.call is not None
        return self.call.found[self.row]

    def in_source(self) -> Detections:
        """All that was found, in pixels of the source."""
        assert self.call is not None
        x, y = self.call.regions[self.row, :2].tolist()
        return moved(self.found, (x, y))


Known = dict[int, Answer]
"""Of the objects of a frame, by their places, the answers that they get."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one batch needs.

    Attributes:
        crops: what the model is given, in one call.
        asked: the answers that it must give to them, in order.
        known: for each frame, what its objects get; another object of the same track may have asked for it.
    """

    crops: CropBatch
    asked: list[Answer]
    known: list[Known]

    def fill(self, found: Sequence[GroupResult]) -> None:
        """Take the model's answers. A crop that is missing among them has failed."""
        for group in found:
            call = Call(self.crops.take(group.places).regions, group.found, group.names, group.version)
            for row, place in enumerate(group.places):
                answer = self.asked[place]
                answer.row, answer.call = row, call  # in this order: another thread looks whether there is a call
        for answer in self.asked:
            answer.failed = answer.call is None


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
        self._kept: OrderedDict[tuple[int, int], Answer] = OrderedDict()  # by source and track id, last seen last
        self._allowance: dict[
            int, tuple[float, float]
        ] = {}  # by source id: objects that may be asked about, since when
        self._times: dict[int, float] = {}

    def __len__(self) -> int:
        """Tracks whose answers are kept."""
        return len(self._kept)

    def plan(self, frames: Sequence[Frame], targets: Targets, resting: Collection[int] = ()) -> Plan:
        """What the model must look at in a batch. Batches are planned in order; answers may come later.

        Args:
            frames: of the batch.
            targets: their objects.
            resting: places of frames in which nothing is looked at; tracks get the answers that they have.
        """
        regions, rows_of = self._shown(frames, targets)
        asked: dict[int, Answer] = {}
        known: list[Known] = []
        for place, (frame, rows) in enumerate(zip(frames, rows_of, strict=True)):
            known.append(self._plan_frame(asked, frame, rows, targets, regions, place not in resting))
        crops = CropBatch(frames, targets.frame_of, regions).take(list(asked))
        return Plan(crops, list(asked.values()), known)

    def fill(self, plan: Plan, found: Sequence[GroupResult]) -> None:
        """Take the model's answers for a plan; plans are filled in order."""
        plan.fill(found)
        for group in found:
            self._versions.update(dict.fromkeys(source_ids_of(group.frames), group.version))

    def forget(self, source_id: int) -> None:
        """Drop what is kept of a source, which has ended or starts anew."""
        for key in [key for key in self._kept if key[0] == source_id]:
            del self._kept[key]
        self._allowance.pop(source_id, None)
        self._versions.pop(source_id, None)
        self._times.pop(source_id, None)

    def _plan_frame(
        self,
        asked: dict[int, Answer],
        frame: Frame,
        rows: Sequence[int],
        targets: Targets,
        regions: IntArray,
        looks: bool,
    ) -> Known:
        """What the objects of a frame get; answers that the model must give also go to ``asked``, by row."""
        source, now = frame.source_id, frame.pts / 1e9
        if now < self._times.get(source, now):
            self.forget(source)
        self._times[source] = now
        places, track_ids = targets.places, targets.track_ids
        known: Known = {}
        due: list[int] = []
        for row in rows:
            kept = self._answer(source, track_ids[row], now)
            if kept is not None:
                known[places[row]] = kept
            if kept is None or self._is_stale(kept, source, now):
                due.append(row)
        room = self._room(source, now, len(due)) if looks else 0
        if 0 < room < len(due):
            sizes = _areas(regions)
            due.sort(key=lambda row: (places[row] in known, -sizes[row]))
        for row in due[:room]:
            asked[row] = known[places[row]] = answer = Answer(now, now)
            track = track_ids[row]
            if self._keeps and track is not None:
                self._kept[source, track] = answer
                self._kept.move_to_end((source, track))
        self._drop_gone(source, now)
        return known

    def _shown(self, frames: Sequence[Frame], targets: Targets) -> tuple[IntArray, list[list[int]]]:
        """The upright rectangle around each target, (N, 4), which the model is shown, and of each frame, who counts."""
        boxes, angles = targets.boxes, targets.angles
        counts = np.isfinite(boxes.sum(axis=1) + angles)
        if self.options.classes:
            counts &= self._of_wanted_class(targets)
        if not counts.all():
            boxes = np.where(counts[:, None], boxes, 0)
        if self.options.min_size:
            counts &= _shorter_sides(boxes) >= self.options.min_size
        if angles.any():
            turned = counts & (angles != 0)
            boxes = boxes.astype(np.float64)
            boxes[turned] = bounds(boxes[turned], angles[turned])
        regions = crop_regions(boxes, sizes_of(frames)[targets.frame_of])
        counts &= _shorter_sides(regions) >= SMALLEST
        rows: list[list[int]] = [[] for _ in frames]
        for row, (frame, there) in enumerate(zip(targets.frame_of.tolist(), counts.tolist(), strict=True)):
            if there:
                rows[frame].append(row)
        return regions, rows

    def _of_wanted_class(self, targets: Targets) -> BoolArray:
        wanted = self.options.classes
        pairs = zip(targets.labels, targets.class_ids, strict=True)
        return np.array([label in wanted or number in wanted for label, number in pairs], bool)

    def _answer(self, source: int, track: int | None, now: float) -> Answer | None:
        """What is kept of a track, if it is worth repeating."""
        if not self._keeps or track is None:
            return None
        answer = self._kept.get((source, track))
        if answer is None:
            return None
        lost = answer.call is None and not 0 <= now - answer.asked_at <= LONGEST_WAIT_S
        if lost or answer.failed or (answer.call is not None and answer.best is None):
            del self._kept[source, track]
            return None
        answer.seen_at = now
        self._kept.move_to_end((source, track))
        return answer

    def _is_stale(self, answer: Answer, source: int, now: float) -> bool:
        call = answer.call
        if call is not None and call.version != self._versions.get(source, call.version):
            return True
        return bool(self.options.refresh) and now - answer.asked_at >= self.options.refresh

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

    def _drop_gone(self, source: int, now: float) -> None:
        """Drop the tracks that were out of sight for long. They lie at the front, in the order of their last sight."""
        while self._kept:
            (owner, _track), answer = next(iter(self._kept.items()))
            gone = (now if owner == source else self._times.get(owner, math.inf)) - answer.seen_at
            if gone <= GONE_AFTER_S and len(self._kept) <= MOST_TRACKS:
                return
            self._kept.popitem(last=False)


def _shorter_sides(boxes: NDArray[Any]) -> NDArray[Any]:
    """(N,) of (N, 4) xyxy."""
    x1, y1, x2, y2 = boxes.T
    shorter: NDArray[Any] = np.minimum(x2 - x1, y2 - y1)
    return shorter


def _areas(regions: IntArray) -> list[int]:
    """Of (N, 4) xyxy."""
    areas: list[int] = (regions[:, 2:] - regions[:, :2]).prod(axis=1).tolist()
    return areas

"""pyinfer on the objects of another stage: finds them in the batch, and writes there what the model says of them."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from elements.base import ElementError
from elements.frames import BatchFrame
from elements.inference.cascade import CACHED_TASKS, Answer, Cascade, Known, OperateOn, Plan, Targets
from elements.inference.frame import Frame
from elements.inference.result import GroupResult
from elements.metadata.edit import classify_all, find_editor, object_columns
from elements.metadata.object_fields import ObjectColumns
from elements.metadata.placement import all_to_source
from elements.metadata.stamp import stamp_model
from elements.metadata.writer import UNTRACKED_OBJECT_ID, annotate, write_detections

log = logging.getLogger("gstorch.pyinfer")

ANNOTATIONS = ("classify", "embed", "pose")


@dataclass(frozen=True, slots=True)
class Said:
    """How answers are written.

    Attributes:
        task: what the model does. Of an object, ``classify``, ``embed`` and ``pose`` say something of itself; anything
            else finds new objects in it.
        name: of the stage, by which a classifier's labels are known.
        component_id: of the stage.
        class_offset: added to the numbers of classes.
    """

    task: str
    name: str
    component_id: int
    class_offset: int = 0


@dataclass(frozen=True, slots=True)
class Finders:
    """The stages whose objects another works on: those with one component id.

    Attributes:
        names: names of their classes, empty if they are not known.
        labelling: task by stage name, of those that have turned out to find no objects, but to label others'.
        finding: how many do find objects.
    """

    names: tuple[str, ...] = ()
    labelling: Mapping[str, str] = field(default_factory=dict)
    finding: int = 0


@dataclass(frozen=True, slots=True)
class ObjectWork:
    """What a batch needs; ``frames`` by batch id, each with what its objects get."""

    plan: Plan
    frames: dict[int, tuple[BatchFrame, Known]]

    @property
    def pictures(self) -> Sequence[Frame]:
        """What the model is given, in one call."""
        return self.plan.crops


class ObjectsAtWork:
    """The objects of a stream that a stage works on.

    Args:
        options: which objects, and how often.
        said: how answers are written.
        api: the pyservicemaker module in use.
        finders: gives what is known of the stages that find the objects.
    """

    def __init__(self, options: OperateOn, said: Said, api: Any, finders: Callable[[], Finders] = Finders) -> None:
        self._options, self._said, self._api, self._finders = options, said, api, finders
        self._cascade = Cascade(options, said.task)
        self._checked = False
        if said.task in CACHED_TASKS and not options.tracked:
            log.info("%s: no tracker comes before it, so it looks at every object of every frame", said.name)

    def plan(self, buffer: Any, frames: Sequence[BatchFrame], due: Collection[int]) -> ObjectWork:
        """Which objects of a batch the model is given, and which have an answer already.

        Args:
            buffer: the batch.
            frames: its frames.
            due: batch ids of those in which new objects are looked at.

        Raises:
            ElementError: if the stage that finds the objects has no such class, or finds none at all.
        """
        if not self._checked:  # not before the first batch, when that stage has its model
            finders = self._finders()
            check_that_objects_are_found(finders)
            check_classes(self._options.classes, finders.names)
            self._checked = True
        targets = _targets(self._api.Buffer(buffer).batch_meta, frames, self._options.id)
        resting = [place for place, frame in enumerate(frames) if frame.batch_id not in due]
        plan = self._cascade.plan(frames, targets, resting)
        known = {frame.batch_id: (frame, answers) for frame, answers in zip(frames, plan.known, strict=True)}
        return ObjectWork(plan, known)

    def write(self, buffer: Any, work: ObjectWork, found: Sequence[GroupResult]) -> None:
        """Take the model's answers and write what is known of every object into the batch."""
        self._cascade.fill(work.plan, found)
        version = found[-1].version if found else ""
        batch_meta = self._api.Buffer(buffer).batch_meta
        for frame_meta in batch_meta.frame_items:
            frame, known = work.frames.get(frame_meta.batch_id, (None, {}))
            labels = {place: label for place, answer in known.items() if (label := answer.label) is not None}
            if frame is None or not labels:
                continue
            if self._said.task == "classify":
                classify_all(frame_meta, self._said.name, labels, self._said.component_id)
            else:
                for place, item in enumerate(frame_meta.object_items):
                    if place in labels:
                        self._write_one(batch_meta, frame_meta, item, frame, known[place])
            if version and find_editor(frame_meta) is not None:
                stamp_model(frame_meta, self._said.name, version)

    def forget(self, source_id: int) -> None:
        """Drop what is known of a source, which has ended."""
        self._cascade.forget(source_id)

    def _write_one(self, batch_meta: Any, frame_meta: Any, item: Any, frame: BatchFrame, answer: Answer) -> None:
        said, call = self._said, answer.call
        assert call is not None
        if said.task in ANNOTATIONS:
            found = answer.found if said.task in CACHED_TASKS else answer.in_source()
            annotate(item, found, said.task, frame.placement, said.name)
        else:
            write_detections(
                batch_meta, frame_meta, answer.in_source(), frame.placement, call.names, said.component_id,
                self._api.osd, class_offset=said.class_offset, parent=item,
            )  # fmt: skip


def check_that_objects_are_found(finders: Finders) -> None:
    """See whether a stage that is worked on finds objects, which its model may decide (``task: auto``).

    Raises:
        ElementError: if it only labels the objects of yet another stage.
    """
    if finders.labelling and not finders.finding:
        name, task = next(iter(finders.labelling.items()))
        raise ElementError(
            f"operate-on: stage '{name}' finds no objects: its model's task is {task}, and its answers are put on the "
            f"objects that it works on itself. Name the stage that finds these (operate_on: stage)"
        )


def check_classes(wanted: Sequence[str | int], names: Sequence[str]) -> None:
    """See whether the classes that a stage works on are ones of the stage that finds them.

    Raises:
        ElementError: names those that are not, and the nearest that is.
    """
    for name in wanted:
        if isinstance(name, str) and names and name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(names[:20])}"
            raise ElementError(f"operate-on: the stage that it works on has no class '{name}': {hint}")


def _targets(batch_meta: Any, frames: Sequence[BatchFrame], component_id: int) -> Targets:
    """The objects of one stage in all frames, boxes in pixels of their sources."""
    own = {frame_meta.batch_id: object_columns(frame_meta, component_id) for frame_meta in batch_meta.frame_items}
    by_frame = [own[frame.batch_id] for frame in frames]
    counts = [len(columns.places) for columns in by_frame]
    places, class_ids, object_ids, labels, rects = ObjectColumns.joined(by_frame)
    rows = [(left, top, left + width, top + height, degrees) for left, top, width, height, degrees in rects]
    geometry = np.fromiter(chain.from_iterable(rows), np.float32).reshape(-1, 5)
    return Targets(
        np.arange(len(frames)).repeat(counts),
        places,
        class_ids,
        labels,
        [None if number == UNTRACKED_OBJECT_ID else number for number in object_ids],
        all_to_source(geometry[:, :4], [frame.placement for frame in frames], counts),
        np.radians(geometry[:, 4]),
    )

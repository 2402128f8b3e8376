"""The rules of a filter on the objects of a frame: arrays in, decisions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from elements.filtering.rules import FilterRules, Polygon
from elements.metadata.rotated import rotated_iou

T = TypeVar("T")
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

FORGET_S = 60.0
"""A track that has not been seen for so many seconds of stream time is forgotten."""


@dataclass(slots=True)
class Objects:
    """The objects of one frame, one row each.

    Attributes:
        boxes: (N, 4) xyxy in source pixels, unrotated.
        angles: (N,) radians.
        scores: (N,), below 0 or NaN where only the tracker continued the object.
        class_ids: (N,).
        labels: class names.
        track_ids: (N,), -1 where not tracked.
        components: (N,), which model found it.
    """

    boxes: Floats
    angles: Floats
    scores: Floats
    class_ids: NDArray[np.int64]
    labels: list[str]
    track_ids: list[int]
    components: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class Decision:
    """What becomes of the objects: ``keep`` (N,); new names and numbers by row, of those that change."""

    keep: Booleans
    labels: dict[int, str] = field(default_factory=dict)
    class_ids: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class TrackAges:
    """When each track of one source was first and last seen, seconds of stream time."""

    seen: dict[int, tuple[float, float]] = field(default_factory=dict)

    def ages(self, track_ids: Sequence[int], now: float) -> Floats:
        """(N,) seconds since each track's first frame; below 0 where an object is not tracked."""
        if any(last > now for _, last in self.seen.values()):  # the source has begun again
            self.seen.clear()
        ages = np.full(len(track_ids), -1.0)
        for row, track in enumerate(track_ids):
            if track >= 0:
                first = self.seen.get(track, (now, now))[0]
                self.seen[track] = (first, now)
                ages[row] = now - first
        if len(self.seen) > 4 * len(track_ids) + 64:
            self.seen = {track: times for track, times in self.seen.items() if now - times[1] <= FORGET_S}
        return ages


def decide(objects: Objects, rules: FilterRules, size: tuple[int, int], ages: TrackAges, now: float) -> Decision:
    """Apply the rules to the objects of one frame.

    Args:
        objects: of the frame.
        rules: see `FilterRules`.
        size: (width, height) of the source's picture.
        ages: of the frame's source.
        now: the frame's stream time, seconds.
    """
    decision = Decision(np.ones(len(objects), bool))
    _name(objects, rules, decision)
    labels = [decision.labels.get(row, label) for row, label in enumerate(objects.labels)]
    class_ids = [decision.class_ids.get(row, int(class_id)) for row, class_id in enumerate(objects.class_ids)]
    keep = decision.keep
    if rules.keep:
        keep &= _of_class(labels, class_ids, rules.keep)
    if rules.drop:
        keep &= ~_of_class(labels, class_ids, rules.drop)
    keep &= _sure(objects.scores, labels, class_ids, rules)
    keep &= _fitting(objects.boxes, rules)
    keep &= _placed(objects, rules, size)
    if rules.min_age > 0:
        keep &= ages.ages(objects.track_ids, now) >= rules.min_age
    scores = np.nan_to_num(objects.scores, nan=-1.0)
    if rules.merge_iou > 0:
        _merge(objects, labels, scores, rules.merge_iou, keep)
    if rules.limit and keep.sum() > rules.limit:
        best = np.flatnonzero(keep)[np.argsort(-scores[keep], kind="stable")][: rules.limit]
        keep[:] = False
        keep[best] = True
    return decision


def _value(rules: Mapping[str | int, T], label: str, class_id: int) -> T | None:
    found = rules.get(label)
    return rules.get(class_id) if found is None else found


def _name(objects: Objects, rules: FilterRules, decision: Decision) -> None:
    """Names and numbers, both by what the object was called before."""
    if not rules.rename and not rules.remap:
        return
    for row, (label, class_id) in enumerate(zip(objects.labels, objects.class_ids.tolist(), strict=True)):
        name, number = _value(rules.rename, label, class_id), _value(rules.remap, label, class_id)
        if name is not None and name != label:
            decision.labels[row] = name
        if number is not None and number != class_id:
            decision.class_ids[row] = number


def _of_class(labels: Sequence[str], class_ids: Sequence[int], classes: Sequence[str | int]) -> Booleans:
    wanted = set(classes)
    return np.array(
        [label in wanted or class_id in wanted for label, class_id in zip(labels, class_ids, strict=True)], bool
    )


def _sure(scores: Floats, labels: Sequence[str], class_ids: Sequence[int], rules: FilterRules) -> Booleans:
    least = np.full(len(scores), rules.confidence)
    if rules.class_confidence:
        for row, (label, class_id) in enumerate(zip(labels, class_ids, strict=True)):
            own = _value(rules.class_confidence, label, class_id)
            if own is not None:
                least[row] = own
    unknown = ~(scores >= 0)
    result: Booleans = unknown | (scores >= least)
    return result


def _fitting(boxes: Floats, rules: FilterRules) -> Booleans:
    sides = boxes[:, 2:] - boxes[:, :2]
    keep: Booleans = np.all(sides >= rules.min_size, axis=1)
    limits = np.where(np.array(rules.max_size) > 0, rules.max_size, np.inf)
    keep &= np.all(sides <= limits, axis=1)
    if rules.min_aspect or rules.max_aspect:
        aspect = sides[:, 0] / np.maximum(sides[:, 1], 1e-9)
        keep &= (aspect >= rules.min_aspect) & (aspect <= (rules.max_aspect or np.inf))
    return keep


def _placed(objects: Objects, rules: FilterRules, size: tuple[int, int]) -> Booleans:
    keep = np.ones(len(objects), bool)
    if not len(objects) or not (rules.regions or rules.exclude):
        return keep
    boxes = objects.boxes
    points = np.stack([(boxes[:, 0] + boxes[:, 2]) / 2, boxes[:, 3]], axis=1)
    turned = objects.angles != 0
    points[turned, 1] = (boxes[turned, 1] + boxes[turned, 3]) / 2
    points = (points / size).clip(0, 1)  # beyond an edge of the picture is just inside
    if rules.regions:
        keep &= _inside_any(points, rules.regions)
    if rules.exclude:
        keep &= ~_inside_any(points, rules.exclude)
    return keep


def _inside_any(points: Floats, polygons: Sequence[Polygon]) -> Booleans:
    """(N,) whether each point lies in one of the polygons, or on its edge."""
    outlines = [np.array(polygon, np.float32) for polygon in polygons]
    inside: Booleans = np.array(
        [any(cv2.pointPolygonTest(o, (float(x), float(y)), False) >= 0 for o in outlines) for x, y in points], bool
    )
    return inside


def _merge(objects: Objects, labels: Sequence[str], scores: Floats, iou: float, keep: Booleans) -> None:
    """Of objects that are one, keep the best; those of one model are two, however much they overlap."""
    rows = np.flatnonzero(keep)
    if len(np.unique(objects.components[rows])) < 2:
        return
    order = rows[np.argsort(-scores[rows], kind="stable")]
    overlap = rotated_iou(objects.boxes[order], objects.angles[order], objects.boxes[order], objects.angles[order])
    names = np.array([labels[row] for row in order])
    components = objects.components[order]
    same = (overlap >= iou) & (names[:, None] == names[None]) & (components[:, None] != components[None])
    for place, row in enumerate(order):
        if (same[place, :place] & keep[order[:place]]).any():
            keep[row] = False

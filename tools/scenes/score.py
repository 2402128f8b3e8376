"""Precision, recall and tracks of an event file against the truth of a generated clip."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.scenes.matching import FALSE, match
from tools.scenes.truth import Truth, load_truth

__all__ = ["ClassScore", "Score", "load_events", "load_truth", "score"]

MIN_TRACK_FRAMES = 5
"""Frames in which an object must be owed before its track is."""


@dataclass(frozen=True)
class ClassScore:
    """Counts of one class over all frames: detections that are right or false, and objects missed."""

    right: int
    false: int
    missed: int

    @property
    def precision(self) -> float:
        """Part of the detections that are right; NaN without detections."""
        return self.right / (self.right + self.false) if self.right + self.false else float("nan")

    @property
    def recall(self) -> float:
        """Part of the owed objects that were found; NaN when none was owed."""
        return self.right / (self.right + self.missed) if self.right + self.missed else float("nan")

    def __add__(self, other: "ClassScore") -> "ClassScore":
        return ClassScore(self.right + other.right, self.false + other.false, self.missed + other.missed)


@dataclass(frozen=True)
class Score:
    """How well one source was seen.

    Attributes:
        frames: lines of the event file for this source.
        objects: detections in them.
        classes: score by label; labels that the truth doesn't know count as false under their own name.
        total: sum over the classes.
        tracks: distinct track ids in the events.
        truth_tracks: objects owed in at least `MIN_TRACK_FRAMES` frames.
    """

    frames: int
    objects: int
    classes: dict[str, ClassScore]
    total: ClassScore
    tracks: int
    truth_tracks: int

    @property
    def precision(self) -> float:
        """Of all classes together."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """Of all classes together."""
        return self.total.recall


def load_events(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Reads an event file (JSON Lines) and groups its lines by source.

    Raises:
        ValueError: a line is not a JSON object with `source` and `frame`; says which.
    """
    by_source: dict[str, list[dict[str, Any]]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                event = json.loads(line)
                by_source.setdefault(event["source"], []).append(event)
                event["frame"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise ValueError(f"{path}:{number}: not an event line: {error!r}") from error
    return by_source


def score(events: Iterable[Mapping[str, Any]], truth: Truth, threshold: float = 0.5) -> Score:
    """Scores the events of one source; frames of the truth without an event count as missed.

    Args:
        events: one mapping per frame with `frame` and `objects`, each with `bbox` [x1, y1, x2, y2] in source pixels,
            `label`, `confidence` and `track_id` (integer or null).
        truth: of the same clip.
        threshold: least intersection over union of a right detection.
    """
    listed = list(events)
    by_frame = {int(event["frame"]): event["objects"] for event in listed}
    labels = [
        *truth.classes,
        *sorted({item["label"] for items in by_frame.values() for item in items} - set(truth.classes)),
    ]
    classes = {label: ClassScore(0, 0, 0) for label in labels}
    for index, true_objects in enumerate(truth.frames):
        found = by_frame.get(index, [])
        for label in labels:
            detections = [item for item in found if item["label"] == label]
            owed = [item for item in true_objects if item.label == label]
            ignore = np.array([item.ignore for item in owed], bool)
            matches = match(
                np.array([item["bbox"] for item in detections], float).reshape(-1, 4),
                np.array([item["confidence"] for item in detections], float),
                np.array([item.box for item in owed], float).reshape(-1, 4),
                ignore,
                threshold,
            )
            right = int((matches >= 0).sum())
            classes[label] += ClassScore(right, int((matches == FALSE).sum()), int((~ignore).sum()) - right)
    ids = {item.get("track_id") for items in by_frame.values() for item in items} - {None}
    return Score(
        frames=len(listed),
        objects=sum(len(items) for items in by_frame.values()),
        classes=classes,
        total=sum(classes.values(), ClassScore(0, 0, 0)),
        tracks=len(ids),
        truth_tracks=_owed_tracks(truth),
    )


def _owed_tracks(truth: Truth) -> int:
    seen = [item.track_id for items in truth.frames for item in items if not item.ignore]
    _, counts = np.unique(np.array(seen, int), return_counts=True)
    return int((counts >= MIN_TRACK_FRAMES).sum())

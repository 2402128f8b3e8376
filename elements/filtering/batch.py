"""The rules of a filter on a batch's metadata, on both runtimes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from elements.filtering.apply import Decision, Objects, TrackAges, decide
from elements.filtering.rules import FilterRules
from elements.metadata.class_names import UnseenNames
from elements.metadata.edit import remove_objects
from elements.metadata.placement import Placement
from elements.metadata.writer import UNTRACKED_OBJECT_ID, short_label


class BatchFilter:
    """Applies rules to batch after batch.

    Attributes:
        rules: in force; see `change`.
        padding: whether the stream mux keeps the aspect ratio by padding; ``None``: not known yet.
        seen: objects that came in.
        removed: objects that went.
    """

    def __init__(self, rules: FilterRules, padding: bool | None = None, name: str = "filter") -> None:
        self.padding, self._name = padding, name
        self.change(rules)
        self.seen = self.removed = 0
        self._ages: dict[int, TrackAges] = {}  # by source id

    def change(self, rules: FilterRules) -> None:
        """Use these rules from the next batch on."""
        self.rules = rules
        self._names = UnseenNames(self._name, rules.names)

    def apply(self, batch_meta: Any) -> None:
        """Filter the objects of every frame (pyservicemaker's BatchMetadata)."""
        rules = self.rules  # the same for all frames of the batch
        for frame in batch_meta.frame_items:
            size = (frame.source_width, frame.source_height)
            mux = (frame.pipeline_width or size[0], frame.pipeline_height or size[1])
            objects = read_objects(frame, Placement.of(size, mux, bool(self.padding)))
            ages = self._ages.setdefault(frame.source_id, TrackAges())
            self.seen += len(objects)
            decision = decide(objects, rules, size, ages, frame.buffer_pts / 1e9)
            self._names.see([*objects.labels, *decision.labels.values()])
            self.removed += carry_out(decision, frame)

    def close(self) -> None:
        """Tell which classes of the rules were never seen."""
        self._names.tell()


def read_objects(frame: Any, placement: Placement) -> Objects:
    """The objects of a frame (pyservicemaker's FrameMetadata), newest first, in source pixels."""
    boxes, angles, rows = [], [], []
    for item in frame.object_items:
        rect = item.rect_params
        boxes.append((rect.left, rect.top, rect.left + rect.width, rect.top + rect.height))
        angles.append(math.radians(rect.rotation_angle))
        track = -1 if item.object_id == UNTRACKED_OBJECT_ID else int(item.object_id)
        rows.append((item.confidence, item.class_id, item.label, track, item.unique_component_id))
    scores, class_ids, labels, tracks, components = zip(*rows, strict=True) if rows else ((),) * 5
    return Objects(
        placement.to_source(np.array(boxes, np.float32).reshape(-1, 4)).astype(np.float64),
        np.array(angles, np.float64),
        np.array(scores, np.float64),
        np.array(class_ids, np.int64),
        list(labels),
        list(tracks),
        np.array(components, np.int64),
    )


def carry_out(decision: Decision, frame: Any) -> int:
    """Rename and remove, on the frame that the objects were read of. Returns how many went."""
    if decision.labels or decision.class_ids:
        for row, item in enumerate(frame.object_items):
            if row in decision.labels and decision.keep[row]:
                item.label = item.text_params.display_text = short_label(decision.labels[row])
            if row in decision.class_ids and decision.keep[row]:
                item.class_id = decision.class_ids[row]
    if decision.keep.all():
        return 0
    rows = iter(decision.keep.tolist())
    return remove_objects(frame, lambda _item: not next(rows))

"""The analyze stage by rules of ours: what tracked objects do, as JSON on frames and objects, and as events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elements.analytics.engine import Findings, SourceAnalytics
from elements.analytics.geometry import anchors
from elements.analytics.rules import Rules, Settings
from elements.analytics.tracks import Sighting
from elements.metadata.class_names import UnseenNames
from elements.metadata.edit import attach_json, find_jsons
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report
from pipelines.operators.exchange import ANALYTICS, add_events, placement_of


class Analyze(Operator):
    """Attaches JSON ``analytics`` to frames, ``{stage: counts}``, and to objects, and adds its events to the frame's.

    Args:
        name: of the stage.
        rules: by source id; frames of other sources are left alone.
        settings: when something counts.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding.
        mux_size: see `pipelines.operators.exchange.placement_of`.
        report: see `Operator`.
    """

    def __init__(
        self,
        name: str,
        rules: Mapping[int, Rules],
        settings: Settings,
        sources: Sequence[str],
        padding: bool,
        mux_size: tuple[int, int] | None,
        report: Report,
    ) -> None:
        super().__init__(report)
        self._name, self._sources = name, sources
        self._padding, self._mux_size, self._anchor = padding, mux_size, settings.anchor
        self._names = UnseenNames(name, {word for own in rules.values() for word in own.class_names})
        self._engines = {source_id: SourceAnalytics(own, settings) for source_id, own in rules.items()}

    @property
    def stats(self) -> dict[str, Any]:
        """Counts of zones, lines and directions, by source."""
        return {self._sources[source_id]: engine.counts for source_id, engine in self._engines.items()}

    def process(self, batch_meta: Any) -> None:
        """One batch, frame by frame."""
        for frame in batch_meta.frame_items:
            engine = self._engines.get(frame.source_id)
            if engine is not None:
                rows, sightings, aspect = self._sightings(frame)
                self._names.see([sighting.label for sighting in sightings])
                self._attach(frame, rows, engine.update(frame.buffer_pts / 1e9, sightings, aspect))

    def close(self) -> None:
        """Tell which classes of the rules were never seen."""
        self._names.tell()

    def _sightings(self, frame: Any) -> tuple[list[int], list[Sighting], float]:
        """The tracked objects, their positions among ``object_items``, and the picture's width / height."""
        placement = placement_of(frame, self._padding, self._mux_size)
        rows, boxes, angles, classes = [], [], [], []
        for row, item in enumerate(frame.object_items):
            if item.object_id == UNTRACKED_OBJECT_ID:
                continue
            rect = item.rect_params
            rows.append(row)
            boxes.append((rect.left, rect.top, rect.left + rect.width, rect.top + rect.height))
            angles.append(math.radians(rect.rotation_angle))
            classes.append((int(item.object_id), int(item.class_id), str(item.label)))
        size = placement.source_width, placement.source_height
        if not rows:
            return [], [], size[0] / size[1]
        in_source = placement.to_source(np.array(boxes, np.float32))
        points = anchors(in_source, np.array(angles), size, self._anchor)
        return rows, [Sighting(*one, point) for one, point in zip(classes, points, strict=True)], size[0] / size[1]

    def _attach(self, frame: Any, rows: Sequence[int], found: Findings) -> None:
        attach_json(frame, ANALYTICS, {**find_jsons(frame, (ANALYTICS,)).get(ANALYTICS, {}), self._name: found.frame})
        add_events(frame, [{"event": event["event"], "stage": self._name, **event} for event in found.events])
        results = {row: result for row, result in zip(rows, found.objects, strict=True) if result}
        for row, item in enumerate(frame.object_items if results else ()):
            if row in results:
                known = find_jsons(item, (ANALYTICS,)).get(ANALYTICS, {})
                attach_json(item, ANALYTICS, {**known, self._name: results[row]})

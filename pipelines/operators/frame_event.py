"""A frame as an event: plain data in pixels of the source (configs/schema/event.schema.json)."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from elements.metadata.edit import find_json_texts
from elements.metadata.placement import Placement
from elements.metadata.utc import utc_text
from pipelines.operators.event_objects import ANALYTICS, ObjectEntries
from pipelines.operators.exchange import EVENTS, MODELS, placement_of

ATTACHED = (MODELS, ANALYTICS, EVENTS)
"""Names of what else an event tells of a frame."""


class EventMaker:
    """Makes events of frames.

    Args:
        pipeline: the definition's name.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding (else it stretches).
        mux_size: (width, height) of the mux in pixels, for frames that do not tell it: DeepStream forgets it where it
            copies a batch.
        embeddings: whether objects carry their embeddings.
        masks: whether objects carry their masks.
        keep: called with each ObjectMetadata; the others are left out.
    """

    def __init__(
        self,
        pipeline: str,
        sources: Sequence[str],
        padding: bool,
        mux_size: tuple[int, int] | None = None,
        embeddings: bool = False,
        masks: bool = True,
        keep: Callable[[Any], bool] | None = None,
    ) -> None:
        self._pipeline, self._sources, self._padding = pipeline, sources, padding
        self._mux_size, self._embeddings = mux_size, embeddings
        self._masks, self._keep = masks, keep

    def event_of(self, frame: Any) -> dict[str, Any]:
        """The event of a frame (pyservicemaker's FrameMetadata)."""
        (event,) = self.events_of((frame,))
        return event

    def events_of(self, frames: Iterable[Any]) -> list[dict[str, Any]]:
        """The events of several frames, in less time than one by one."""
        entries = self._entries()
        events = [self._event(frame, entries) for frame in frames]
        entries.place()
        return events

    def _entries(self) -> ObjectEntries:
        return ObjectEntries(self._embeddings, self._masks, self._keep)

    def _placement(self, frame: Any) -> Placement:
        return placement_of(frame, self._padding, self._mux_size)

    def _event(self, frame: Any, entries: ObjectEntries) -> dict[str, Any]:
        placement = self._placement(frame)
        return {
            "pipeline": self._pipeline,
            "source": self._sources[frame.source_id],
            "source_id": frame.source_id,
            "frame": frame.frame_number,
            "stream_time_s": stream_time(frame.buffer_pts),
            "time_utc": utc_text(frame.ntp_timestamp),
            "width": placement.source_width,
            "height": placement.source_height,
            **_attached(frame),
            "objects": entries.read(frame, placement),
        }


def stream_time(nanoseconds: int) -> float:
    """Nanoseconds as seconds, to the microsecond."""
    return round(nanoseconds / 1e9, 6)


def _attached(frame: Any) -> dict[str, Any]:
    texts = find_json_texts(frame, ATTACHED)
    return {name: dict(_models(text)) if name == MODELS else json.loads(text) for name, text in texts.items()}


_models = functools.lru_cache(256)(json.loads)  # all frames have the same until a model is exchanged

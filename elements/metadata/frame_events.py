"""Events of a frame: JSON metadata, which event files and messages carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elements.metadata.edit import attach_json, find_jsons

EVENTS = "events"
"""Name of the metadata: a list of ``{"event": name, …}``."""


def events_of(frame_meta: Any) -> list[dict[str, Any]]:
    """The events that the frame has."""
    events: list[dict[str, Any]] = find_jsons(frame_meta, (EVENTS,)).get(EVENTS, [])
    return events


def add_events(frame_meta: Any, events: Sequence[Mapping[str, Any]]) -> None:
    """Add events to those that the frame has."""
    if events:
        attach_json(frame_meta, EVENTS, [*events_of(frame_meta), *events])

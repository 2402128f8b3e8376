"""What ``on_message`` gets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from elements.base import Gst


class PipelineState(IntEnum):
    """State of an element, numbered as GstState."""

    INVALID = 0
    EMPTY = 1
    READY = 2
    PAUSED = 3
    PLAYING = 4


class PipelineMessage:
    """Base of all messages."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StateTransitionMessage(PipelineMessage):
    """An element (``origin`` is its name) went from one state to another."""

    old_state: PipelineState
    new_state: PipelineState
    origin: str


@dataclass(frozen=True, slots=True)
class DynamicSourceMessage(PipelineMessage):
    """nvmultiurisrcbin added or removed a source. Texts are "N/A" where missing."""

    source_added: bool
    source_id: int
    sensor_id: str = "N/A"
    sensor_name: str = "N/A"
    uri: str = "N/A"


class EOSMessage(PipelineMessage):
    """The whole pipeline reached its end of stream."""

    __slots__ = ()


def pipeline_message(message: Gst.Message) -> PipelineMessage | None:
    """The message for ``on_message`` that a bus message stands for, None if it is not one of them."""
    if message.type == Gst.MessageType.STATE_CHANGED:
        old, new, _pending = message.parse_state_changed()
        return StateTransitionMessage(PipelineState(int(old)), PipelineState(int(new)), message.src.get_name())
    if message.type == Gst.MessageType.EOS:
        return EOSMessage()
    if message.type == Gst.MessageType.ELEMENT:
        return _source_message(message.get_structure())
    return None


def _source_message(structure: Gst.Structure | None) -> DynamicSourceMessage | None:
    if structure is None or structure.get_name() not in ("stream-add", "stream-remove"):
        return None
    texts = [structure.get_string(name) or "N/A" for name in ("sensor-id", "sensor-name", "uri")]
    return DynamicSourceMessage(structure.get_name() == "stream-add", structure.get_value("source-id"), *texts)

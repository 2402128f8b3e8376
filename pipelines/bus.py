"""The pipeline's bus as a queue of plain events, beside whatever watch pyservicemaker has on it."""

from __future__ import annotations

import logging
import queue
from dataclasses import dataclass, field
from typing import Any

from elements.base import Gst
from pipelines.thread_states import on_stream_status


@dataclass(frozen=True, slots=True)
class BusEvent:
    """One message. ``path`` are the names from the posting element up to the pipeline.

    ``kind`` is ``error``, ``warning``, ``eos``, ``element`` (``name`` and ``fields`` of its structure), ``operator``
    (an operator failed) or ``signal`` (the process got one).
    """

    kind: str
    path: tuple[str, ...] = ()
    text: str = ""
    debug: str = ""
    name: str = ""
    fields: dict[str, Any] = field(default_factory=dict)


Inbox = queue.SimpleQueue[BusEvent]


_watch_log = logging.getLogger("gstorch.pyservicemaker.bus")  # the portable pyservicemaker's own report of messages


class BusWatch:
    """Puts the messages that matter to the runner into ``inbox``. They arrive on streaming threads.

    Meanwhile pyservicemaker does not log them: the runner does, with the names that the user gave.
    """

    def __init__(self, pipeline: Gst.Pipeline, inbox: Inbox) -> None:
        self._pipeline = pipeline
        self._inbox = inbox
        self._bus = pipeline.get_bus()
        self._bus.enable_sync_message_emission()
        self._handlers = (
            self._bus.connect("sync-message", self._on_message),
            self._bus.connect("sync-message::stream-status", on_stream_status, pipeline),
        )
        _watch_log.disabled = True

    def close(self) -> None:
        """Stop listening."""
        _watch_log.disabled = False
        for handler in self._handlers:
            self._bus.disconnect(handler)
        self._bus.disable_sync_message_emission()

    def _on_message(self, _bus: Gst.Bus, message: Gst.Message) -> None:
        event = self._event(message)
        if event is not None:
            self._inbox.put(event)

    def _event(self, message: Gst.Message) -> BusEvent | None:
        if message.type == Gst.MessageType.EOS:
            return BusEvent("eos") if message.src == self._pipeline else None
        if message.type == Gst.MessageType.ERROR:
            error, debug = message.parse_error()
            return BusEvent("error", _path(message.src), error.message, debug or "")
        if message.type == Gst.MessageType.WARNING:
            error, debug = message.parse_warning()
            return BusEvent("warning", _path(message.src), error.message, debug or "")
        if message.type == Gst.MessageType.ELEMENT:
            structure = message.get_structure()
            names = [structure.nth_field_name(i) for i in range(structure.n_fields())]
            values = {name: structure.get_value(name) for name in names}
            return BusEvent("element", _path(message.src), name=structure.get_name(), fields=values)
        return None


def _path(element: Gst.Object | None) -> tuple[str, ...]:
    names = []
    while element is not None:
        names.append(element.get_name())
        element = element.get_parent()
    return tuple(names)

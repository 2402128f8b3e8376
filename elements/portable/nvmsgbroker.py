"""Stand-in for DeepStream's ``nvmsgbroker``: sends the payloads of frames to a broker, without keeping them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elements.base import (
    AUTHOR,
    GObject,
    Gst,
    GstBase,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    pad_template,
    post_error,
    trace_of,
)
from elements.messages.adaptors import Adaptor, AdaptorError, open_adaptor
from elements.portable.carrier import batch_of
from elements.portable.nvmsgconv import PAYLOAD_META

log = logging.getLogger("gstorch.messages")

WAITING = 1000
"""Most messages that wait for the broker with ``new-api``; more are dropped and counted."""
BATCH = 200
RETRY_S = 2.0
FINISH_S = 3.0

Keyed = tuple[str, bytes]


class NvMsgBroker(PropertyTable, GstBase.BaseSink):
    """Sends what nvmsgconv attached. The key of a message is its source's id.

    Without ``new-api`` each batch waits for the broker, and a failure ends the pipeline. With it, messages are sent
    from a thread of its own, which connects again; what comes meanwhile is dropped, as NVIDIA's does.
    """

    __gtype_name__ = "NvMsgBroker"
    __gstmetadata__ = ("NvMsgBroker (portable)", "Sink/Metadata", "Sends messages to a broker", AUTHOR)
    __gsttemplates__ = (pad_template("sink", Gst.PadDirection.SINK, Gst.PadPresence.ALWAYS, "ANY"),)
    PROPERTIES = (
        Property("proto-lib", str, None, "Protocol adaptor; its name tells the broker: libnvds_kafka_proto.so"),
        Property("conn-str", str, None, "host;port[;topic]"),
        Property("config", str, None, "Configuration of the adaptor"),
        Property("topic", str, None, "Topic; default: that of conn-str"),
        Property("comp-id", "uint", 0, "Send payloads of this component id; 0: all"),
        Property("new-api", bool, False, "Go on when the broker is lost"),
        Property("sleep-time", "uint", 0, "Pause of the adaptor's loop, ms", effect=False),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self._adaptor: Adaptor | None = None
        self._worker: _Worker | None = None

    @guarded(False)
    def do_start(self) -> bool:
        self.warn_of_ignored_properties()
        if not self.values["proto-lib"]:
            return self._refuse("No protocol adaptor library provided: set proto-lib", Gst.ResourceError.NOT_FOUND)
        if not self.values["conn-str"] and not self.values["config"]:
            return self._refuse("No connection string provided: set conn-str", Gst.ResourceError.NOT_FOUND)
        try:
            self._adaptor = self._open()
        except AdaptorError as error:
            return self._refuse(f"unable to connect to broker library: {error}", Gst.LibraryError.SETTINGS)
        if self.values["new-api"]:
            self._worker = _Worker(self.get_name(), self._adaptor, self._open)
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        if self._worker is not None:
            self._worker.finish()
        elif self._adaptor is not None:
            self._adaptor.close()
        self._adaptor = self._worker = None
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_render(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        messages = self._messages(buffer)
        if self._worker is not None:
            self._worker.give(messages)
        elif messages:
            assert self._adaptor is not None
            try:
                self._adaptor.send(messages)
            except AdaptorError as error:
                self._refuse(f"failed to send the message: {error}", Gst.LibraryError.FAILED)
                return Gst.FlowReturn.ERROR
        return Gst.FlowReturn.OK

    def _messages(self, buffer: Gst.Buffer) -> list[Keyed]:
        batch, wanted = batch_of(buffer), self.values["comp-id"]
        return [
            (str(frame.source_id), meta.data.data)
            for frame in (batch.frames if batch is not None else ())
            for meta in frame.user
            if meta.meta_type == PAYLOAD_META and wanted in (0, meta.data.component_id)
        ]

    def _open(self) -> Adaptor:
        values = self.values
        config = Path(values["config"]) if values["config"] else None
        return open_adaptor(values["proto-lib"], values["conn-str"] or "", values["topic"] or "", config)

    def _refuse(self, text: str, code: Any) -> bool:
        post_error(self, f"{self.get_name()}: {text}", "", type(code), code)
        return False


class _Worker:
    """Sends on a thread of its own; what there is no room for, or cannot be sent, is dropped and counted."""

    def __init__(self, name: str, adaptor: Adaptor, reopen: Any) -> None:
        self._name, self._adaptor, self._reopen = name, adaptor, reopen
        self._queue: queue.Queue[Keyed] = queue.Queue(WAITING)
        self._ending = threading.Event()
        self._sent = self._dropped = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def give(self, messages: Sequence[Keyed]) -> None:
        for message in messages:
            try:
                self._queue.put_nowait(message)
            except queue.Full:
                self._drop(1, "the broker is too slow")

    def finish(self) -> None:
        """Send what waits for at most `FINISH_S`."""
        self._ending.set()
        self._thread.join(FINISH_S)
        lost = self._dropped + self._queue.qsize()
        if lost:
            log.warning("%s: %d messages sent, %d lost", self._name, self._sent, lost)

    def _run(self) -> None:
        try:
            while not (self._ending.is_set() and self._queue.empty()):
                messages = self._take()
                if messages:
                    self._send(messages)
        except Exception as error:
            log.error("%s: %s", self._name, trace_of(error))
        finally:
            self._adaptor.close()

    def _take(self) -> list[Keyed]:
        messages: list[Keyed] = []
        try:
            messages.append(self._queue.get(timeout=0.1))
            while len(messages) < BATCH:
                messages.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return messages

    def _send(self, messages: Sequence[Keyed]) -> None:
        try:
            self._adaptor.send(messages)
            self._sent += len(messages)
        except AdaptorError as error:
            self._drop(len(messages), str(error))
            self._adaptor.close()
            self._connect_again()

    def _connect_again(self) -> None:
        while not self._ending.is_set():
            try:
                self._adaptor = self._reopen()
                log.info("%s: connected again, %d messages lost so far", self._name, self._dropped)
                return
            except AdaptorError:
                self._ending.wait(RETRY_S)

    def _drop(self, number: int, why: str) -> None:
        if not self._dropped:
            log.warning("%s: messages are dropped: %s", self._name, why)
        self._dropped += number


FACTORIES: dict[str, type[Gst.Element]] = {"nvmsgbroker": NvMsgBroker}

GObject.type_register(NvMsgBroker)

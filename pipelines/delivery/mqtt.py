"""MQTT 5 (or 3.1.1), through paho-mqtt."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import ID_HEADER, BadOptionError, Broker, BrokerError, Receipt
from pipelines.delivery.connection import Connection

LOST = (0, "lost")
REFUSED_FOR_GOOD = {0x90: "topic name invalid", 0x95: "packet too large", 0x99: "payload format invalid"}


class Mqtt(Broker):
    """Publishes in order over one connection; with QoS 1 and 2 a message is delivered when the broker says so.

    The id is the user property ``gstorch-id`` (MQTT 5). Sessions are clean: the outbox is what remembers.
    Options: ``qos`` (1): 0 counts what was written to the socket as delivered; ``version`` (5): 5 or 3 (3.1.1, without
    ids); ``client_id``: default random; ``keepalive`` (60): seconds; ``inflight`` (20, mosquitto's limit): messages on
    their way at a time, which over a slow network limits the rate.
    """

    NAME = "mqtt"
    LIBRARY = "paho"
    OPTIONS = ("qos", "version", "client_id", "keepalive", "inflight")

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._qos = self.number_option("qos", 1, 0, 2)
        self._version = self.number_option("version", 5, 3, 5)
        if self._version == 4:
            raise BadOptionError("option 'version' of mqtt is 5, or 3 for MQTT 3.1.1")
        self._keepalive = self.number_option("keepalive", 60, 1, 65535)
        self._window = self.number_option("inflight", 20, 1, 65535)
        self._client: Any = None
        self._events: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()

    def connect(self) -> None:
        """Open, log in, and wait for the broker's word."""
        from paho.mqtt import client as mqtt

        self._events = queue.SimpleQueue()
        answered = threading.Event()
        answer: list[tuple[str, bool, int]] = []

        def on_connect(_client: Any, _data: Any, _flags: Any, reason: Any, properties: Any) -> None:
            window = getattr(properties, "ReceiveMaximum", self._window)
            answer.append((str(reason), reason.is_failure, window))
            answered.set()

        try:
            self._client = self._new_client(mqtt)
            self._client.on_connect = on_connect
            self._client.connect(*self.connection.hosts[0], keepalive=self._keepalive)
        except (OSError, ValueError) as error:
            raise BrokerError(f"no broker answers: {error}") from None
        self._client.loop_start()
        if not answered.wait(self.timeout):
            raise BrokerError("no broker answers: connected, but it is silent")
        reason, failed, window = answer[0]
        if failed:
            raise BrokerError(f"the broker refuses the log-in: {reason}")
        if window < self._window:
            raise BrokerError(f"the broker takes {window} messages at a time; set the option 'inflight' to that")

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """Publish all; paho keeps to ``inflight``."""
        numbers: dict[int, int] = {}
        for message in messages:
            try:
                info = self._client.publish(message.topic, message.payload, self._qos, properties=self._id(message))
            except ValueError as error:  # a topic with wildcards, a payload above 256 MB
                yield Receipt(message.number, str(error))
                continue
            numbers[info.mid] = message.number
        deadline = time.monotonic() + self.timeout
        while numbers:
            try:
                packet, refusal = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise BrokerError("not acknowledged: no answer") from None
            if (packet, refusal) == LOST:
                raise BrokerError("not acknowledged: the connection broke")
            if packet in numbers:
                deadline = time.monotonic() + self.timeout
                yield Receipt(numbers.pop(packet), refusal)

    def idle(self) -> None:
        """paho's thread pings; a broken connection is reported here."""
        if not self._client.is_connected():
            raise BrokerError("the connection broke")

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            client, self._client = self._client, None
            client.on_disconnect = None
            client.disconnect()
            client.loop_stop()

    def _new_client(self, mqtt: Any) -> Any:
        place = self.connection
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=self.option("client_id", ""),
            protocol=mqtt.MQTTv5 if self._version == 5 else mqtt.MQTTv311,
            reconnect_on_failure=False,
        )
        client.connect_timeout = self.timeout
        client.max_inflight_messages = self._window
        if place.username:
            client.username_pw_set(place.username, place.secret)
        if place.tls:
            files = place.tls
            client.tls_set(*(str(path) if path else None for path in (files.ca, files.cert, files.key)))
        client.on_publish = self._published
        client.on_disconnect = lambda *_: self._events.put(LOST)
        return client

    def _published(self, _client: Any, _data: Any, packet: int, reason: Any, _properties: Any) -> None:
        if not reason.is_failure:
            self._events.put((packet, ""))
        elif reason.value in REFUSED_FOR_GOOD:
            self._events.put((packet, REFUSED_FOR_GOOD[reason.value]))
        else:  # over quota, not authorised: may change
            self._events.put(LOST)

    def _id(self, message: Queued) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        if self._version != 5:
            return None
        properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.UserProperty = (ID_HEADER, message.id)
        return properties

"""Kafka, through confluent-kafka (librdkafka)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import ID_HEADER, BadOptionError, Broker, BrokerError, Receipt
from pipelines.delivery.connection import Connection, joined

POLL_S = 0.05
SILENT = logging.Logger("librdkafka", logging.CRITICAL + 1)
"""For librdkafka's log lines: what matters comes as an error."""


class Kafka(Broker):
    """Keyed by source, so each source keeps its order in its partition; idempotent, acknowledged by all replicas.

    The id is the header ``gstorch-id``. Options are librdkafka's own (``compression.type``, ``sasl.mechanism`` …).
    """

    NAME = "kafka"
    LIBRARY = "confluent_kafka"
    OPTIONS = ("*",)

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._producer: Any = None
        if connection.options:  # only librdkafka knows whether it likes them
            self._open()
            self.close()

    def connect(self) -> None:
        """Fetch the cluster's metadata."""
        from confluent_kafka import KafkaException

        self._open()
        try:
            self._producer.list_topics(timeout=self.timeout)
        except KafkaException as error:
            raise BrokerError(f"no broker answers: {_text(error)}") from None

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """All at once; librdkafka keeps the order and retries within `timeout`."""
        from confluent_kafka import KafkaError, KafkaException

        permanent = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError.TOPIC_EXCEPTION)
        receipts: list[Receipt] = []
        failures: list[KafkaError] = []

        def reported(number: int) -> Any:
            def report(error: KafkaError | None, _message: object) -> None:
                if error is None:
                    receipts.append(Receipt(number))
                elif error.code() in permanent:
                    receipts.append(Receipt(number, error.str()))
                else:
                    failures.append(error)

            return report

        sent = 0
        for message in messages:
            try:
                self._producer.produce(
                    message.topic,
                    message.payload,
                    key=message.key,
                    headers=[(ID_HEADER, message.id)],
                    timestamp=int(message.made * 1000),
                    on_delivery=reported(message.number),
                )
                sent += 1
            except KafkaException as error:
                if error.args[0].code() not in permanent:
                    raise BrokerError(_text(error)) from None
                yield Receipt(message.number, error.args[0].str())
        yielded = 0
        deadline = time.monotonic() + self.timeout + 1.0
        while yielded + len(failures) < sent and time.monotonic() < deadline:
            self._producer.poll(POLL_S)
            yield from receipts[yielded:]
            yielded = len(receipts)
        if yielded < sent:
            raise BrokerError(f"not acknowledged: {failures[0].str() if failures else 'no answer'}")

    def idle(self) -> None:
        """Let librdkafka call back."""
        self._producer.poll(0)

    def close(self) -> None:
        """Forget what was not acknowledged; the outbox has it."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(0)
            self._producer = None

    def _open(self) -> None:
        from confluent_kafka import KafkaException, Producer

        try:
            self._producer = Producer(self._configuration(), logger=SILENT)
        except (KafkaException, ValueError, TypeError) as error:
            raise BadOptionError(f"kafka: {self.connection.redact(str(error))}") from None

    def _configuration(self) -> dict[str, Any]:
        place = self.connection
        secured = "SSL" if place.tls else "PLAINTEXT"
        found: dict[str, Any] = {
            "bootstrap.servers": ",".join(joined(host, port) for host, port in place.hosts),
            "client.id": "gstorch",
            "enable.idempotence": True,
            "message.timeout.ms": int(self.timeout * 1000),
            "socket.timeout.ms": int(self.timeout * 1000),
            "reconnect.backoff.max.ms": 1000,
            "linger.ms": 5,
            "queue.buffering.max.messages": 100_000,
            "security.protocol": f"SASL_{secured}" if place.username else secured,
        }
        if place.username:
            found |= {"sasl.mechanism": "PLAIN", "sasl.username": place.username, "sasl.password": place.secret or ""}
        if place.tls:
            files = {"ca": place.tls.ca, "certificate": place.tls.cert, "key": place.tls.key}
            found |= {f"ssl.{name}.location": str(path) for name, path in files.items() if path}
        return found | dict(place.options)


def _text(error: Any) -> str:
    return str(error.args[0].str())

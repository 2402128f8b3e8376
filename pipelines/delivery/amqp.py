"""AMQP 0-9-1 (RabbitMQ), through pika."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import Broker, BrokerError, Receipt
from pipelines.delivery.connection import Connection

CLOSE_S = 1.0


class Amqp(Broker):
    """Publishes persistent messages with confirms; the topic is the routing key, the id is AMQP's ``message_id``.

    An exchange without a queue bound to it throws messages away and confirms them.
    Options: ``exchange`` (amq.topic, as in DeepStream); ``queue``: a durable queue that is declared and bound to the
    connection's topic, so that messages wait for their consumer.
    """

    NAME = "amqp"
    LIBRARY = "pika"
    OPTIONS = ("exchange", "queue")

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._exchange = self.option("exchange", "amq.topic")
        self._connection: Any = None
        self._channel: Any = None
        self._lost = ""
        self._open: dict[int, int] = {}  # delivery tag -> number, of what is not confirmed yet
        self._confirmed: list[int] = []
        self._next_tag = 1
        self._wanted: Callable[[], bool] = bool

    def connect(self) -> None:
        """Log in, open a channel with confirms, declare the queue if one is named."""
        import pika

        self._lost, self._next_tag, self._open, self._confirmed = "", 1, {}, []
        self._connection = pika.SelectConnection(
            self._parameters(pika),
            on_open_callback=lambda _: self._check(),
            on_open_error_callback=self._broken,
            on_close_callback=self._broken,
        )
        self._wait(lambda: self._connection.is_open, "no broker answers")
        self._channel = self._connection.channel(on_open_callback=lambda _: self._check())
        self._channel.add_on_close_callback(self._broken)
        self._wait(lambda: self._channel.is_open, "no broker answers")
        self._ask(partial(self._channel.confirm_delivery, self._on_confirm))
        queue = self.option("queue", "")
        if queue:
            self._ask(partial(self._channel.queue_declare, queue, durable=True))
            topic = self.connection.topic or "#"
            self._ask(partial(self._channel.queue_bind, queue, self._exchange, routing_key=topic))

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """All at once; confirms come in any order."""
        import pika

        self._confirmed = []
        for message in messages:
            self._open[self._next_tag] = message.number
            self._next_tag += 1
            properties = pika.BasicProperties(
                message_id=message.id,
                delivery_mode=pika.DeliveryMode.Persistent.value,
                timestamp=int(message.made),
                headers={"key": message.key},
            )
            try:
                self._channel.basic_publish(self._exchange, message.topic, message.payload, properties)
            except pika.exceptions.AMQPError as error:
                raise BrokerError(f"not acknowledged: {error!r}") from None
        taken = 0
        while taken < len(messages):
            try:
                self._wait(lambda seen=taken: len(self._confirmed) > seen, "not acknowledged")  # type: ignore[misc]
            finally:
                yield from map(Receipt, self._confirmed[taken:])
            taken = len(self._confirmed)

    def idle(self) -> None:
        """Heartbeats."""
        with contextlib.suppress(BrokerError):
            self._wait(lambda: False, "", 0.005)
        if self._lost:
            raise BrokerError(f"the connection broke: {self._lost}")

    def close(self) -> None:
        """Say goodbye if somebody listens, and let go of the socket."""
        if self._connection is None:
            return
        connection, self._connection, self._channel = self._connection, None, None
        with contextlib.suppress(Exception):  # it is of no more use, whatever state it is in
            if connection.is_open:
                connection.add_on_close_callback(lambda *_: connection.ioloop.stop())
                connection.ioloop.call_later(CLOSE_S, connection.ioloop.stop)
                connection.close()
                connection.ioloop.start()
        with contextlib.suppress(Exception):
            connection.ioloop.close()

    # --- pika's loop runs only while something is waited for ----------------------------------------------------------

    def _wait(self, wanted: Callable[[], bool], failure: str, seconds: float | None = None) -> None:
        loop = self._connection.ioloop
        if not wanted() and not self._lost:
            self._wanted = wanted
            timer = loop.call_later(self.timeout if seconds is None else seconds, loop.stop)
            loop.start()
            loop.remove_timeout(timer)
        if not wanted():
            raise BrokerError(f"{failure}: {self._lost or 'no answer'}")

    def _check(self) -> None:
        if self._wanted() or self._lost:
            self._connection.ioloop.stop()

    def _ask(self, method: Callable[..., object]) -> None:
        answers: list[object] = []

        def answered(frame: object) -> None:
            answers.append(frame)
            self._check()

        method(callback=answered)
        self._wait(lambda: bool(answers), "no broker answers")

    def _broken(self, _who: object, error: BaseException) -> None:
        self._lost = self._lost or _reason(error)
        if self._connection is not None:
            self._check()

    def _on_confirm(self, frame: Any) -> None:
        tag, multiple = frame.method.delivery_tag, frame.method.multiple
        tags = [known for known in self._open if known <= tag] if multiple else [tag]
        numbers = [self._open.pop(known) for known in tags if known in self._open]
        if frame.method.NAME == "Basic.Ack":
            self._confirmed += numbers
        else:
            self._lost = self._lost or "the broker is out of room for the queue"
        self._check()

    def _parameters(self, pika: Any) -> Any:
        place = self.connection
        host, port = place.hosts[0]
        context = None
        if place.tls:
            context = ssl.create_default_context(cafile=str(place.tls.ca) if place.tls.ca else None)
            if place.tls.cert:
                context.load_cert_chain(place.tls.cert, place.tls.key)
        return pika.ConnectionParameters(
            host,
            port,
            virtual_host=place.path or "/",
            credentials=pika.PlainCredentials(place.username or "guest", place.secret or "guest"),
            ssl_options=pika.SSLOptions(context, host) if context else None,
            socket_timeout=self.timeout,
            stack_timeout=self.timeout,
            connection_attempts=1,
        )


def _reason(error: BaseException) -> str:
    """The innermost cause in pika's nested errors."""
    nested = getattr(error, "exceptions", None) or [getattr(error, "exception", None), *error.args]
    inner = next((cause for cause in reversed(nested) if isinstance(cause, BaseException)), None)
    return _reason(inner) if inner else str(error) or type(error).__name__

"""NATS JetStream, through nats-py."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import Broker, BrokerError, Receipt
from pipelines.delivery.connection import Connection, joined

WINDOW = 256


class Nats(Broker):
    """Publishes to the subject named by the topic, which a stream must cover.

    The id is NATS's own ``Nats-Msg-Id``: the server drops duplicates within its window (2 minutes by default).
    Options: ``stream``: made with the connection's topic as its subject if there is none of that name; without this
    option the stream must exist.
    """

    NAME = "nats"
    LIBRARY = "nats"
    OPTIONS = ("stream",)

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._stream: Any = None
        self._last_error: Exception | None = None

    def connect(self) -> None:
        """Log in; make sure of the stream."""
        self._loop = asyncio.new_event_loop()
        self._run(self._connect(), "no broker answers")

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """A window at a time."""
        for start in range(0, len(messages), WINDOW):
            chunk = messages[start : start + WINDOW]
            largest = self._client.max_payload
            fitting = [message for message in chunk if len(message.payload) <= largest]
            for message in chunk:
                if len(message.payload) > largest:
                    yield Receipt(message.number, f"larger than the server's limit of {largest} bytes")
            acknowledged = self._run(self._publish(fitting), "not acknowledged")
            for message, answer in zip(fitting, acknowledged, strict=True):
                if not isinstance(answer, BaseException):
                    yield Receipt(message.number)
            failures = [answer for answer in acknowledged if isinstance(answer, BaseException)]
            if failures:
                raise BrokerError(f"not acknowledged: {_text(failures[0])}")

    def idle(self) -> None:
        """Answer the server's pings."""
        self._run(asyncio.sleep(0.01), "the connection broke")
        if not self._client.is_connected:
            raise BrokerError("the connection broke")

    def close(self) -> None:
        """Let go of the socket."""
        if self._loop is None:
            return
        loop, self._loop = self._loop, None
        with contextlib.suppress(Exception):  # it is of no more use, whatever state it is in
            if self._client is not None:
                loop.run_until_complete(asyncio.wait_for(self._client.close(), 1.0))
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                loop.run_until_complete(task)
        loop.close()
        self._client = None

    def _run(self, work: Coroutine[Any, Any, Any], failure: str) -> Any:
        import nats.errors

        assert self._loop is not None
        try:
            return self._loop.run_until_complete(asyncio.wait_for(work, self.timeout))
        except nats.errors.NoServersError as error:
            raise BrokerError(f"{failure}: {_text(self._last_error or error)}") from None
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise BrokerError(f"{failure}: {_text(error)}") from None

    async def _connect(self) -> None:
        import nats
        from nats.js.errors import NotFoundError

        place = self.connection
        self._last_error = None
        self._client = await nats.connect(
            servers=[f"nats://{joined(host, port)}" for host, port in place.hosts],
            allow_reconnect=False,  # trying again is the sender's business
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=max(1, int(self.timeout)),
            error_cb=self._on_error,
            user=place.username,
            password=place.secret,
            tls=_tls_context(place) if place.tls else None,
        )
        self._stream = self._client.jetstream(timeout=self.timeout, publish_async_max_pending=WINDOW)
        name = self.option("stream", "")
        if name:
            try:
                await self._stream.stream_info(name)
            except NotFoundError:
                await self._stream.add_stream(name=name, subjects=[place.topic])

    async def _on_error(self, error: Exception) -> None:
        self._last_error = error

    async def _publish(self, messages: Sequence[Queued]) -> list[Any]:
        futures = [
            await self._stream.publish_async(message.topic, message.payload, headers={"Nats-Msg-Id": message.id})
            for message in messages
        ]
        return await asyncio.gather(*futures, return_exceptions=True)


def _tls_context(place: Connection) -> ssl.SSLContext:
    assert place.tls is not None
    context = ssl.create_default_context(cafile=str(place.tls.ca) if place.tls.ca else None)
    if place.tls.cert:
        context.load_cert_chain(place.tls.cert, place.tls.key)
    return context


def _text(error: BaseException) -> str:
    name = type(error).__name__
    if name == "NoStreamResponseError":
        return "no stream covers the subject; make one, or name one with the option 'stream'"
    return str(error) or {"TimeoutError": "no answer"}.get(name, name)

"""Redis Streams, through redis-py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import BadOptionError, Broker, BrokerError, Receipt
from pipelines.delivery.connection import Connection

CHUNK = 500


class Redis(Broker):
    """Appends to the stream named by the topic, fields ``id``, ``key`` and the payload.

    Options: ``payloadkey`` (metadata): the payload's field, as in DeepStream; ``streamsize``: about how many entries a
    stream keeps; by default all, since Redis would throw away what readers have not read.
    """

    NAME = "redis"
    LIBRARY = "redis"
    OPTIONS = ("payloadkey", "streamsize")

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._size = self.number_option("streamsize", 0, 0, 10**12) or None
        self._database = connection.path or "0"
        if not self._database.isdecimal():
            raise BadOptionError("the database of redis is a number: redis://host:port/0")
        self._client: Any = None

    def connect(self) -> None:
        """Log in and ping."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        place = self.connection
        files = place.tls
        secured: dict[str, Any] = {"ssl": True} if files else {}
        if files:
            named = {"ca_certs": files.ca, "certfile": files.cert, "keyfile": files.key}
            secured |= {f"ssl_{name}": str(path) for name, path in named.items() if path}
        host, port = place.hosts[0]
        try:
            self._client = redis.Redis(
                host=host,
                port=port,
                db=int(self._database),
                username=place.username,
                password=place.secret,
                socket_timeout=self.timeout,
                socket_connect_timeout=self.timeout,
                retry=Retry(NoBackoff(), 0),  # trying again is the sender's business
                **secured,
            )
            self._client.ping()
        except (redis.RedisError, OSError) as error:
            raise BrokerError(f"no broker answers: {error}") from None

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """Pipelined; a refused append does not keep the others back."""
        import redis

        field = self.option("payloadkey", "metadata")
        for start in range(0, len(messages), CHUNK):
            chunk = messages[start : start + CHUNK]
            pipeline = self._client.pipeline(transaction=False)
            for message in chunk:
                entry = {"id": message.id, "key": message.key, field: message.payload}
                pipeline.xadd(message.topic, entry, maxlen=self._size)
            try:
                answers = pipeline.execute(raise_on_error=False)
            except (redis.RedisError, OSError) as error:
                raise BrokerError(f"not acknowledged: {error}") from None
            yield from _receipts(chunk, answers)

    def idle(self) -> None:
        """Notice a broken connection before there is something to send."""
        import redis

        try:
            self._client.ping()
        except (redis.RedisError, OSError) as error:
            raise BrokerError(f"the connection broke: {error}") from None

    def close(self) -> None:
        """Let go of the socket."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _receipts(chunk: Sequence[Queued], answers: Sequence[Any]) -> Iterator[Receipt]:
    """Taken, refused for good (the topic is the name of something else), or to be tried again (full, loading)."""
    passing = None
    for message, answer in zip(chunk, answers, strict=True):
        if not isinstance(answer, Exception):
            yield Receipt(message.number)
        elif str(answer).startswith("WRONGTYPE"):
            yield Receipt(message.number, f"'{message.topic}' is no stream")
        else:
            passing = answer
    if passing is not None:
        raise BrokerError(f"not acknowledged: {passing}")

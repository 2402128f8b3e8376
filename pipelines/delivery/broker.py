"""What a broker's adapter is. A new one is a subclass of `Broker` in a module of its own, named in `MODULES`."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from pipelines.delivery.backlog import Queued
from pipelines.delivery.connection import Connection

MODULES = ("kafka", "mqtt", "amqp", "redis", "nats", "webhook", "file")
ID_HEADER = "gstorch-id"
"""Header, user property or field that carries a message's id where the broker has no word of its own for it."""


class BrokerError(Exception):
    """The broker cannot be reached or does not answer; what was not acknowledged is sent again later."""


class MissingLibraryError(Exception):
    """The client library is not installed; the message names the pip command."""


class BadOptionError(ValueError):
    """An option of the adapter that is unknown or has a wrong value."""


class Receipt(NamedTuple):
    """A broker's word on one message.

    Attributes:
        number: the message's.
        refused: why the broker will never take it; empty when it has taken it.
    """

    number: int
    refused: str = ""


class Broker(ABC):
    """One connection to a broker, used by one thread.

    Every method returns or raises within about ``timeout`` seconds, whatever the other side does.

    Args:
        connection: where and how.
        timeout: seconds to wait for an answer.

    Raises:
        BadOptionError: unknown option, or a value that does not fit.
    """

    NAME: ClassVar[str]
    LIBRARY: ClassVar[str] = ""
    """Top-level module of the client library; empty: none needed. The pip extra has the adapter's name."""
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """Names of the options it knows; ``*`` for any."""

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        self.connection = connection
        self.timeout = timeout
        unknown = [name for name in connection.options if name not in self.OPTIONS and "*" not in self.OPTIONS]
        if unknown:
            raise BadOptionError(
                f"{self.NAME} has no option '{unknown[0]}'; it has {', '.join(self.OPTIONS) or 'none'}"
            )

    @abstractmethod
    def connect(self) -> None:
        """Open the connection and make sure that somebody answers.

        Raises:
            BrokerError: nobody does, or the log-in is refused.
        """

    @abstractmethod
    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """Send messages in order and yield a receipt for each as it is acknowledged or refused for good.

        Raises:
            BrokerError: the connection failed; messages without a receipt may or may not have arrived.
        """

    def idle(self) -> None:  # noqa: B027  most clients need nothing
        """Called about once a second when there is nothing to send: heartbeats.

        Raises:
            BrokerError: the connection is gone.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, also of a broken one. Never raises."""

    def option(self, name: str, default: str) -> str:
        """An option's text."""
        return self.connection.options.get(name, default)

    def number_option(self, name: str, default: int, least: int, most: int) -> int:
        """An option that is a whole number.

        Raises:
            BadOptionError: it is none, or out of range.
        """
        text = self.option(name, str(default))
        if not text.isdecimal() or not least <= int(text) <= most:
            raise BadOptionError(f"option '{name}' of {self.NAME} is not a whole number from {least} to {most}")
        return int(text)


def broker_class(name: str) -> type[Broker]:
    """The adapter of this name; its client library is checked for, not loaded.

    Raises:
        MissingLibraryError: with the pip command that installs it.
    """
    importlib.import_module(f"pipelines.delivery.{name}")
    adapter = next(c for c in Broker.__subclasses__() if name == c.NAME)
    if adapter.LIBRARY and importlib.util.find_spec(adapter.LIBRARY) is None:
        raise MissingLibraryError(
            f"{name} needs a client library that is not installed: .venv/bin/python -m pip install -e '.[{name}]'"
        )
    return adapter


def envelope(message: Queued) -> bytes:
    """A message as one JSON object on one line, for receivers without headers.

    ``{"id": …, "key": …, "topic": …, "payload": …}``; a payload that is no JSON text stands as base64 in
    ``payload_base64``.
    """
    head = json.dumps({"id": message.id, "key": message.key, "topic": message.topic}, ensure_ascii=False)[:-1]
    try:
        document = message.payload.decode()
        json.loads(document, parse_constant=_no_json)
    except ValueError:
        body = f'"payload_base64": "{base64.b64encode(message.payload).decode()}"'
    else:
        # Inside JSON text, line breaks stand between tokens only.
        body = f'"payload": {document.replace(chr(13), " ").replace(chr(10), " ")}'
    return f"{head}, {body}}}".encode()


def _no_json(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def all_delivered(messages: Iterable[Queued]) -> Iterator[Receipt]:
    """Receipts for a batch that was taken as a whole."""
    return (Receipt(message.number) for message in messages)

"""Brokers without an outbox, in place of DeepStream's protocol adaptors."""

from __future__ import annotations

import configparser
import itertools
import logging
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from elements.messages.adaptors import AdaptorError
from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import BadOptionError, Broker, BrokerError, MissingLibraryError, broker_class
from pipelines.delivery.connection import AddressError, parse_connection

log = logging.getLogger("gstorch.delivery")

SECTION = "message-broker"
USED = ("username", "password")
TIMEOUT_S = 5.0


class DirectBroker:
    """One connection; see `elements.messages.adaptors.Adaptor`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._numbers = itertools.count(1)
        self._prefix = uuid.uuid4().hex[:12]

    def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Send (key, payload) pairs.

        Raises:
            AdaptorError: the broker has not taken all of them.
        """
        topic, now = self._broker.connection.topic, time.time()
        numbered = [(next(self._numbers), key, payload) for key, payload in messages]
        queued = [Queued(n, f"{self._prefix}-{n}", key, topic, payload, now) for n, key, payload in numbered]
        try:
            refused = [receipt.refused for receipt in self._broker.send(queued) if receipt.refused]
        except BrokerError as error:
            raise AdaptorError(self._broker.connection.redact(str(error))) from None
        if refused:
            raise AdaptorError(f"{self._broker.connection.name} refuses {len(refused)} messages: {refused[0]}")

    def close(self) -> None:
        """Let go of the connection."""
        self._broker.close()


def open_direct(name: str, address: str, topic: str, config: Path | None) -> DirectBroker:
    """Connect; the adaptor's configuration file gives user and password, nothing else of it has an effect here.

    Raises:
        AdaptorError: nobody answers, or the address, the file or the client library is not as it should be.
    """
    options = _read(config) if config is not None else {}
    unused = sorted(options.keys() - set(USED))
    if unused:
        log.warning("%s: no effect here: %s", config, ", ".join(unused))
    password = options.get("password")
    try:
        connection = parse_connection(
            name,
            address,
            topic=topic,
            username=options.get("username"),
            password=SecretStr(password) if password else None,
        )
        broker = broker_class(name)(connection, TIMEOUT_S)
        broker.connect()
    except (AddressError, BadOptionError, MissingLibraryError) as error:
        raise AdaptorError(str(error)) from None
    except BrokerError as error:
        raise AdaptorError(connection.redact(str(error))) from None
    return DirectBroker(broker)


def _read(path: Path) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
        return dict(parser[SECTION]) if parser.has_section(SECTION) else {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise AdaptorError(f"{path}: cannot be read: {error}") from None

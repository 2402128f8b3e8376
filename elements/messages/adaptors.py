"""Protocol adaptors for nvmsgbroker's stand-in, by the names of DeepStream's libraries.

What talks to brokers lies above the elements, so it is handed down: `provide` is called by the program when it
registers the elements. Without it (in a bare gst-launch line) the element says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

_LIBRARY = re.compile(r"libnvds_(kafka|mqtt|amqp|redis)_proto\.so")


class AdaptorError(Exception):
    """The broker cannot be reached, or what is needed to talk to it is not there. The text is for the user."""


class Adaptor(Protocol):
    """A connection to a broker."""

    def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Send (key, payload) pairs and wait until the broker has them.

        Raises:
            AdaptorError: it has not taken all of them.
        """

    def close(self) -> None:
        """Let go of it."""


Opener = Callable[[str, str, str, Path | None], Adaptor]
"""Opens a connection: broker, connection string, topic, configuration file. Raises `AdaptorError`."""

_opener: Opener | None = None


def provide(opener: Opener) -> None:
    """Use this to connect, from now on."""
    global _opener
    _opener = opener


def open_adaptor(library: str, connection: str, topic: str, config: Path | None) -> Adaptor:
    """The adaptor that takes the place of one of DeepStream's libraries, connected.

    Raises:
        AdaptorError: see there.
    """
    match = _LIBRARY.fullmatch(Path(library).name)
    if match is None:
        raise AdaptorError(f"there is nothing in place of '{library}' here; known are libnvds_BROKER_proto.so with "
                           "BROKER one of kafka, mqtt, amqp, redis")  # fmt: skip
    if _opener is None:
        raise AdaptorError("the clients of brokers are part of the program: run the pipeline with gstorch")
    return _opener(match[1], connection, topic, config)

"""Durable delivery for one message stage: an outbox, and a process that sends from it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.delivery.broker import broker_class
from pipelines.delivery.connection import Connection
from pipelines.delivery.outbox import Limits, Outbox
from pipelines.delivery.process import Order, SenderProcess
from pipelines.delivery.store import Counters, Message, OutboxError
from pipelines.delivery.upkeep import keep_up, open_for_upkeep
from pipelines.delivery.worker import Backoff

log = logging.getLogger("gstorch.delivery")

WATCH_EVERY_S = 0.5
FLUSH_S = 2.0
DROPS_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How messages leave.

    Attributes:
        connection: the broker.
        outbox: the SQLite file, on a local file system; each message stage has its own.
        limits: what the outbox may hold.
        timeout: seconds that the broker has to answer.
        backoff: pauses after failures.
    """

    connection: Connection
    outbox: Path
    limits: Limits = field(default_factory=Limits)
    timeout: float = 10.0
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True)
class Status:
    """How delivery is doing.

    Attributes:
        broker: its name, for people.
        state: ``starting``, ``connected``, ``waiting`` (between attempts) or ``stopped``.
        error: why it waits, or why the outbox cannot be written; empty when all is well.
        counters: messages made, delivered, queued and dropped, since the outbox was made.
    """

    broker: str
    state: str
    error: str
    counters: Counters


class Delivery:
    """Takes messages from the streaming thread and gets them to the broker.

    Args:
        settings: where to and how.

    Raises:
        MissingLibraryError: the broker's client library is not installed.
        BadOptionError: an option of the connection is wrong.
        OutboxError: the outbox cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        connection = settings.connection
        broker_class(connection.broker)(connection, settings.timeout)  # a wrong option is found here, not in the child
        self._ended = threading.Event()
        self._outbox = Outbox(settings.outbox, settings.limits)
        upkeep = (open_for_upkeep(settings.outbox), settings.outbox, settings.limits.max_age, self._ended)
        self._process = SenderProcess(Order(settings.outbox, connection, settings.timeout, settings.backoff))
        self._told = ("", "")
        self._told_dropped = 0
        self._tell_dropped_after = 0.0
        self._threads = [
            threading.Thread(target=self._watch, name="delivery", daemon=True),
            threading.Thread(target=keep_up, args=upkeep, name="outbox", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def put(self, messages: Sequence[Message]) -> None:
        """Put messages into the outbox, in order; about 30 µs, and 5 to 10 µs for each message. See `Outbox.put`.

        When it returns, they survive the death of this process.
        """
        self._outbox.put(messages)

    def status(self) -> Status:
        """How it is doing.

        Raises:
            OutboxError: the outbox cannot be read.
        """
        state, error, _ = self._outbox.sender_state()
        if not self._process.alive:
            state, error = "stopped", error or "its sender has ended unexpectedly"
        if self._outbox.error:
            error = str(self._outbox.error)
        return Status(self._settings.connection.name, state, error, self._outbox.counters())

    @property
    def sender_pid(self) -> int:
        """The sender's process id."""
        return self._process.pid

    def close(self, timeout: float = 5.0) -> Counters:
        """Send what is queued for at most ``timeout`` seconds, then stop; the rest stays for the next run.

        Returns:
            The counters at the end.

        Raises:
            OutboxError: the outbox cannot be read; everything has been let go of all the same.
        """
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._outbox.flush(FLUSH_S)
        self._process.end(timeout)
        try:
            counters = self._outbox.counters()
        finally:
            self._outbox.close()
        if counters.queued and not self._settings.outbox.exists():
            log.error(
                "%d messages for %s are lost: the outbox '%s' was deleted",
                counters.queued,
                self._settings.connection.name,
                self._settings.outbox,
            )
            lost = counters.dropped.get("unwritten", 0) + counters.queued
            return Counters(counters.made, counters.delivered, {**counters.dropped, "unwritten": lost})
        if counters.queued:
            log.warning(
                "%d messages for %s wait in '%s' for the next run",
                counters.queued,
                self._settings.connection.name,
                self._settings.outbox,
            )
        return counters

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_EVERY_S):
            self._outbox.flush()
            died = self._process.revive()
            if died is not None:
                log.warning(
                    "the sender to %s ended with status %d; started again", self._settings.connection.name, died
                )
            try:
                self._tell(self.status())
            except OutboxError as error:
                self._tell(Status(self._settings.connection.name, "waiting", str(error), Counters(0, 0, {})))

    def _tell(self, status: Status) -> None:
        """Log what has changed, once; drops at most every `DROPS_EVERY_S`."""
        dropped = {reason: n for reason, n in status.counters.dropped.items() if n}
        if sum(dropped.values()) > self._told_dropped and time.monotonic() >= self._tell_dropped_after:
            listed = ", ".join(f"{n} {reason}" for reason, n in dropped.items())
            log.warning("%s: messages dropped since the outbox was made: %s", status.broker, listed)
            self._told_dropped = sum(dropped.values())
            self._tell_dropped_after = time.monotonic() + DROPS_EVERY_S
        now = (status.state, status.error)
        if now == self._told:
            return
        if status.error and status.error != self._told[1]:
            log.warning("%s: %s; %d messages wait", status.broker, status.error, status.counters.queued)
        elif status.state == "connected":
            log.info("%s: connected, %d messages wait", status.broker, status.counters.queued)
        self._told = now

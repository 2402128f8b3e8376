"""The sender: takes messages from the outbox to the broker, for as long as it takes."""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Event

from pipelines.delivery.backlog import Backlog, Queued
from pipelines.delivery.broker import Broker, BrokerError

log = logging.getLogger("gstorch.delivery")

POLL_S = 0.02
IDLE_EVERY_S = 1.0
SETTLE_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts, seconds: doubled each time, up to ``longest``, each shortened at random by up to half.

    The random part keeps many senders from coming back at the same moment.
    """

    first: float = 0.5
    longest: float = 10.0

    def pause(self, failures: int, chance: float) -> float:
        """The pause after this many failures in a row (from 1); ``chance`` is uniform in 0..1."""
        full = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return full * (1 - chance / 2)


class Sender:
    """Connects, sends and settles until told to stop.

    Args:
        backlog: the outbox's far end.
        broker: an adapter that is not connected yet.
        backoff: pauses after failures.
        chance: uniform random numbers in 0..1.
    """

    def __init__(
        self,
        backlog: Backlog,
        broker: Broker,
        backoff: Backoff | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._backlog, self._broker = backlog, broker
        self._backoff, self._chance = backoff or Backoff(), chance
        self._failures = 0
        self._drain_until: float | None = None
        self._stop = Event()

    def stop(self) -> None:
        """End after the batch that is under way."""
        self._stop.set()

    def drain(self, seconds: float) -> None:
        """End when the outbox is empty, or after this time."""
        self._drain_until = time.monotonic() + seconds

    def run(self) -> None:
        """Send until `stop` or `drain`."""
        while not self._finished():
            try:
                self._broker.connect()
                self._backlog.report("connected")
                self._send_all()
            except BrokerError as error:
                self._failures += 1
                self._backlog.report("waiting", self._broker.connection.redact(str(error)))
                self._wait(self._backoff.pause(self._failures, self._chance()))
            finally:
                self._broker.close()
        self._backlog.report("stopped")

    def _send_all(self) -> None:
        next_idle = time.monotonic() + IDLE_EVERY_S
        while not self._finished():
            batch = self._backlog.read()
            if batch:
                self._send(batch)
                self._failures = 0
            else:
                if time.monotonic() >= next_idle:
                    self._broker.idle()
                    next_idle = time.monotonic() + IDLE_EVERY_S
                self._stop.wait(POLL_S)

    def _send(self, batch: Sequence[Queued]) -> None:
        delivered: set[int] = set()
        refused: dict[int, str] = {}
        try:
            for number, refusal in self._broker.send(batch):
                if refusal:
                    refused[number] = refusal
                else:
                    delivered.add(number)
        finally:
            in_order = set(in_order_of_keys(batch, delivered | refused.keys()))
            self._settle(batch, delivered & in_order, refused.keys() & in_order)
            for refusal in set(refused.values()):
                log.error("%s refuses messages: %s", self._broker.connection.name, refusal)
        if len(in_order) < len(batch):
            raise BrokerError("the broker did not acknowledge every message")

    def _settle(self, batch: Sequence[Queued], delivered: set[int], refused: set[int]) -> None:
        # Tried until it works: a full disk must not make the same messages arrive again and again.
        while delivered or refused:
            try:
                return self._backlog.settle(batch, delivered, refused)
            except sqlite3.OperationalError as error:
                log.debug("messages were delivered, but the outbox cannot be written: %s", error)
                if self._stop.wait(SETTLE_AGAIN_S):
                    return None
        return None

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._finished():
            self._stop.wait(min(0.1, seconds))

    def _finished(self) -> bool:
        if self._stop.is_set():
            return True
        if self._drain_until is None:
            return False
        return time.monotonic() >= self._drain_until or self._backlog.is_empty()


def in_order_of_keys(batch: Iterable[Queued], settled: set[int]) -> Iterable[int]:
    """Numbers that may be settled: of each key those before its first message that is not.

    What lies behind that one is sent again with it, so that a key's last copies arrive in order too.
    """
    blocked: set[str] = set()
    for message in batch:
        if message.number in settled and message.key not in blocked:
            yield message.number
        else:
            blocked.add(message.key)

"""The sender's end of the outbox: read the oldest messages, settle their fate."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pipelines.delivery.store import DELIVERED, OwnerLock, count, open_store, outbox_id

BATCH_MESSAGES = 2000
BATCH_BYTES = 4 << 20
SETTLE_MESSAGES = 500
"""Messages settled in one transaction, about 1 ms, during which the pipeline cannot put."""


class Queued(NamedTuple):
    """A message on its way out.

    Attributes:
        number: counts up from 1 in the order in which messages were put.
        id: the same in every attempt and unlike any other message's: receivers drop duplicates by it.
        key: the source's name.
        topic: where it goes.
        payload: the bytes to deliver.
        made: UTC seconds when it was put.
    """

    number: int
    id: str
    key: str
    topic: str
    payload: bytes
    made: float


class Backlog:
    """Used by one thread of one process at a time.

    Args:
        path: the outbox, which must exist.
        clock: UTC seconds.

    Raises:
        OutboxError: it cannot be used, or another sender has it.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = OwnerLock(path, "sender")
        self._connection = open_store(path, create=False)
        # Syncing is the pipeline's upkeep's; a power cut may bring settled messages back, which then arrive twice.
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._prefix = outbox_id(self._connection) + "-"

    def read(self, most: int = BATCH_MESSAGES) -> list[Queued]:
        """The oldest messages in order, at most ``most`` and about `BATCH_BYTES`."""
        messages: list[Queued] = []
        size = 0
        rows = self._connection.execute(
            "SELECT id, key, topic, payload, made FROM messages ORDER BY id LIMIT ?", (most,)
        )
        for number, key, topic, payload, made in rows:
            messages.append(Queued(number, f"{self._prefix}{number}", key, topic, payload, made))
            size += len(payload)
            if size >= BATCH_BYTES:
                break
        rows.close()
        return messages

    def settle(self, batch: Sequence[Queued], delivered: Collection[int], refused: Collection[int] = ()) -> None:
        """Take messages of the batch that was read last out of the outbox and count them.

        Args:
            batch: as read.
            delivered: numbers that the broker has taken.
            refused: numbers that it will never take.
        """
        for start in range(0, len(batch), SETTLE_MESSAGES):
            chunk = batch[start : start + SETTLE_MESSAGES]
            with self._transaction():
                if len(delivered) == len(batch):
                    # One range: numbers only grow, so nothing else can lie between them.
                    removed = self._connection.execute(
                        "DELETE FROM messages WHERE id BETWEEN ? AND ?", (chunk[0].number, chunk[-1].number)
                    ).rowcount
                else:
                    removed = self._remove(m.number for m in chunk if m.number in delivered)
                    count(self._connection, "refused", self._remove(m.number for m in chunk if m.number in refused))
                count(self._connection, DELIVERED, removed)

    def report(self, state: str, error: str = "") -> None:
        """Tell the pipeline what the sender does."""
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk; the pipeline's end tells of it
            self._connection.execute("UPDATE sender SET state = ?, error = ?, since = ?", (state, error, self._clock()))

    def is_empty(self) -> bool:
        """True when nothing waits."""
        return self._connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        self._lock.release()

    def _remove(self, numbers: Iterable[int]) -> int:
        rows = [(number,) for number in numbers]
        return self._connection.executemany("DELETE FROM messages WHERE id = ?", rows).rowcount if rows else 0

    def _transaction(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

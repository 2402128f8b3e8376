"""The pipeline's end of the outbox.

What `Outbox.put` has written survives the death of the process (it is in the kernel's page cache); `upkeep` syncs it
to the disk once a second, so a power cut loses that second at most.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipelines.delivery.store import (
    NEVER_STORED,
    PAGE_BYTES,
    Counters,
    Message,
    OutboxError,
    OwnerLock,
    count,
    explained,
    open_store,
    read_counters,
)

WhenFull = Literal["drop-oldest", "drop-newest"]

BUSY_MS = 10
"""How long a put waits for the sender's transaction, which takes less than that, before it keeps the messages back."""
RETRY_S = 0.25
PATIENCE_S = 1.0
HELD_BYTES = 16 << 20
RESERVE_BYTES = 64 << 20
"""Disk space that is left free: without any the sender could not settle what it has delivered, and nobody else work."""
ROWS_PER_INSERT = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """What an outbox may hold.

    Attributes:
        max_bytes: size of the database's used pages. The outbox counts as full before that when the disk has less than
            `RESERVE_BYTES` left.
        max_age: seconds after which a message is dropped instead of delivered; None: never.
        when_full: which messages go when the outbox is full.
    """

    max_bytes: int = 1 << 30
    max_age: float | None = 7 * 24 * 3600.0
    when_full: WhenFull = "drop-oldest"


class Outbox:
    """Takes messages from the streaming thread: one transaction per call, without waiting for disk or broker.

    Args:
        path: the SQLite file, made if need be.
        limits: what it may hold.
        clock: UTC seconds, written beside each message.

    Raises:
        OutboxError: the file cannot be used, or another pipeline uses it.
    """

    def __init__(self, path: Path, limits: Limits | None = None, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.limits = limits or Limits()
        self._clock = clock
        self._lock = threading.Lock()
        self._held: list[tuple[float, Message]] = []  # not written yet, because the file could not be
        self._held_bytes = 0
        self._uncounted = dict.fromkeys(NEVER_STORED, 0)
        self._retry_at = 0.0
        self._error: OutboxError | None = None
        self._failing_since = 0.0
        connection = open_store(path)
        try:
            self._owner = OwnerLock(path, "pipeline")
            # `upkeep` makes the checkpoints and their syncs: a put never waits for the disk.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("UPDATE sender SET state = 'starting', error = ''")
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        except (OutboxError, sqlite3.Error) as error:
            connection.close()
            raise (explained(error, path) if isinstance(error, sqlite3.Error) else error) from None
        self._connection = connection

    def put(self, messages: Sequence[Message]) -> None:
        """Write messages, in order; best called once per batch of frames. Never raises for a full or broken disk.

        When the file cannot be written, up to `HELD_BYTES` are kept in memory and tried again; what is beyond that is
        counted as dropped (``unwritten``), and `error` says why.
        """
        with self._lock:
            now = self._clock()
            self._held += [(now, message) for message in messages]
            self._held_bytes += sum(map(_size, messages))
            if time.monotonic() >= self._retry_at:
                self._write()
            self._give_up_beyond_limit()

    def flush(self, seconds: float = 0.0) -> None:
        """Write what is kept in memory; tried for at most ``seconds``."""
        until = time.monotonic() + seconds
        while True:
            with self._lock:
                self._write()
                if not self._held or time.monotonic() >= until:
                    return
            time.sleep(0.01)

    @property
    def error(self) -> OutboxError | None:
        """Why the file cannot be written, if that has lasted for more than `PATIENCE_S`."""
        return self._error if time.monotonic() - self._failing_since > PATIENCE_S else None

    def counters(self) -> Counters:
        """Counters of this outbox; what is kept in memory is not made yet.

        Raises:
            OutboxError: the file cannot be read.
        """
        with self._lock:
            try:
                stored = read_counters(self._connection)
            except sqlite3.Error as error:
                raise explained(error, self.path) from None
            dropped = {reason: n + self._uncounted.get(reason, 0) for reason, n in stored.dropped.items()}
            return Counters(stored.made + sum(self._uncounted.values()), stored.delivered, dropped)

    def sender_state(self) -> tuple[str, str, float]:
        """What the sender wrote last: state, error (empty if none), UTC seconds.

        Raises:
            OutboxError: the file cannot be read.
        """
        with self._lock:
            try:
                state, error, since = self._connection.execute("SELECT * FROM sender").fetchone()
            except sqlite3.Error as error:
                raise explained(error, self.path) from None
            return state, error, since

    def close(self) -> None:
        """Let go of the file. What `flush` could not write is lost and counted as dropped (``unwritten``)."""
        with self._lock:
            self._uncounted["unwritten"] += len(self._held)
            self._forget(len(self._held))
            self._write()
            try:
                self._connection.execute("PRAGMA synchronous = FULL")  # closing the last connection is a checkpoint
                self._connection.close()
            except sqlite3.Error as error:
                self._error = explained(error, self.path)
            finally:
                self._owner.release()

    # --- writing (with the lock held) ---------------------------------------------------------------------------------

    def _write(self) -> None:
        try:
            if any(self._uncounted.values()):
                self._write_counts()
            while self._held:
                chunk = self._held[:ROWS_PER_INSERT]
                if self._is_full():
                    if self.limits.when_full == "drop-newest":
                        self._uncounted["newest"] += len(chunk)
                        self._forget(len(chunk))
                        continue
                    self._drop_oldest(2 * len(chunk))
                self._insert(chunk)
                self._forget(len(chunk))
            self._error = None
        except sqlite3.Error as error:
            if self._error is None:
                self._failing_since = time.monotonic()
            self._error = explained(error, self.path)
            if self.error:  # it lasts: not every put waits for it
                self._retry_at = time.monotonic() + RETRY_S

    def _insert(self, rows: list[tuple[float, Message]]) -> None:
        # One statement, so the interpreter's lock is let go of once and not for each row.
        values = itertools.chain.from_iterable((made, *message) for made, message in rows)
        places = ",".join(["(?,?,?,?)"] * len(rows))
        self._connection.execute(
            f"INSERT INTO messages (made, key, topic, payload) VALUES {places}",
            tuple(values),
        )

    def _is_full(self) -> bool:
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        if (pages - free) * PAGE_BYTES >= self.limits.max_bytes:
            return True
        if free * PAGE_BYTES > 2 * self._held_bytes:
            return False  # the file need not grow
        disk = os.fstatvfs(self._owner.fileno())
        return disk.f_bavail * disk.f_frsize < RESERVE_BYTES

    def _drop_oldest(self, number: int) -> None:
        with self._transaction():
            cursor = self._connection.execute(
                "DELETE FROM messages WHERE id IN (SELECT id FROM messages ORDER BY id LIMIT ?)", (number,)
            )
            count(self._connection, "oldest", cursor.rowcount)

    def _write_counts(self) -> None:
        with self._transaction():
            for reason, amount in self._uncounted.items():
                count(self._connection, reason, amount)
        self._uncounted = dict.fromkeys(NEVER_STORED, 0)

    def _transaction(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _forget(self, number: int) -> None:
        if number == len(self._held):
            self._held, self._held_bytes = [], 0
        else:
            self._held_bytes -= sum(_size(message) for _, message in self._held[:number])
            del self._held[:number]

    def _give_up_beyond_limit(self) -> None:
        while self._held_bytes > HELD_BYTES:
            number = len(self._held) // 10 + 1
            self._uncounted["unwritten"] += number
            self._forget(number)


def _size(message: Message) -> int:
    return len(message.payload) + 200  # the objects around it

"""Keeps the outbox's file on the disk and small, in a thread that neither the video nor the sender waits for."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

from pipelines.delivery.store import count, open_store

log = logging.getLogger("gstorch.delivery")

LOOK_EVERY_S = 0.2
SYNC_EVERY_S = 1.0
WAL_BYTES = 8 << 20
"""Above this the write-ahead log is synced at once and started anew; writers are kept out for the length of a sync."""
VACUUM_PAGES = 2000
EXPIRE_ROWS = 2000


def open_for_upkeep(path: Path) -> sqlite3.Connection:
    """A connection for `keep_up`.

    Raises:
        OutboxError: the file cannot be used.
    """
    connection = open_store(path, create=False)
    connection.execute("PRAGMA synchronous = NORMAL")  # a checkpoint syncs, a commit does not
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def keep_up(connection: sqlite3.Connection, path: Path, max_age: float | None, stop: threading.Event) -> None:
    """Sync, expire and shrink about once a second until ``stop`` is set; run it in a thread of its own.

    Args:
        connection: of `open_for_upkeep`; closed at the end.
        path: the outbox.
        max_age: seconds after which messages are dropped, or None.
    """
    wal = path.with_name(f"{path.name}-wal")
    synced = time.monotonic()
    while not stop.wait(LOOK_EVERY_S):
        try:
            if time.monotonic() < synced + SYNC_EVERY_S and wal.stat().st_size < WAL_BYTES:
                continue
            synced = time.monotonic()
            if max_age is not None:
                expire(connection, time.time() - max_age)
            _sync(connection, wal)
            _shrink(connection)
        except sqlite3.Error as error:
            log.debug("upkeep of '%s': %s", path, error)  # a full or broken disk: the pipeline's end reports it
        except FileNotFoundError:
            log.error("outbox '%s' was deleted while it was in use: what is put now ends with this process", path)
            break
    connection.close()


def expire(connection: sqlite3.Connection, before: float) -> None:
    """Drop messages that were made before this time (UTC seconds)."""
    expired = EXPIRE_ROWS
    while expired == EXPIRE_ROWS:
        oldest = connection.execute("SELECT made FROM messages ORDER BY id LIMIT 1").fetchone()
        if oldest is None or oldest[0] >= before:
            return
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            expired = connection.execute(
                "DELETE FROM messages WHERE id IN (SELECT id FROM messages ORDER BY id LIMIT ?) AND made < ?",
                (EXPIRE_ROWS, before),
            ).rowcount
            count(connection, "expired", expired)


def _sync(connection: sqlite3.Connection, wal: Path) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    if wal.stat().st_size >= WAL_BYTES:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _shrink(connection: sqlite3.Connection) -> None:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free and connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is None:
        # Not execute(): that would free the first page only.
        connection.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")

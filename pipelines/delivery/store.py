"""The outbox's file: a SQLite database in WAL mode that the pipeline fills and the sender empties.

Whatever moves a message also moves its counter, in the same transaction, so after any crash
``made == delivered + queued + dropped``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

APPLICATION_ID = 0x6753744F  # "gStO": tells an outbox from other SQLite files
SCHEMA_VERSION = 1
PAGE_BYTES = 4096
PATIENCE_S = 5.0
"""How long somebody else's lock is waited for, outside the streaming thread."""
SCHEMA = """
CREATE TABLE outbox (id TEXT NOT NULL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, made REAL NOT NULL, key TEXT NOT NULL, topic TEXT NOT NULL,
    payload BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sender (state TEXT NOT NULL, error TEXT NOT NULL, since REAL NOT NULL);
INSERT INTO sender VALUES ('starting', '', 0);
"""

DELIVERED = "delivered"
DROPPED = ("oldest", "newest", "expired", "refused", "unwritten")
"""Why messages were dropped: the outbox was full (``oldest``, ``newest``: which ones went), too old, refused by the
broker for good, or the outbox could not be written."""
NEVER_STORED = ("newest", "unwritten")


class OutboxError(Exception):
    """The outbox cannot be used; the message names the file and says what to do."""


class Message(NamedTuple):
    """What the pipeline hands over.

    Attributes:
        key: the source's name; messages of one key arrive in order.
        topic: where it goes (topic, routing key, stream or subject; unused by webhook and file).
        payload: the bytes to deliver.
    """

    key: str
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Counters:
    """Messages since the outbox was made, across restarts: ``made == delivered + queued + sum(dropped.values())``."""

    made: int
    delivered: int
    dropped: dict[str, int]

    @property
    def queued(self) -> int:
        """Messages that wait on disk."""
        return self.made - self.delivered - sum(self.dropped.values())


def open_store(path: Path, create: bool = True) -> sqlite3.Connection:
    """Open an outbox file in autocommit mode.

    Args:
        path: the database; its folder is made if need be.
        create: make a new outbox where there is none.

    Raises:
        OutboxError: folder or file cannot be written, is damaged, or is no outbox of this version.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=PATIENCE_S,
        )
    except (OSError, sqlite3.Error) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise OutboxError(
            f"cannot write the outbox '{path}': {reason}; make its folder writable or choose another one"
        ) from None
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise explained(error, path) from None
    except OutboxError:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if tables and (application != APPLICATION_ID or version != SCHEMA_VERSION):
        raise OutboxError(f"'{path}' is a database but no outbox of this version of gstorch; choose another path")
    if not tables:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE; {SCHEMA} INSERT INTO outbox VALUES ('{secrets.token_hex(6)}');"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )


def outbox_id(connection: sqlite3.Connection) -> str:
    """The random name of an outbox file; with a message's number it makes an id that no other message has."""
    return str(connection.execute("SELECT id FROM outbox").fetchone()[0])


def read_counters(connection: sqlite3.Connection) -> Counters:
    """The counters as of the last committed transaction."""
    stored, values = connection.execute(
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'messages'),"
        " (SELECT group_concat(name || ' ' || value, ';') FROM counters)"
    ).fetchone()
    counts = {name: int(value) for name, value in (entry.split() for entry in (values or "").split(";") if entry)}
    dropped = {reason: counts.get(reason, 0) for reason in DROPPED}
    made = (stored or 0) + sum(dropped[reason] for reason in NEVER_STORED)
    return Counters(made, counts.get(DELIVERED, 0), dropped)


def count(connection: sqlite3.Connection, name: str, amount: int) -> None:
    """Add to a counter; part of the open transaction."""
    if amount:
        connection.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            (name, amount),
        )


def explained(error: sqlite3.Error, path: Path) -> OutboxError:
    """The error with the file's name and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    advice = {
        sqlite3.SQLITE_FULL: "the disk is full; make room",
        sqlite3.SQLITE_BUSY: "another process holds it locked; end what else has it open",
        sqlite3.SQLITE_CORRUPT: _damaged(path),
        sqlite3.SQLITE_NOTADB: _damaged(path),
        sqlite3.SQLITE_READONLY: "it cannot be written; check its owner, its folder and the file system",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check its owner, its folder and the file system",
        sqlite3.SQLITE_IOERR: "its disk fails; check the system's log",
    }.get(code, "check the file and its disk")
    return OutboxError(f"outbox '{path}': {error}: {advice}")


def _damaged(path: Path) -> str:
    return (
        "the file is damaged; move it away to go on with an empty outbox "
        f"(`sqlite3 '{path}' .recover` gets messages out of it)"
    )


class OwnerLock:
    """One owner per outbox and role, until it lets go or dies.

    Args:
        path: the outbox.
        role: ``pipeline`` or ``sender``.

    Raises:
        OutboxError: another process has it; names its process id.
    """

    def __init__(self, path: Path, role: str) -> None:
        lock = path.with_name(f"{path.name}.{role}")
        try:
            self._file: IO[str] = lock.open("a+")
        except OSError as error:
            raise OutboxError(f"cannot write '{lock}': {error.strerror}; make its folder writable") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise OutboxError(
                f"outbox '{path}' is in use by another {role} (process {owner}); end it or give each its own outbox"
            ) from None
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the number too
            os.ftruncate(self._file.fileno(), 0)
            os.write(self._file.fileno(), str(os.getpid()).encode())

    def fileno(self) -> int:
        """The lock's file, which lies beside the outbox."""
        return self._file.fileno()

    def release(self) -> None:
        """Let the next owner in."""
        self._file.close()

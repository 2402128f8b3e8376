"""JSON Lines in a file, rotated by size."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import Broker, BrokerError, Receipt, all_delivered, envelope
from pipelines.delivery.connection import Connection


class File(Broker):
    """One line per message (see `envelope`), synced to the disk before it counts as delivered.

    Options: ``rotate_mb`` (100): size at which the file becomes ``NAME.1``, that ``NAME.2``, and so on;
    ``keep`` (10): how many of those stay.
    """

    NAME = "file"
    OPTIONS = ("rotate_mb", "keep")

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._path = Path(connection.path)
        self._limit = self.number_option("rotate_mb", 100, 1, 1_000_000) << 20
        self._keep = self.number_option("keep", 10, 1, 10_000)
        self._file: BinaryIO | None = None

    def connect(self) -> None:
        """Open the file; a line that a crash left unfinished is cut off (its message comes again)."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _unbuffered(self._path)
            _cut_unfinished_line(self._path)
        except OSError as error:
            raise BrokerError(f"cannot write '{self._path}': {error.strerror}") from None

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """Append, sync, rotate."""
        assert self._file is not None
        try:
            lines = memoryview(b"".join(envelope(message) + b"\n" for message in messages))
            while lines:
                lines = lines[self._file.write(lines) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise BrokerError(f"cannot write '{self._path}': {error.strerror}") from None
        yield from all_delivered(messages)
        if self._file.tell() >= self._limit:
            self._rotate()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what could not be written was not acknowledged
                self._file.close()
            self._file = None

    def _rotate(self) -> None:
        assert self._file is not None
        try:
            self._file.close()
            for number in range(self._keep - 1, 0, -1):
                older = self._path.with_name(f"{self._path.name}.{number}")
                if older.exists():
                    older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._file = _unbuffered(self._path)
        except OSError as error:
            raise BrokerError(f"cannot rotate '{self._path}': {error.strerror}") from None


def _unbuffered(path: Path) -> BinaryIO:
    return cast(BinaryIO, path.open("ab", buffering=0))


def _cut_unfinished_line(path: Path) -> None:
    with path.open("rb+") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)

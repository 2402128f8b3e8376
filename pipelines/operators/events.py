"""The event file: one JSON object per line and frame (configs/schema/event.schema.json)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from elements.base import ElementError
from pipelines.operators.base import Operator, Report
from pipelines.operators.event_lines import EventLines

_BUFFER = 1 << 18  # bytes; a batch is one write to the file


class EventWriter(Operator):
    """Writes a line for every frame, also without objects. Places are in source-frame pixels.

    Args:
        path: the file, or an open stream, which is not closed.
        report: see `Operator`.

    The other arguments are those of `EventLines`.
    """

    def __init__(
        self,
        path: str | TextIO,
        pipeline: str,
        sources: Sequence[str],
        padding: bool,
        report: Report,
        mux_size: tuple[int, int] | None = None,
        embeddings: bool = False,
    ) -> None:
        super().__init__(report)
        self._maker = EventLines(pipeline, sources, padding, mux_size, embeddings)
        self._path = path
        try:
            self._file = Path(path).open("w", _BUFFER, encoding="utf-8") if isinstance(path, str) else path  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from None

    def process(self, batch_meta: Any) -> None:
        """Write the frames of one batch; flushed per batch, so that a killed process loses none that it finished."""
        lines = self._maker.lines_of(batch_meta.frame_items)
        try:
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as error:
            raise self._cannot_write(error) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not self._path:
            with contextlib.suppress(OSError):  # every batch was flushed; what is left is what failed and was reported
                self._file.close()

    def _cannot_write(self, error: OSError) -> ElementError:
        where = f"the event file '{self._path}'" if isinstance(self._path, str) else "events to standard output"
        return ElementError(f"cannot write {where}: {error.strerror}")

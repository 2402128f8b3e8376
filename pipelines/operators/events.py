"""The event file: one JSON object per line and frame (configs/schema/event.schema.json)."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from elements.base import ElementError
from pipelines.operators.base import Operator, Report
from pipelines.operators.frame_event import EventMaker

_BUFFER = 1 << 18  # bytes; a batch is one write to the file


class EventWriter(Operator):
    """Writes a line for every frame, also without objects. Places are in source-frame pixels.

    Args:
        path: the file, or an open stream, which is not closed.
        report: see `Operator`.

    The other arguments are those of `EventMaker`.
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
        self._maker = EventMaker(pipeline, sources, padding, mux_size, embeddings)
        self._path = path
        try:
            self._file = Path(path).open("w", _BUFFER, encoding="utf-8") if isinstance(path, str) else path  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from None

    def process(self, batch_meta: Any) -> None:
        """Write the frames of one batch; flushed per batch, so that a killed process loses none that it finished."""
        lines = [json_line(event) for event in self._maker.events_of(batch_meta.frame_items)]
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


def json_line(event: dict[str, Any]) -> str:
    """An event as a line of strict JSON. What others attached may hold NaN or infinity: null, then."""
    try:
        return _encode(event) + "\n"
    except ValueError:
        return _encode(_strict(event)) + "\n"


def _encoder() -> Callable[[Any], str]:
    """Strict JSON. ``JSONEncoder.encode`` sets up for each text what serves for all; for a frame that takes longest."""
    strict = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return strict.encode
    text_of = json.encoder.encode_basestring
    parts = make(None, strict.default, text_of, None, strict.key_separator, strict.item_separator, False, False, False)
    return lambda event: "".join(parts(event, 0))


_encode = _encoder()


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

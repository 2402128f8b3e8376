"""The event file: one JSON object per line and frame (configs/schema/event.schema.json)."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from elements.base import ElementError
from elements.metadata.edit import find_jsons
from elements.metadata.placement import Placement
from pipelines.operators.base import Operator, Report
from pipelines.operators.clock import utc_text
from pipelines.operators.event_objects import ANALYTICS, frame_objects

MODELS = "models"  # JSON of a frame: version of the model by stage
EVENTS = "events"  # JSON of a frame: what operators report


class EventWriter(Operator):
    """Writes a line for every frame, also without objects. Places are in source-frame pixels.

    Args:
        path: the file, or an open stream, which is not closed.
        pipeline: the definition's name.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding (else it stretches).
        report: see `Operator`.
        mux_size: (width, height) of the mux in pixels, for frames that do not tell it: DeepStream forgets it where it
            copies a batch.
        embeddings: whether to write the objects' embeddings.
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
        self._pipeline, self._sources, self._padding = pipeline, sources, padding
        self._mux_size, self._embeddings = mux_size, embeddings
        self._path = path
        try:
            self._file = Path(path).open("w", encoding="utf-8") if isinstance(path, str) else path  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from None

    def process(self, batch_meta: Any) -> None:
        """Write the frames of one batch; flushed per batch, so that a killed process loses none that it finished."""
        events = [self._event(frame) for frame in batch_meta.frame_items]
        lines = [_line(event) for event in events]
        try:
            self._file.writelines(lines)
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

    def _event(self, frame: Any) -> dict[str, Any]:
        source = (frame.source_width, frame.source_height)
        mux = (frame.pipeline_width, frame.pipeline_height)
        if not all(mux):
            mux = self._mux_size or source
        return {
            "pipeline": self._pipeline,
            "source": self._sources[frame.source_id],
            "source_id": frame.source_id,
            "frame": frame.frame_number,
            "stream_time_s": round(frame.buffer_pts / 1e9, 6),
            "time_utc": utc_text(frame.ntp_timestamp),
            "width": source[0],
            "height": source[1],
            **find_jsons(frame, (MODELS, ANALYTICS, EVENTS)),
            "objects": frame_objects(frame, _placement(source, tuple(mux), self._padding), self._embeddings),
        }


def _line(event: dict[str, Any]) -> str:
    """Strict JSON. What others attached may hold NaN or infinity: null, then."""
    try:
        return json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_strict(event), ensure_ascii=False, allow_nan=False) + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@lru_cache(maxsize=64)
def _placement(source: tuple[int, int], mux: tuple[int, int], padding: bool) -> Placement:
    return Placement.of(source, mux, padding)

"""Events as text: lines of strict JSON (configs/schema/event.schema.json)."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from elements.metadata.edit import find_json_texts
from elements.metadata.utc import utc_text
from pipelines.operators.event_objects import ObjectEntries
from pipelines.operators.exchange import MODELS
from pipelines.operators.frame_event import ATTACHED, EventMaker, stream_time


class EventLines(EventMaker):
    """What `EventMaker.events_of` gives, encoded, in a third of the time: what many frames share is encoded once.

    What others attached may hold NaN or infinity: null, then.
    """

    def lines_of(self, frames: Iterable[Any]) -> list[str]:
        """A line per frame, with its end."""
        entries = self._entries()
        read = [self._read(frame, entries) for frame in frames]
        entries.place()
        return [f'{start}, "objects": {_encode(objects) if objects else "[]"}}}\n' for start, objects in read]

    def _read(self, frame: Any, entries: ObjectEntries) -> tuple[str, list[dict[str, Any]]]:
        """The line up to the objects, and these, still without their places."""
        source_id = frame.source_id
        placement = self._placement(frame)
        start = (
            f'{_source(self._pipeline, self._sources[source_id], source_id)}, "frame": {frame.frame_number}, '
            f'"stream_time_s": {_stream_time(frame.buffer_pts)}, "time_utc": {_time_utc(frame.ntp_timestamp)}, '
            f'"width": {placement.source_width}, "height": {placement.source_height}{_attached(frame)}'
        )
        return start, entries.read(frame, placement)


def _attached(frame: Any) -> str:
    texts = find_json_texts(frame, ATTACHED).items()
    return "".join([f', "{name}": {(_models if name == MODELS else _again)(text)}' for name, text in texts])


def _encoder() -> Callable[[Any], str]:
    """Strict JSON. ``JSONEncoder.encode`` sets up for each text what serves for all; for a frame that takes longest."""
    strict = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return strict.encode
    text_of = json.encoder.encode_basestring
    parts = make(None, strict.default, text_of, None, strict.key_separator, strict.item_separator, False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode_finite = _encoder()


def _encode(value: Any) -> str:
    try:
        return _encode_finite(value)
    except ValueError:
        return _encode_finite(_strict(value))


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _again(text: str) -> str:
    """JSON as we write it."""
    return _encode(json.loads(text))


_models = functools.lru_cache(256)(_again)  # all frames have the same until a model is exchanged


@functools.lru_cache(1024)
def _source(pipeline: str, name: str, source_id: int) -> str:
    """The line's beginning, the same for all frames of a source."""
    return _encode({"pipeline": pipeline, "source": name, "source_id": source_id})[:-1]


@functools.lru_cache(64)  # as in `utc_text`: files that advance together have the same time, too
def _stream_time(nanoseconds: int) -> str:
    return repr(stream_time(nanoseconds))


@functools.lru_cache(64)
def _time_utc(nanoseconds: int) -> str:
    return _encode(utc_text(nanoseconds))

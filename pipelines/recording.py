"""A recorded event file as frames to run again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from elements.metadata.detections import Detections
from elements.metadata.rle import decode
from pipelines.scripted import ScriptedFrame

CONTINUED = -0.1  # confidence of an object that only the tracker continued, as nvtracker writes it
MOST_PIXELS, MOST_FRAMES, MOST_SECONDS, MOST_CLASSES = 1e6, 2**31 - 1, 1e9, 2**31  # what metadata can hold, and more


class ReplayError(ValueError):
    """The event file cannot be run again. The text names file and line, and what to do."""


def frames_of(path: Path, sources: Sequence[str]) -> Iterator[ScriptedFrame]:
    """The frames of an event file, in its order.

    What operators and analytics found when it was recorded is left out: they find it again.

    Args:
        path: the event file.
        sources: names of the sources; their positions are the source ids.

    Raises:
        ReplayError: if the file cannot be read, or a line is no event of one of the sources.
    """
    ids = {name: source_id for source_id, name in enumerate(sources)}
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _frame(line, f"{path}:{number}", ids)
    except OSError as error:
        raise ReplayError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ReplayError(
            f"{path}: is not UTF-8 text: name an event file as `gstorch run` writes it (unpack a compressed one first)"
        ) from None


def _frame(line: str, where: str, ids: Mapping[str, int]) -> ScriptedFrame:
    try:
        event = json.loads(line)
        source = event["source"]
        if source not in ids:
            known = ", ".join(ids)
            raise ReplayError(
                f"{where}: the definition has no source '{source}' (it has: {known}): add it, or rename one"
            )
        return _scripted(event, ids[source])
    except json.JSONDecodeError as error:
        raise ReplayError(f"{where}: is not JSON: {error.msg} (was it cut off? remove the line)") from None
    except KeyError as error:
        raise ReplayError(f"{where}: is not a line of an event file: it lacks {error}") from None
    except ReplayError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ReplayError(f"{where}: is not a line of an event file: {error}") from None


def _scripted(event: Mapping[str, Any], source_id: int) -> ScriptedFrame:
    items = [item for item in event["objects"] if None not in item["bbox"]]
    size = _within("width", event["width"], 1, MOST_PIXELS), _within("height", event["height"], 1, MOST_PIXELS)
    return ScriptedFrame(
        objects=_objects(items),
        labels=[_label(item["label"]) for item in items],
        source_id=source_id,
        parents=_parents(event["objects"], items),
        number=int(_within("frame", event["frame"], 0, MOST_FRAMES)),
        time_s=_within("stream_time_s", event["stream_time_s"], 0, MOST_SECONDS),
        time_utc_ns=_nanoseconds(event["time_utc"]),
        size=(int(size[0]), int(size[1])),
        data={"models": event["models"]} if "models" in event else {},
    )


def _parents(listed: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Places of the parents among those ``kept`` of the objects ``listed``."""
    places = {id(item): place for place, item in enumerate(kept)}
    parents = [item.get("parent") for item in kept]
    of_listed = [None if p is None else listed[int(_within("parent", p, 0, len(listed) - 1))] for p in parents]
    return [places.get(id(item)) for item in of_listed]


def _objects(items: Sequence[Mapping[str, Any]]) -> Detections:
    def column(key: str, absent: Any) -> list[Any]:
        return [absent if item.get(key) is None else item[key] for item in items]

    def finite(key: str, absent: float) -> list[Any]:
        return [_within(key, value, -MOST_PIXELS, MOST_PIXELS) for value in column(key, absent)]

    def some(key: str) -> bool:
        return any(key in item for item in items)

    return Detections(
        np.array([_box(item["bbox"]) for item in items], np.float32).reshape(-1, 4),
        np.array(finite("confidence", CONTINUED), np.float32),
        np.array([_within("class_id", value, 0, MOST_CLASSES - 1) for value in column("class_id", 0)], np.int64),
        angles=np.array(finite("angle", 0.0), np.float32) if some("angle") else None,
        masks=_masks(items),
        keypoints=_keypoints(column("keypoints", [])) if some("keypoints") else None,
        track_ids=np.array([_track(value) for value in column("track_id", -1)], np.int64),
        attributes=[
            {name: {key: value for key, value in label.items() if key != "more"} for name, label in found.items()}
            for found in column("attributes", {})
        ],
    )


def _within(key: str, value: Any, least: float, most: float) -> float:
    """The number, if it is one in this range (NaN is in none)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{key} is not a number from {least:g} to {most:g}")
    return value


def _box(bbox: Sequence[Any]) -> list[float]:
    if len(bbox) != 4:
        raise ValueError("bbox is not [x1, y1, x2, y2]")
    return [_within("bbox", value, -MOST_PIXELS, MOST_PIXELS) for value in bbox]


def _track(value: Any) -> int:
    """-1 for what DeepStream writes for an untracked object, too."""
    track = int(value)
    return track if track < 2**63 else -1


def _label(value: Any) -> str:
    text = str(value)
    text.encode()  # raises UnicodeEncodeError, a ValueError
    return text


def _masks(items: Sequence[Mapping[str, Any]]) -> Any:
    """(N, height, width), cut to the boxes by `Detections`; ``None`` if an object has none."""
    if not items or not all("mask" in item for item in items):
        return None
    return np.stack([decode(item["mask"]) for item in items])


def _keypoints(rows: Sequence[Sequence[Sequence[float | None]]]) -> np.ndarray:
    """(N, K, 3), NaN where a point or an object has none."""
    result = np.full((len(rows), max(map(len, rows)), 3), np.nan, np.float32)
    for row, points in enumerate(rows):
        if points:
            result[row, : len(points)] = np.array(points, np.float32)
    return result


def _nanoseconds(text: str | None) -> int:
    return 0 if text is None else round(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000

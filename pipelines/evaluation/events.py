"""Event files (configs/schema/event.schema.json), as predictions or as truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from elements.metadata.rle import decode
from pipelines.evaluation.annotations import (
    UNTRACKED,
    Annotations,
    EvaluationError,
    Mask,
    Points,
    Row,
    Sequence,
    read_text,
)
from pipelines.evaluation.values import finite, parsed, text, whole


def read_events(path: Path) -> Annotations:
    """Read an event file (JSON Lines). Sequences are its sources.

    An object that the tracker continued without a detection (confidence ``null``) gets score 0: it counts for tracks,
    and comes last among the detections. An ``ignore`` of true is understood on objects of a truth.

    Raises:
        EvaluationError: with file and line, for a line that is no event, or a frame that is there twice.
    """
    result = Annotations(str(path))
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            event = parsed(line)
        except json.JSONDecodeError as error:
            raise EvaluationError(f"{where}: not a line of JSON: {error.msg} (column {error.colno})") from error
        try:
            _add(result, event)
        except EvaluationError as error:
            raise EvaluationError(f"{where}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvaluationError(f"{where}: not an event: {_reason(error)}") from error
    if not result.sequences:
        raise EvaluationError(f"{path}: has no events")
    return result


def _add(result: Annotations, event: dict[str, Any]) -> None:
    size = whole(event["width"]), whole(event["height"])
    source = text(event["source"], "source")
    sequence = result.sequences.setdefault(source, Sequence(size=size))
    if sequence.size != size:
        raise EvaluationError(f"source '{source}' changes its size from {sequence.size} to {size}")
    frame = whole(event["frame"])
    if frame in sequence.frames:
        raise EvaluationError(f"frame {frame} of source '{source}' is there for the second time")
    sequence.frames[frame] = [_row(item) for item in event["objects"] if None not in item["bbox"]]


def _row(item: dict[str, Any]) -> Row:
    x1, y1, x2, y2 = map(finite, item["bbox"])
    score, track = item.get("confidence", 1.0), item.get("track_id")
    return Row(
        str(item["label"]),
        (x1, y1, x2, y2),
        0.0 if score is None else finite(score),
        UNTRACKED if track is None else whole(track),
        finite(item.get("angle", 0.0)),
        bool(item.get("ignore", False)),
        mask_of(item["mask"]) if item.get("mask") else None,
        _keypoints(item["keypoints"]) if item.get("keypoints") else None,
    )


def _keypoints(points: list[list[float | None]]) -> Points:
    return np.array([[np.nan if value is None else finite(value) for value in point] for point in points]).reshape(
        -1, 3
    )


def mask_of(rle: dict[str, Any]) -> Mask:
    """The mask of COCO's run lengths, cut to its pixels.

    Raises:
        ValueError: if the runs do not fill the frame.
    """
    counts = rle["counts"]
    if isinstance(counts, str):
        pixels = decode(rle)
    else:
        height, width = rle["size"]
        if sum(counts) != height * width:
            raise ValueError(f"the runs fill {sum(counts)} pixels, not {height} x {width}")
        pixels = np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return Mask(0, 0, np.zeros((0, 0), bool))
    x, y = int(columns[0]), int(rows[0])
    return Mask(x, y, pixels[y : rows[-1] + 1, x : columns[-1] + 1].copy())


def _reason(error: Exception) -> str:
    return f"the key {error} is missing" if isinstance(error, KeyError) else str(error)

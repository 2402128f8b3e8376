"""The event file: one JSON object per line and frame (configs/schema/event.schema.json)."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from elements.base import ElementError
from elements.metadata.placement import Placement
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from pipelines.operators.base import Operator, Report


class EventWriter(Operator):
    """Writes a line for every frame, also without objects. Boxes are in source-frame pixels.

    Args:
        path: the file, or an open stream, which is not closed.
        pipeline: the definition's name.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding (else it stretches).
        report: see `Operator`.
    """

    def __init__(
        self, path: str | TextIO, pipeline: str, sources: Sequence[str], padding: bool, report: Report
    ) -> None:
        super().__init__(report)
        self._pipeline, self._sources, self._padding = pipeline, sources, padding
        self._path = path
        try:
            self._file = Path(path).open("w", encoding="utf-8") if isinstance(path, str) else path  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from None

    def process(self, batch_meta: Any) -> None:
        """Write the frames of one batch; flushed per batch, so that a killed process loses none that it finished."""
        events = [self._event(frame) for frame in batch_meta.frame_items]
        lines = [json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n" for event in events]
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
        mux = (frame.pipeline_width or source[0], frame.pipeline_height or source[1])
        return {
            "pipeline": self._pipeline,
            "source": self._sources[frame.source_id],
            "source_id": frame.source_id,
            "frame": frame.frame_number,
            "stream_time_s": round(frame.buffer_pts / 1e9, 6),
            "time_utc": _utc(frame.ntp_timestamp),
            "width": source[0],
            "height": source[1],
            "objects": frame_objects(frame, _placement(source, mux, self._padding)),
        }


def frame_objects(frame: Any, placement: Placement) -> list[dict[str, Any]]:
    """The frame's objects as event entries, in the order in which they were added.

    Args:
        frame: pyservicemaker's FrameMetadata.
        placement: maps the frame's mux pixels to source pixels.
    """
    found = []
    boxes = []
    for item in frame.object_items:
        rect = item.rect_params
        boxes.append((rect.left, rect.top, rect.left + rect.width, rect.top + rect.height))
        found.append(
            {
                "bbox": None,
                "class_id": int(item.class_id),
                "label": item.label,
                "confidence": _confidence(item.confidence),
                "track_id": None if item.object_id == UNTRACKED_OBJECT_ID else int(item.object_id),
                **({"angle": round(math.radians(rect.rotation_angle), 5)} if rect.rotation_angle else {}),
            }
        )
    if not found:
        return []
    in_source = placement.to_source(np.array(boxes, np.float32))
    for entry, box in zip(found, in_source, strict=True):
        if "angle" in entry:
            entry["corners"] = rotated_corners(box, entry["angle"])
        else:
            limits = (placement.source_width, placement.source_height) * 2
            box = np.clip(box, 0, limits)
        entry["bbox"] = _numbers(box)
    return found[::-1]


def rotated_corners(box: np.ndarray, angle: float) -> list[list[float | None]]:
    """Corners of an xyxy box turned clockwise (on the screen) by ``angle`` radians about its centre."""
    x1, y1, x2, y2 = (float(v) for v in box)
    centre = np.array([(x1 + x2) / 2, (y1 + y2) / 2])
    cos, sin = math.cos(angle), math.sin(angle)
    corners = (np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]]) - centre) @ np.array([[cos, sin], [-sin, cos]])
    return [_numbers(corner + centre) for corner in corners]


def _numbers(values: Any) -> list[float | None]:
    return [round(float(v), 2) if math.isfinite(v) else None for v in values]


def _confidence(value: float) -> float | None:
    """``None`` where the tracker continued the object without a detection (it writes -0.1), and for NaN."""
    return round(float(value), 4) if value >= 0 else None


def _utc(nanoseconds: int) -> str | None:
    if not nanoseconds or nanoseconds >= 2**63:
        return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=64)
def _placement(source: tuple[int, int], mux: tuple[int, int], padding: bool) -> Placement:
    return Placement.of(source, mux, padding)

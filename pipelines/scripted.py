"""Frames that come from a script instead of a video: for tests of operators, and to run recorded events again."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elements.metadata.detections import Detections


@dataclass(slots=True)
class ScriptedFrame:
    """One frame with what is to be found in it. Places are source-frame pixels.

    Attributes:
        objects: see `Detections`; ``track_ids`` of -1 or none at all: not tracked.
        labels: a class name per object.
        source_id: number of the source.
        number: of the frame, from 0 per source.
        time_s: seconds of stream time.
        time_utc_ns: UTC, nanoseconds since 1970; 0: not known.
        size: (width, height) of the source's picture.
        component_ids: which model found each object; default: 1.
        parents: place of the object in which each one was found; ``None`` or none at all: it was found in the frame.
        data: JSON on the frame, by name.
        object_data: JSON on each object, by name.
    """

    objects: Detections = field(default_factory=Detections)
    labels: Sequence[str] = ()
    source_id: int = 0
    number: int = 0
    time_s: float = 0.0
    time_utc_ns: int = 0
    size: tuple[int, int] = (1920, 1080)
    component_ids: Sequence[int] = ()
    parents: Sequence[int | None] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    object_data: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for what, rows in (
            ("labels", self.labels),
            ("component_ids", self.component_ids),
            ("parents", self.parents),
            ("object_data", self.object_data),
        ):
            if len(rows) != len(self.objects) and (rows or what == "labels"):
                raise ValueError(f"{len(self.objects)} objects need as many {what}, not {len(rows)}")


def use_portable_api() -> Any:
    """The portable pyservicemaker, also for `import pyservicemaker` in operators, unless another one is in use."""
    from elements.api import API, PORTABLE_API
    from elements.base import Gst

    if API not in sys.modules:
        Gst.init(None)
        sys.modules[API] = importlib.import_module(PORTABLE_API)
    if sys.modules[API].__name__ != PORTABLE_API:
        raise RuntimeError("scripted frames need the portable runtime, but this process has loaded NVIDIA's")
    return sys.modules[API]


def batch_of(frames: Sequence[ScriptedFrame], mux: tuple[int, int] | None = None, padding: bool = False) -> Any:
    """A batch as operators get it (the portable pyservicemaker's BatchMetadata), without pictures.

    Args:
        frames: of the batch.
        mux: (width, height) of the batched frames; default: as large as the source's.
        padding: whether the mux keeps the aspect ratio by padding.
    """
    api = use_portable_api()
    from elements.metadata.edit import attach_json
    from elements.metadata.placement import Placement
    from elements.metadata.writer import write_detections
    from elements.portable.meta import BatchMeta, FrameMeta
    from elements.portable.pyservicemaker.metadata import BatchMetadata

    metas = []
    for index, frame in enumerate(frames):
        width, height = mux or frame.size
        metas.append(
            FrameMeta(
                pad_index=frame.source_id,
                source_id=frame.source_id,
                batch_id=index,
                frame_number=frame.number,
                buffer_pts=round(frame.time_s * 1e9),
                ntp_timestamp=frame.time_utc_ns,
                source_width=frame.size[0],
                source_height=frame.size[1],
                pipeline_width=width,
                pipeline_height=height,
                infer_done=True,
            )
        )
    batch = BatchMetadata(BatchMeta(len(frames), metas))
    for index, (frame, meta) in enumerate(zip(frames, batch.frame_items, strict=True)):
        placement = Placement.of(frame.size, mux or frame.size, padding)
        for row in range(len(frame.objects)):
            one = frame.objects[[row]]
            component = frame.component_ids[row] if len(frame.component_ids) else 1
            label = str(frame.labels[row])
            write_detections(batch, meta, one, placement, (), component, api.osd, labels=[label])
        for place, parent in enumerate(frame.parents):
            if parent is not None:
                objects = metas[index].objects
                objects[place].parent = objects[parent]
        for name, data in frame.data.items():
            attach_json(meta, name, data)
        if frame.object_data:
            for data, item in zip(reversed(frame.object_data), meta.object_items, strict=True):
                for name, value in data.items():
                    attach_json(item, name, value)
    return batch


def objects_of(*boxes: Sequence[float], **columns: Any) -> Detections:
    """Detections from boxes ``x1, y1, x2, y2``; confidence 0.9 and class 0 where nothing else is given.

    >>> objects_of((0, 0, 10, 20), (5, 5, 9, 9), track_ids=[1, 2]).track_ids.tolist()
    [1, 2]
    """
    count = len(boxes)
    columns.setdefault("scores", np.full(count, 0.9, np.float32))
    columns.setdefault("class_ids", np.zeros(count, np.int64))
    if columns.get("track_ids") is not None:
        columns["track_ids"] = np.asarray(columns["track_ids"], np.int64)
    return Detections(np.array(boxes, np.float32).reshape(-1, 4), **columns)

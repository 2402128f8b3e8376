"""pyinfer on whole frames: which ones the model is given, and where what it finds is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from elements.frames import BatchFrame
from elements.inference.result import GroupResult
from elements.metadata.batch_detections import counts_of
from elements.metadata.edit import find_editor
from elements.metadata.stamp import stamp_model
from elements.metadata.writer import write_detections
from elements.objects_at_work import Said


@dataclass(frozen=True, slots=True)
class FrameWork:
    """The frames of a batch that the model is given."""

    pictures: list[BatchFrame]


class FramesAtWork:
    """The frames of a stream, as `elements.objects_at_work.ObjectsAtWork` is for objects."""

    def __init__(self, said: Said, api: Any) -> None:
        self._said, self._api = said, api

    def plan(self, buffer: Any, frames: Sequence[BatchFrame], due: Collection[int]) -> FrameWork:
        """Those of ``frames`` whose batch ids are ``due``."""
        return FrameWork([frame for frame in frames if frame.batch_id in due])

    def write(self, buffer: Any, work: FrameWork, found: Sequence[GroupResult]) -> None:
        """Append what was found to the frames."""
        if not found:
            return
        by_batch_id = {
            frame.batch_id: (frame.placement, group.found[place] if count else None, group)
            for group in found
            for place, (frame, count) in enumerate(
                zip(cast(list[BatchFrame], group.frames), counts_of(group.found), strict=True)
            )
        }
        said, batch_meta = self._said, self._api.Buffer(buffer).batch_meta
        for frame_meta in batch_meta.frame_items:
            result = by_batch_id.get(frame_meta.batch_id)
            if result is None:
                continue
            placement, detections, group = result
            if detections is not None:
                write_detections(
                    batch_meta, frame_meta, detections, placement, group.names, said.component_id, self._api.osd,
                    class_offset=said.class_offset,
                )  # fmt: skip
            editor = find_editor(frame_meta)
            if editor is not None:
                editor.mark_inferred(frame_meta)
                stamp_model(frame_meta, said.name, group.version)

    def forget(self, source_id: int) -> None:
        """Nothing is kept."""

"""Batch metadata of the portable runtime: what NvDsBatchMeta holds, as plain data.

The stand-ins read and write these classes; users and `elements.metadata.writer` see them through the API of
`elements.portable.pyservicemaker`. Coordinates are mux-frame ("pipeline") pixels, times are nanoseconds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from elements.portable import osd

if TYPE_CHECKING:
    from elements.portable.surface import Surface

UNTRACKED_OBJECT_ID = 2**64 - 1
PREDICTED_CONFIDENCE = -0.1  # what nvtracker writes on objects that it continued without a detection
CLOCK_TIME_NONE = 2**64 - 1


@dataclass(slots=True)
class UserMeta:
    """Anything the user attaches; ``meta_type`` as in nvdsmeta.h, own types from 8193."""

    meta_type: int = 0
    data: Any = None


@dataclass(slots=True)
class LabelInfo:
    """One label that a classifier gave."""

    label: str = ""
    class_id: int = 0
    prob: float = 0.0
    label_id: int = 0
    num_classes: int = 0


@dataclass(slots=True)
class ClassifierMeta:
    """The labels that one classifier gave an object."""

    unique_component_id: int = 0
    classifier_type: str = ""
    labels: list[LabelInfo] = field(default_factory=list)


@dataclass(slots=True)
class ObjectMeta:
    """One object. ``detector_box`` and ``tracker_box`` are (left, top, width, height)."""

    class_id: int = 0
    object_id: int = UNTRACKED_OBJECT_ID
    unique_component_id: int = 0
    confidence: float = 0.0
    tracker_confidence: float = 0.0
    label: str = ""
    rect: osd.Rect = field(default_factory=osd.Rect)
    text: osd.TextParams = field(default_factory=osd.TextParams)
    mask: osd.Mask = field(default_factory=osd.Mask)
    detector_box: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    tracker_box: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    parent: ObjectMeta | None = None
    classifiers: list[ClassifierMeta] = field(default_factory=list)
    user: list[UserMeta] = field(default_factory=list)


@dataclass(slots=True)
class DisplayMeta:
    """Free drawings of a frame; DeepStream keeps at most 16 of each kind."""

    rects: list[osd.Rect] = field(default_factory=list)
    texts: list[osd.Text] = field(default_factory=list)
    lines: list[osd.Line] = field(default_factory=list)
    arrows: list[osd.Arrow] = field(default_factory=list)
    circles: list[osd.Circle] = field(default_factory=list)


@dataclass(slots=True)
class FrameMeta:
    """One frame of the batch. ``objects`` is oldest first; the API hands them out newest first, as DeepStream does.

    ``batch_id`` is the index of the frame's picture in ``BatchMeta.surfaces``.
    """

    pad_index: int = 0
    source_id: int = 0
    batch_id: int = 0
    frame_number: int = 0
    buffer_pts: int = CLOCK_TIME_NONE
    duration: int = CLOCK_TIME_NONE
    ntp_timestamp: int = 0
    source_width: int = 0
    source_height: int = 0
    pipeline_width: int = 0
    pipeline_height: int = 0
    infer_done: bool = False
    objects: list[ObjectMeta] = field(default_factory=list)
    displays: list[DisplayMeta] = field(default_factory=list)
    user: list[UserMeta] = field(default_factory=list)


@dataclass(slots=True)
class BatchMeta:
    """A batch: frames, their pictures, and metadata of the whole batch.

    Attributes:
        owner: address of its Gst.Buffer.
        held: keeps what the pictures lie in; it is let go last.
    """

    max_frames: int = 0
    frames: list[FrameMeta] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    user: list[UserMeta] = field(default_factory=list)
    owner: int = 0
    held: Any = None

    def clone(self) -> BatchMeta:
        """A batch of its own: metadata copied, pictures shared until one side writes."""
        twin = BatchMeta(self.max_frames, [copy.deepcopy(f) for f in self.frames], [], list(self.user))
        twin.surfaces = [surface.share() for surface in self.surfaces]
        return twin

"""Batch metadata of the portable runtime: what NvDsBatchMeta holds, as plain data.

The stand-ins read and write these classes; users and `elements.metadata.writer` see them through the API of
`elements.portable.pyservicemaker`. Coordinates are mux-frame ("pipeline") pixels, times are nanoseconds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from elements.metadata.look import Look, place_text
from elements.metadata.object_fields import ObjectFields
from elements.portable import osd

if TYPE_CHECKING:
    from elements.portable.surface import Surface

UNTRACKED_OBJECT_ID = 2**64 - 1
PREDICTED_CONFIDENCE = -0.1  # what nvtracker writes on objects that it continued without a detection
CLOCK_TIME_NONE = 2**64 - 1

Box = tuple[float, float, float, float]  # left, top, width, height
_NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)


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


class ObjectMeta:
    """One object. ``detector_box`` and ``tracker_box`` are (left, top, width, height).

    The structs are made when they are asked for, since few pipelines draw: `place` tells where the object is.
    """

    __slots__ = (
        "_drawn", "_mask", "_rect", "_text", "class_id", "classifiers", "confidence", "detector_box", "label",
        "object_id", "parent", "tracker_box", "tracker_confidence", "unique_component_id", "user",
    )  # fmt: skip

    def __init__(
        self,
        class_id: int = 0,
        object_id: int = UNTRACKED_OBJECT_ID,
        unique_component_id: int = 0,
        confidence: float = 0.0,
        tracker_confidence: float = 0.0,
        label: str = "",
        rect: osd.Rect | None = None,
        text: osd.TextParams | None = None,
        mask: osd.Mask | None = None,
        detector_box: Box = _NOWHERE,
        tracker_box: Box = _NOWHERE,
        parent: ObjectMeta | None = None,
        classifiers: list[ClassifierMeta] | None = None,
        user: list[UserMeta] | None = None,
    ) -> None:
        self.class_id, self.object_id, self.unique_component_id = class_id, object_id, unique_component_id
        self.confidence, self.tracker_confidence, self.label = confidence, tracker_confidence, label
        self._rect, self._text, self._mask = rect, text, mask
        self._drawn: tuple[ObjectFields, Look] | None = None  # what rect and text are made from; empty ones without
        self.detector_box, self.tracker_box, self.parent = detector_box, tracker_box, parent
        self.classifiers = [] if classifiers is None else classifiers
        self.user = [] if user is None else user

    @classmethod
    def of_fields(cls, fields: ObjectFields, component_id: int, look: Look) -> Self:
        """An object that a detector found."""
        item = cls(
            fields.class_id,
            fields.object_id,
            component_id,
            fields.confidence,
            0.0,
            fields.label,
            detector_box=fields[4:8],
        )
        item._drawn = (fields, look)
        return item

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectMeta):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ObjectMeta({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"

    @property
    def rect(self) -> osd.Rect:
        if self._rect is None:
            self._rect = osd.Rect() if self._drawn is None else _drawn_rect(*self._drawn)
        return self._rect

    @rect.setter
    def rect(self, rect: osd.Rect) -> None:
        self._rect = rect

    @property
    def text(self) -> osd.TextParams:
        if self._text is None:
            self._text = osd.TextParams() if self._drawn is None else _drawn_text(*self._drawn)
        return self._text

    @text.setter
    def text(self, text: osd.TextParams) -> None:
        self._text = text

    @property
    def mask(self) -> osd.Mask:
        if self._mask is None:
            self._mask = osd.Mask()
        return self._mask

    @mask.setter
    def mask(self, mask: osd.Mask) -> None:
        self._mask = mask

    @property
    def place(self) -> tuple[float, float, float, float, float]:
        """``rect`` as numbers: left, top, width, height and degrees."""
        if self._rect is None and self._drawn is not None:
            return self._drawn[0][4:]
        place: tuple[float, float, float, float, float] = osd.place_of(self.rect)
        return place

    @property
    def fields(self) -> ObjectFields:
        """What every object has."""
        own = (self.class_id, self.object_id, self.confidence, self.label)
        if self._rect is None and self._drawn is not None and self._drawn[0][:4] == own:
            return self._drawn[0]  # nobody has changed anything
        return ObjectFields(*own, *self.place)

    @property
    def is_bare(self) -> bool:
        """Whether nothing is attached: no classifier's label, no mask, no parent, nothing of a user."""
        masked = self._mask is not None and self._mask.mask_array.size
        return not (self.classifiers or self.user or self.parent or masked)


_FIELDS = (
    "class_id", "object_id", "unique_component_id", "confidence", "tracker_confidence", "label", "rect", "text", "mask",
    "detector_box", "tracker_box", "parent", "classifiers", "user",
)  # fmt: skip


def _drawn_rect(fields: ObjectFields, look: Look) -> osd.Rect:
    rect: osd.Rect = look.rect.__copy__()
    rect.left, rect.top, rect.width, rect.height, rect.rotation_angle = fields[4:]
    return rect


def _drawn_text(fields: ObjectFields, look: Look) -> osd.TextParams:
    text: osd.TextParams = look.text.__copy__()
    place_text(text, fields.left, fields.top)
    text.display_text = fields.label
    return text


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


@dataclass  # without slots, which would be let go in the order of their names
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
        twin = BatchMeta(self.max_frames, [copy.deepcopy(f) for f in self.frames], [], list(self.user), held=self.held)
        twin.surfaces = [surface.share() for surface in self.surfaces]
        return twin

    def drop_pictures(self) -> None:
        """Let go the pictures, and what they lie in."""
        self.surfaces = []
        self.held = None

"""The metadata classes of pyservicemaker: thin views over `elements.portable.meta`.

Boxes and other places are mux-frame ("pipeline") pixels; timestamps are nanoseconds. As in NVIDIA's module,
``*_items`` are single-pass iterators (fresh on each access, no length) whose items are valid only until the iteration
moves on; unlike there, a late access raises RuntimeError instead of reading freed memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from elements.portable import meta as data
from elements.portable import osd
from elements.portable.pyservicemaker.extract import extract_frame
from elements.portable.pyservicemaker.handles import NULL, Handle, items, readable, struct, writable
from elements.portable.pyservicemaker.user_metadata import (
    ANALYTICS_FRAME_META,
    ANALYTICS_OBJECT_META,
    OBJECT_REID_META,
    PREPROCESS_BATCH_META,
    SEGMENTATION_META,
    TENSOR_OUTPUT_META,
    Appendable,
    HasUserMetadata,
    UserMetadata,
    int32,
    user_items_of,
)

log = logging.getLogger("gstorch.pyservicemaker")

LABEL_BYTES = 127  # MAX_LABEL_SIZE of nvdsmeta.h, less the terminator
DISPLAY_ELEMENTS = 16  # MAX_ELEMENTS_IN_DISPLAY_META of nvdsmeta.h


def short_label(label: Any) -> str:
    """The label as it fits DeepStream's field: at most 127 bytes of UTF-8, cut at a character.

    Raises:
        TypeError: if it is neither str nor bytes.
    """
    full = osd.text(label)
    if len(full) * 4 <= LABEL_BYTES:
        return full
    return full.encode()[:LABEL_BYTES].decode(errors="ignore")


def _uint64(value: Any) -> int:
    return osd.unsigned(value, bits=64)


def _box(value: Any) -> tuple[float, float, float, float]:
    if not isinstance(value, dict):
        raise TypeError("a dict with left, top, width and height is needed")
    return tuple(osd.number(value[key]) for key in ("left", "top", "width", "height"))  # type: ignore[return-value]


class LabelInfo(Handle):
    """One label of a classifier."""

    __slots__ = ()

    label: str = readable("label")
    class_id: int = readable("class_id")
    prob: float = readable("prob")
    label_id: int = readable("label_id")
    num_classes: int = readable("num_classes")


class ClassifierMetadata(Handle):
    """The labels that one classifier gave an object."""

    __slots__ = ()

    unique_component_id: int = readable("unique_component_id")
    classifier_type: str = readable("classifier_type")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self._meta.labels)

    def get_n_label(self, index: int) -> str:
        """The label at ``index``, or the next one that is not empty; an empty text if there is none."""
        return next((info.label for info in self._meta.labels[index:] if info.label), "")

    def get_label_info(self, index: int) -> LabelInfo:
        """Everything about one label; a null handle if ``index`` is out of range."""
        labels = self._meta.labels
        return LabelInfo(labels[index] if 0 <= index < len(labels) else NULL)


class ObjectMetadata(Appendable, HasUserMetadata):
    """One object. ``rect_params``, ``text_params`` and ``mask_params`` are live when read and copied when assigned."""

    __slots__ = ()

    class_id: int = writable("class_id", osd.unsigned)
    object_id: int = writable("object_id", _uint64)
    unique_component_id: int = writable("unique_component_id", int32)
    confidence: float = writable("confidence", osd.number)
    tracker_confidence: float = writable("tracker_confidence", osd.number)
    label: str = writable("label", short_label)
    rect_params: osd.Rect = struct("rect", osd.Rect)
    text_params: osd.TextParams = struct("text", osd.TextParams)
    mask_params: osd.Mask = struct("mask", osd.Mask)
    tensor_items: Iterable[UserMetadata] = user_items_of(TENSOR_OUTPUT_META)
    nvdsanalytics_obj_items: Iterable[UserMetadata] = user_items_of(ANALYTICS_OBJECT_META)
    obj_reid_items: Iterable[UserMetadata] = user_items_of(OBJECT_REID_META)

    @property
    def classifier_items(self) -> Iterable[ClassifierMetadata]:
        """Classifier results, newest first, single pass."""
        return [] if self._meta is NULL else items(ClassifierMetadata, reversed(self._meta.classifiers))

    @property
    def nv_bbox_info(self) -> dict[str, float]:
        """The tracker's own box: left, top, width, height."""
        return dict(zip(("left", "top", "width", "height"), self._meta.tracker_box, strict=True))

    @nv_bbox_info.setter
    def nv_bbox_info(self, value: dict[str, float]) -> None:
        self._meta.tracker_box = _box(value)

    def append(self, user_meta: UserMetadata) -> None:
        """Attach user metadata to the object.

        Raises:
            TypeError: for anything else.
            RuntimeError: if it was appended before.
        """
        if not isinstance(user_meta, UserMetadata):
            raise TypeError("ObjectMetadata.append(): incompatible function arguments: a UserMetadata is needed")
        self._meta.user.append(user_meta._give())


class DisplayMetadata(Appendable):
    """Free drawings of a frame, up to 16 of each kind; further ones are ignored, which is logged once."""

    __slots__ = ()
    _overflow_logged = False

    n_rects: int = property(lambda self: len(self._meta.rects))  # type: ignore[assignment]
    n_labels: int = property(lambda self: len(self._meta.texts))  # type: ignore[assignment]
    n_lines: int = property(lambda self: len(self._meta.lines))  # type: ignore[assignment]
    n_arrows: int = property(lambda self: len(self._meta.arrows))  # type: ignore[assignment]
    n_circles: int = property(lambda self: len(self._meta.circles))  # type: ignore[assignment]

    def add_rect(self, rect: osd.Rect) -> None:
        """Add a copy of a rectangle."""
        self._add(self._meta.rects, rect, osd.Rect)

    def add_text(self, text: osd.Text) -> None:
        """Add a copy of a text."""
        self._add(self._meta.texts, text, osd.Text)

    def add_line(self, line: osd.Line) -> None:
        """Add a copy of a line."""
        self._add(self._meta.lines, line, osd.Line)

    def add_arrow(self, arrow: osd.Arrow) -> None:
        """Add a copy of an arrow."""
        self._add(self._meta.arrows, arrow, osd.Arrow)

    def add_circle(self, circle: osd.Circle) -> None:
        """Add a copy of a circle."""
        self._add(self._meta.circles, circle, osd.Circle)

    def _add(self, drawn: list[Any], drawing: Any, kind: type) -> None:
        if not isinstance(drawing, kind):
            raise TypeError(f"incompatible function arguments: an osd.{kind.__name__} is needed, not {drawing!r}")
        if len(drawn) < DISPLAY_ELEMENTS:
            drawn.append(drawing.__copy__())  # type: ignore[attr-defined]
        elif not DisplayMetadata._overflow_logged:
            DisplayMetadata._overflow_logged = True
            log.warning(
                "a display meta holds %d of each kind: a further osd.%s is ignored; acquire a second display meta",
                DISPLAY_ELEMENTS,
                kind.__name__,
            )


class FrameMetadata(HasUserMetadata):
    """One frame of the batch; its fields are read-only."""

    __slots__ = ()

    frame_number: int = readable("frame_number")
    pad_index: int = readable("pad_index")
    batch_id: int = readable("batch_id")
    source_id: int = readable("source_id")
    source_width: int = readable("source_width")
    source_height: int = readable("source_height")
    pipeline_width: int = readable("pipeline_width")
    pipeline_height: int = readable("pipeline_height")
    buffer_pts: int = readable("buffer_pts")
    ntp_timestamp: int = readable("ntp_timestamp")
    tensor_items: Iterable[UserMetadata] = user_items_of(TENSOR_OUTPUT_META)
    segmentation_items: Iterable[UserMetadata] = user_items_of(SEGMENTATION_META)
    nvdsanalytics_frame_items: Iterable[UserMetadata] = user_items_of(ANALYTICS_FRAME_META)

    @property
    def object_items(self) -> Iterable[ObjectMetadata]:
        """Objects, newest first, single pass. Objects appended meanwhile are not visited."""
        return [] if self._meta is NULL else items(ObjectMetadata, reversed(self._meta.objects))

    def append(self, meta: ObjectMetadata | DisplayMetadata) -> None:
        """Add an acquired object or display meta.

        An object without a track id keeps its ``rect_params`` of this moment as the detector's box
        (``detector_bbox_info`` of nvdsmeta.h), which the tracker reads; so fill the rectangle first.

        Raises:
            TypeError: for metadata of another type.
            RuntimeError: if it was appended before.
        """
        if isinstance(meta, ObjectMetadata):
            added = meta._give()
            if added.object_id == data.UNTRACKED_OBJECT_ID:
                rect = added.rect
                added.detector_box = (rect.left, rect.top, rect.width, rect.height)
            self._meta.objects.append(added)
        elif isinstance(meta, DisplayMetadata):
            self._meta.displays.append(meta._give())
        else:
            raise TypeError("Invalid type for FrameMetadata.append")


class BatchMetadata(HasUserMetadata):
    """A batch of frames. Behind a buffer without a batch it is null: no frames, and anything else raises."""

    __slots__ = ("_frame",)

    is_audio = False
    audio_frame_items: Iterable[Any] = ()
    preprocess_batch_items: Iterable[UserMetadata] = user_items_of(PREPROCESS_BATCH_META)

    def __init__(self, meta: data.BatchMeta | None) -> None:
        self._meta = NULL if meta is None else meta
        self._frame: data.FrameMeta | None = None  # the frame that frame_items is at, for error messages

    @property
    def n_frames(self) -> int:
        """Number of frames in this batch."""
        return 0 if self._meta is NULL else len(self._meta.frames)

    @property
    def frame_items(self) -> Iterable[FrameMetadata]:
        """Frames in order, single pass."""
        return [] if self._meta is NULL else items(FrameMetadata, self._noted(self._meta.frames))

    def _noted(self, frames: Iterable[data.FrameMeta]) -> Iterator[data.FrameMeta]:
        for frame in frames:
            self._frame = frame
            yield frame
        self._frame = None

    def _position(self) -> str:
        """Where the iteration over frames is, for error messages."""
        frame = self._frame
        return "" if frame is None else f"source {frame.source_id}, frame {frame.frame_number}"

    def acquire_object_meta(self) -> ObjectMetadata:
        """A new object, to be filled and appended to a frame."""
        self._require()
        return ObjectMetadata(data.ObjectMeta(), acquired=True)

    def acquire_display_meta(self) -> DisplayMetadata:
        """A new set of drawings, to be filled and appended to a frame."""
        self._require()
        return DisplayMetadata(data.DisplayMeta(), acquired=True)

    def acquire_user_meta(self) -> UserMetadata:
        """New user metadata, to be filled and appended to an object."""
        self._require()
        return UserMetadata(data.UserMeta(), acquired=True)

    def acquire_frame_meta(self) -> FrameMetadata:
        """A new frame. The API has no call that adds it to a batch."""
        self._require()
        return FrameMetadata(data.FrameMeta())

    def _require(self) -> None:
        """Raise behind a null or stale handle."""
        _ = self._meta.frames

    def append(self, meta: Any) -> None:
        """Nothing can be appended to a batch here: NVIDIA's module takes preprocess metadata only.

        Raises:
            TypeError: always.
        """
        raise TypeError("Invalid type for BatchMetadata.append")

    def extract(self, max_items: int) -> list[dict[str, Any] | None]:
        """Plain copies as `extract_frame` makes them, at index ``pad_index``; None without such a frame."""
        if self._meta is NULL:
            return []
        extracted: list[dict[str, Any] | None] = [None] * max_items
        for frame in self._meta.frames:
            if frame.pad_index < max_items:
                extracted[frame.pad_index] = extract_frame(frame)
        return extracted

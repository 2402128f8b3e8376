"""Changes to metadata that pyservicemaker's API lacks, for operators; the same on DeepStream and without it.

All functions take pyservicemaker's handles inside the callback that got them:

    from elements.metadata.edit import attach_json, classify, remove_objects

    class Plates(BatchMetadataOperator):
        def handle_metadata(self, batch_meta):
            for frame in batch_meta.frame_items:
                remove_objects(frame, lambda item: item.confidence < 0.3)
                for item in frame.object_items:
                    classify(item, "colour", "red", probability=0.9)
                    attach_json(item, "plate", {"text": "AB 123"})

On DeepStream they raise `EditError` where its metadata library is not as this program knows it.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from elements.metadata.detections import FloatArray
from elements.metadata.nvds.binding import LIBRARY, WITHOUT, library
from elements.metadata.nvds.editor import NvdsEditor
from elements.metadata.nvds.handles import handle_problem
from elements.metadata.object_fields import ObjectColumns, ObjectFields
from elements.metadata.plain_editor import PlainEditor

log = logging.getLogger("gstorch.metadata")

Labels = Mapping[int, tuple[str, int, float]]
_JSON_TYPE = "GSTORCH.JSON."


class EditError(RuntimeError):
    """The metadata library in use cannot be edited."""


class Editor(Protocol):
    """What there is for each runtime: `NvdsEditor` and `PlainEditor`."""

    def __hash__(self) -> int: ...
    def meta_type(self, name: str) -> int: ...
    def attach_text(self, target: Any, meta_type: int, text: str) -> None: ...
    def texts(self, target: Any, names: Mapping[int, str]) -> dict[str, str]: ...
    def classify(
        self, target: Any, classifier: str, label: str, class_id: int, probability: float, component_id: int
    ) -> None: ...
    def columns(self, target: Any, component_id: int) -> ObjectColumns: ...
    def classify_all(self, target: Any, classifier: str, labels: Labels, component_id: int) -> None: ...
    def set_detector_box(self, target: Any, left: float, top: float, width: float, height: float) -> None: ...
    def set_mask(self, target: Any, mask: FloatArray, threshold: float) -> None: ...
    def mask(self, target: Any) -> tuple[FloatArray, float] | None: ...
    def detector_box(self, target: Any) -> tuple[float, float, float, float] | None: ...
    def mark_inferred(self, target: Any) -> None: ...
    def set_parent(self, target: Any, parent: Any) -> None: ...
    def lineage(self, target: Any) -> tuple[int, int]: ...
    def remove_objects(self, target: Any, predicate: Callable[[Any], Any]) -> int: ...


def attach_json(target: Any, name: str, data: Any) -> None:
    """Attach data to a batch, frame or object, in place of what it has under this name.

    It travels with the buffer and is copied with it. Other code finds it as user metadata of type `json_meta_type`.

    Args:
        target: BatchMetadata, FrameMetadata or ObjectMetadata.
        name: what it is.
        data: anything that ``json.dumps`` takes.

    Raises:
        TypeError: if ``data`` cannot be serialised.
        EditError: see the module.
    """
    attach_json_text(target, name, json.dumps(data))


def attach_json_text(target: Any, name: str, text: str) -> None:
    """`attach_json` of what is JSON already."""
    editor = editor_of(target)
    editor.attach_text(target, _json_type(editor, name), text)


def read_json(target: Any, name: str) -> Any:
    """What `attach_json` attached under this name; ``None`` if there is nothing.

    Raises:
        EditError: see the module.
    """
    return read_jsons(target, (name,)).get(name)


def rewrite_json_text(target: Any, name: str, change: Callable[[str | None], str]) -> None:
    """`attach_json_text` of what ``change`` makes of the text that is there."""
    editor = editor_of(target)
    kind = _json_type(editor, name)
    editor.attach_text(target, kind, change(editor.texts(target, {kind: name}).get(name)))


def read_jsons(target: Any, names: Collection[str]) -> dict[str, Any]:
    """What `attach_json` attached under these names, as far as there is something; in one pass, for the hot path.

    Raises:
        EditError: see the module.
    """
    return {name: json.loads(text) for name, text in _json_texts(editor_of(target), target, names).items()}


def find_jsons(target: Any, names: Collection[str]) -> dict[str, Any]:
    """As `read_jsons`, but nothing where metadata cannot be edited, since nothing can be attached there either."""
    return {name: json.loads(text) for name, text in find_json_texts(target, names).items()}


def find_json_texts(target: Any, names: Collection[str]) -> dict[str, str]:
    """`find_jsons`, not parsed."""
    editor = find_editor(target)
    return {} if editor is None else _json_texts(editor, target, names)


def _json_texts(editor: Editor, target: Any, names: Collection[str]) -> dict[str, str]:
    return editor.texts(target, _json_types(editor, tuple(names)))


def json_meta_type(target: Any, name: str) -> int:
    """The user meta type of `attach_json`, for ``target.user_meta_items(…)``; ``get_user_data_json`` reads the data."""
    return _json_type(editor_of(target), name)


@functools.lru_cache(maxsize=256)
def _json_types(editor: Editor, names: tuple[str, ...]) -> dict[int, str]:
    return {_json_type(editor, name): name for name in names}


@functools.lru_cache(maxsize=256)
def _json_type(editor: Editor, name: str) -> int:
    return editor.meta_type(_JSON_TYPE + name)


def classify(
    object_meta: Any,
    classifier: str,
    label: str,
    class_id: int = 0,
    probability: float = 1.0,
    component_id: int = 0,
) -> None:
    """Give an object the label of a classifier, as nvinfer does as a secondary model.

    Args:
        object_meta: ObjectMetadata.
        classifier: what was looked at (``classifier_type``), such as "colour". DeepStream loses it where a batch is
            copied (behind a tee), the label stays.
        label: what was found; of any length.
        class_id: number of the label.
        probability: 0 to 1.
        component_id: ``unique_component_id`` of the classifier, by which nvmsgconv tells classifiers apart.

    Raises:
        EditError: see the module.
    """
    editor_of(object_meta).classify(object_meta, classifier, label, class_id, probability, component_id)


def classify_all(frame_meta: Any, classifier: str, labels: Labels, component_id: int = 0) -> None:
    """`classify` of many objects of a frame.

    Args:
        frame_meta: FrameMetadata.
        classifier: see `classify`.
        labels: label, its number and its probability, by the objects' places in ``object_items``.
        component_id: see `classify`.

    Raises:
        EditError: see the module.
    """
    editor_of(frame_meta).classify_all(frame_meta, classifier, labels, component_id)


def remove_objects(frame_meta: Any, predicate: Callable[[Any], Any]) -> int:
    """Remove objects from a frame, with their labels, masks, classifiers and user metadata.

    Args:
        frame_meta: FrameMetadata. Not while iterating over its objects.
        predicate: called with each ObjectMetadata, in the order of ``object_items``; what it is true for goes.

    Returns:
        How many were removed.

    Raises:
        EditError: see the module.
    """
    return editor_of(frame_meta).remove_objects(frame_meta, predicate)


def set_mask(object_meta: Any, mask: FloatArray, threshold: float = 0.5) -> None:
    """Give an object a mask: (H, W) float32 stretched over its box and turned with it (see `elements.metadata.masks`).

    Points above ``threshold`` belong to the object.

    The API's own ``mask_array`` keeps a bare pointer to NumPy's memory, which DeepStream then frees: a crash.

    Raises:
        ValueError: if it is not two-dimensional or empty.
        EditError: see the module.
    """
    mask = np.asarray(mask, np.float32)
    if mask.ndim != 2 or not mask.size:
        raise ValueError(f"a mask has shape (height, width), none of them 0, not {mask.shape}")
    editor_of(object_meta).set_mask(object_meta, mask, threshold)


def mask_of(object_meta: Any) -> tuple[FloatArray, float] | None:
    """The object's mask as in `set_mask`, not to be written to, and its threshold; ``None`` if there is none.

    The API's own ``mask_array`` crashes on DeepStream where there is no mask.
    """
    editor = find_editor(object_meta)
    return None if editor is None else editor.mask(object_meta)


def detector_box(object_meta: Any) -> tuple[float, float, float, float] | None:
    """Left, top, width and height of the detector's box (``detector_bbox_info``), mux-frame pixels.

    ``None`` if no detector wrote it or it cannot be told.
    """
    editor = find_editor(object_meta)
    return None if editor is None else editor.detector_box(object_meta)


def lineage_of(object_meta: Any) -> tuple[int, int]:
    """Numbers that stand for an object, and for the one in which it was found (``parent``; 0: none).

    They are for comparing the objects of one frame. A parent that is none of them has been removed; DeepStream also
    loses it where a batch is copied (behind a tee).
    """
    editor = find_editor(object_meta)
    return (0, 0) if editor is None else editor.lineage(object_meta)


def read_objects(frame_meta: Any) -> Iterator[tuple[Any, ObjectFields, bool]]:
    """The objects of a frame, newest first: ObjectMetadata, what every object has, and whether there may be more.

    More is what is attached: classifiers' labels, a mask, a parent, user metadata. For the hot path: each look at a
    handle takes longer than all its fields.
    """
    editor = find_editor(frame_meta)
    if isinstance(editor, PlainEditor):
        return editor.read_objects(frame_meta)
    return _objects_through_api(frame_meta, editor)


def _objects_through_api(frame_meta: Any, editor: NvdsEditor | None) -> Iterator[tuple[Any, ObjectFields, bool]]:
    for item in frame_meta.object_items:
        rect = item.rect_params
        place = (rect.left, rect.top, rect.width, rect.height, rect.rotation_angle)
        fields = ObjectFields(int(item.class_id), int(item.object_id), item.confidence, item.label, *place)
        yield item, fields, editor is None or not editor.is_bare(item)


def object_ids(frame_meta: Any) -> list[int]:
    """``object_id`` of each object of a frame, newest first."""
    editor = find_editor(frame_meta)
    if isinstance(editor, PlainEditor):
        return editor.object_ids(frame_meta)
    return [int(item.object_id) for item in frame_meta.object_items]


def object_columns(frame_meta: Any, component_id: int) -> ObjectColumns:
    """The objects of a frame that one component found, newest first.

    Args:
        frame_meta: FrameMetadata.
        component_id: their ``unique_component_id``.
    """
    editor = find_editor(frame_meta)
    return (
        _columns_through_api(frame_meta, component_id) if editor is None else editor.columns(frame_meta, component_id)
    )


def _columns_through_api(frame_meta: Any, component_id: int) -> ObjectColumns:
    objects = enumerate(_objects_through_api(frame_meta, None))
    own = [(place, row) for place, (item, row, _) in objects if item.unique_component_id == component_id]
    return ObjectColumns(
        [place for place, _ in own],
        [row.class_id for _, row in own],
        [row.object_id for _, row in own],
        [row.label for _, row in own],
        [row[4:] for _, row in own],
    )


def editor_of(handle: Any) -> Editor:
    """The editor for the runtime that a handle comes from.

    Raises:
        EditError: if there is none.
    """
    editor = find_editor(handle)
    if editor is None:
        raise EditError(
            f"{type(handle).__name__}: {LIBRARY} cannot be edited on this machine; the warning at start says why"
        )
    return editor


def find_editor(handle: Any) -> PlainEditor | NvdsEditor | None:
    """The editor for the runtime that a handle comes from; ``None``, after one warning, if its library is unusable."""
    if hasattr(handle, "_meta"):
        return _plain
    problem = handle_problem(handle)
    if problem:
        _warn_of_handles(problem)
        return None
    return _native()


_plain = PlainEditor()


@functools.cache
def _native() -> NvdsEditor | None:
    found = library()
    return None if found is None else NvdsEditor(found)


@functools.cache
def _warn_of_handles(problem: str) -> None:
    log.warning("DeepStream metadata: this pyservicemaker is not known (%s). %s", problem, WITHOUT)

"""The portable counterpart of `elements.metadata.nvds.editor`, on the plain data behind the portable handles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from elements.metadata.detections import FloatArray
from elements.metadata.look import Look
from elements.metadata.object_fields import ObjectColumns, ObjectFields, c_text
from elements.portable.meta import ClassifierMeta, LabelInfo, ObjectMeta, UserMeta

_meta_types: dict[str, int] = {}
_numbers = itertools.count(8194)  # DeepStream's first registered number


class PlainEditor:
    """Edits batches of the portable runtime."""

    def meta_type(self, name: str) -> int:
        """The registered number of a user meta type."""
        if name not in _meta_types:
            _meta_types.setdefault(name, next(_numbers))
        return _meta_types[name]

    def attach_text(self, target: Any, meta_type: int, text: str) -> None:
        """User metadata with ``text`` on a batch, frame or object; what it had of this type goes."""
        user = target._meta.user
        if user:
            user[:] = [meta for meta in user if meta.meta_type != meta_type]
        user.append(UserMeta(meta_type, text))

    def texts(self, target: Any, names: Mapping[int, str]) -> dict[str, str]:
        """What `attach_text` stored, by the names of the types, as far as there is something."""
        user = target._meta.user
        return {names[meta.meta_type]: meta.data for meta in user if meta.meta_type in names} if user else {}

    def classify(
        self, target: Any, classifier: str, label: str, class_id: int, probability: float, component_id: int
    ) -> None:
        """One classifier meta with one label."""
        target._meta.classifiers.append(_classifier(classifier, (label, class_id, probability), component_id))

    def classify_all(
        self, target: Any, classifier: str, labels: Mapping[int, tuple[str, int, float]], component_id: int
    ) -> None:
        """`classify` of the frame's objects at these places."""
        objects = target._meta.objects
        for place, label in labels.items():
            objects[~place].classifiers.append(_classifier(classifier, label, component_id))

    def columns(self, target: Any, component_id: int) -> ObjectColumns:
        """The frame's objects of one component."""
        newest_first = target._meta.objects[::-1]
        places = [place for place, item in enumerate(newest_first) if item.unique_component_id == component_id]
        own = newest_first if len(places) == len(newest_first) else [newest_first[place] for place in places]
        return ObjectColumns(
            places,
            [item.class_id for item in own],
            [item.object_id for item in own],
            [item.label for item in own],
            [item.place for item in own],
        )

    def set_detector_box(self, target: Any, left: float, top: float, width: float, height: float) -> None:
        """The detector's box, which nvtracker reads."""
        target._meta.detector_box = (left, top, width, height)

    def detector_box(self, target: Any) -> tuple[float, float, float, float] | None:
        """Left, top, width and height of the detector's box; None if no detector wrote one."""
        box: tuple[float, float, float, float] = target._meta.detector_box
        return box if any(box) else None

    def set_mask(self, target: Any, mask: FloatArray, threshold: float) -> None:
        """A copy of ``mask``."""
        params = target.mask_params
        params.mask_array, params.threshold = np.array(mask, np.float32, order="C"), threshold

    def mask(self, target: Any) -> tuple[FloatArray, float] | None:
        """The mask and its threshold, if there is one. Masks are never written to, so it is no copy."""
        mask = target._meta.mask
        return (mask.mask_array, mask.threshold) if mask.mask_array.size else None

    def mark_inferred(self, target: Any) -> None:
        """Note that a model looked at the frame."""
        target._meta.infer_done = True

    def set_parent(self, target: Any, parent: Any) -> None:
        """Note in which object of the same frame this one was found."""
        target._meta.parent = parent._meta

    def lineage(self, target: Any) -> tuple[int, int]:
        """Numbers for the object and for its parent, 0 if it has none."""
        meta = target._meta
        return id(meta), 0 if meta.parent is None else id(meta.parent)

    def append_objects(self, target: Any, rows: Sequence[ObjectFields], component_id: int, look: Look) -> None:
        """What the writer does through pyservicemaker's API elsewhere, in a fraction of the time."""
        target._meta.objects += [ObjectMeta.of_fields(row, component_id, look) for row in rows]

    def read_objects(self, target: Any) -> Iterator[tuple[Any, ObjectFields, bool]]:
        """As `elements.metadata.edit.read_objects`."""
        return _read_objects(target.object_items) if target._meta.objects else iter(())

    def object_ids(self, target: Any) -> list[int]:
        """As `elements.metadata.edit.object_ids`."""
        return [meta.object_id for meta in reversed(target._meta.objects)]

    def remove_objects(self, target: Any, predicate: Callable[[Any], Any]) -> int:
        """Remove the objects for which ``predicate`` holds; the number of them."""
        doomed = {id(item._meta) for item in target.object_items if predicate(item)}
        objects = target._meta.objects
        objects[:] = [item for item in objects if id(item) not in doomed]
        for item in objects:
            if id(item.parent) in doomed:
                item.parent = None
        return len(doomed)


def _read_objects(items: Iterable[Any]) -> Iterator[tuple[Any, ObjectFields, bool]]:
    for item in items:
        meta = item._meta
        yield item, meta.fields, not meta.is_bare


def _classifier(classifier: str, said: tuple[str, int, float], component_id: int) -> ClassifierMeta:
    label, class_id, probability = said
    return ClassifierMeta(component_id, c_text(classifier), [LabelInfo(c_text(label), class_id, probability)])

"""What pyservicemaker cannot do to DeepStream's metadata, on its handles. Users go through `elements.metadata.edit`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from elements.metadata.detections import FloatArray
from elements.metadata.nvds import layout
from elements.metadata.nvds.binding import Library
from elements.metadata.nvds.handles import struct_of
from elements.metadata.object_fields import ObjectColumns, c_text

_USER_METAS = {
    layout.BATCH_META: layout.BatchMeta,
    layout.FRAME_META: layout.FrameMeta,
    layout.OBJECT_META: layout.ObjectMeta,
}

_FLOAT = ctypes.sizeof(ctypes.c_float)

_RECT = layout.ObjectMeta.rect.offset  # begins with its box
_FIELDS = {
    "component": ("<i4", layout.ObjectMeta.unique_component_id.offset),
    "class": ("<i4", layout.ObjectMeta.class_id.offset),
    "track": ("<u8", layout.ObjectMeta.object_id.offset),
    "left": ("<f4", _RECT + layout.Box.left.offset),
    "top": ("<f4", _RECT + layout.Box.top.offset),
    "width": ("<f4", _RECT + layout.Box.width.offset),
    "height": ("<f4", _RECT + layout.Box.height.offset),
    "degrees": ("<f4", _RECT + layout.RectParams.rotation_angle.offset),
    "label": (f"S{layout.LABEL_SIZE}", layout.ObjectMeta.label.offset),
}
_COLUMNS = np.dtype(
    {
        "names": list(_FIELDS),
        "formats": [kind for kind, _ in _FIELDS.values()],
        "offsets": [offset for _, offset in _FIELDS.values()],
        "itemsize": ctypes.sizeof(layout.ObjectMeta),
    }
)

# A field alone is read in a third of the time that its structure takes; objects have many.
_LISTS = {kind: struct.user_metas.offset for kind, struct in _USER_METAS.items()}
_ATTACHED = [
    field.offset
    for field in (
        layout.ObjectMeta.classifiers,
        layout.ObjectMeta.user_metas,
        layout.ObjectMeta.mask,
        layout.ObjectMeta.parent,
    )
]
_TYPE = layout.BaseMeta.meta_type.offset
_TEXT = layout.UserMeta.user_meta_data.offset


class NvdsEditor:
    """Edits batches of DeepStream. What DeepStream frees is allocated by GLib."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._meta_types: dict[str, int] = {}
        self._texts: dict[str, int] = {}  # names of classifiers, which are few

    # --- user metadata ------------------------------------------------------------------------------------------------

    def meta_type(self, name: str) -> int:
        """The registered number of a user meta type."""
        if name not in self._meta_types:
            self._meta_types[name] = self._library.user_meta_type(name)
        return self._meta_types[name]

    def attach_text(self, target: Any, meta_type: int, text: str) -> None:
        """User metadata with ``text`` on a batch, frame or object; what it had of this type goes."""
        address = struct_of(target)
        base = layout.BaseMeta.from_address(address)
        for old in [user for user in self._user_metas(address) if _meta_type(user) == meta_type]:
            self._library.remove_user[base.meta_type](address, old)
        added = self._library.acquire_user(base.batch_meta)
        user = layout.UserMeta.from_address(added)
        user.user_meta_data = self._library.duplicate(text.encode())
        user.base.meta_type = meta_type
        user.base.copy_func = self._library.callbacks.copy
        user.base.release_func = self._library.callbacks.release
        self._library.add_user[base.meta_type](address, added)

    def texts(self, target: Any, names: Mapping[int, str]) -> dict[str, str]:
        """What `attach_text` stored, by the names of the types, as far as there is something."""
        address = struct_of(target)
        found = self._user_metas(address)
        return {names[kind]: _text(user) for user in found if (kind := _meta_type(user)) in names}

    def _user_metas(self, address: int) -> list[int]:
        kind = _meta_type(address)
        if kind not in _USER_METAS:
            raise TypeError("only a batch, a frame or an object can have user metadata")
        return list(layout.list_items(ctypes.c_void_p.from_address(address + _LISTS[kind]).value))

    # --- objects ------------------------------------------------------------------------------------------------------

    def classify(
        self, target: Any, classifier: str, label: str, class_id: int, probability: float, component_id: int
    ) -> None:
        """One classifier meta with one label. Labels of more than 127 bytes go to the field for long ones."""
        self._classify(_object(target), classifier, (label, class_id, probability), component_id)

    def classify_all(
        self, target: Any, classifier: str, labels: Mapping[int, tuple[str, int, float]], component_id: int
    ) -> None:
        """`classify` of the frame's objects at these places."""
        objects = _objects(target)
        for place, label in labels.items():
            self._classify(objects[place], classifier, label, component_id)

    def _classify(self, address: int, classifier: str, said: tuple[str, int, float], component_id: int) -> None:
        library, (label, class_id, probability) = self._library, said
        # whatever may fail comes before something is taken from the pools
        text, kind = c_text(label).encode(), self._interned(c_text(classifier))
        class_id, probability = int(class_id), float(probability)
        batch = layout.BaseMeta.from_address(address).batch_meta
        added, info = library.acquire_classifier(batch), library.acquire_label(batch)
        meta, label_info = layout.ClassifierMeta.from_address(added), layout.LabelInfo.from_address(info)
        meta.unique_component_id = component_id
        meta.classifier_type = kind
        if len(text) < layout.LABEL_SIZE:
            label_info.label = text
        else:
            label_info.long_label = library.duplicate(text)
        label_info.class_id, label_info.probability = class_id, probability
        library.add_label(added, info)
        library.add_classifier(address, added)

    def columns(self, target: Any, component_id: int) -> ObjectColumns:
        """The frame's objects of one component, from copies of their structs."""
        size = ctypes.sizeof(layout.ObjectMeta)
        table = np.frombuffer(b"".join(ctypes.string_at(item, size) for item in _objects(target)), _COLUMNS)
        places = np.flatnonzero(table["component"] == component_id)
        own = table[places]
        labels = [label.split(b"\0", 1)[0].decode(errors="replace") for label in own["label"].tolist()]
        rects = own[["left", "top", "width", "height", "degrees"]].tolist()
        return ObjectColumns(places.tolist(), own["class"].tolist(), own["track"].tolist(), labels, rects)

    def _interned(self, text: str) -> int:
        """The address of a C string that nobody frees."""
        if text not in self._texts:
            self._texts[text] = self._library.intern(text.encode())
        return self._texts[text]

    def set_detector_box(self, target: Any, left: float, top: float, width: float, height: float) -> None:
        """The detector's box, which nvtracker reads."""
        layout.ObjectMeta.from_address(struct_of(target)).detector_box = layout.Box(left, top, width, height)

    def detector_box(self, target: Any) -> tuple[float, float, float, float] | None:
        """Left, top, width and height of the detector's box; None if no detector wrote one."""
        box = layout.ObjectMeta.from_address(_object(target)).detector_box
        values = (box.left, box.top, box.width, box.height)
        return values if any(values) else None

    def set_mask(self, target: Any, mask: FloatArray, threshold: float) -> None:
        """A copy of ``mask`` in memory that DeepStream frees; the object's previous mask is freed."""
        params = layout.ObjectMeta.from_address(_object(target)).mask
        if params.size:
            self._library.free(params.data)
        params.data = self._library.allocate(mask.nbytes)
        packed = np.ascontiguousarray(mask, np.float32)
        ctypes.memmove(params.data, packed.ctypes.data, packed.nbytes)
        params.size, params.threshold = packed.nbytes, threshold
        params.height, params.width = packed.shape

    def mask(self, target: Any) -> tuple[FloatArray, float] | None:
        """A copy of the mask, and its threshold, if there is one."""
        params = layout.ObjectMeta.from_address(_object(target)).mask
        count = params.width * params.height
        if not params.data or not count or params.size < count * _FLOAT:
            return None
        values = np.frombuffer(ctypes.string_at(params.data, count * _FLOAT), np.float32)
        return values.reshape(params.height, params.width), params.threshold

    def is_bare(self, target: Any) -> bool:
        """Whether nothing is attached to an object: no classifier's label, no mask, no parent, nothing of a user."""
        address = struct_of(target)
        return not any(ctypes.c_uint64.from_address(address + pointer).value for pointer in _ATTACHED)

    def set_parent(self, target: Any, parent: Any) -> None:
        """Set ``parent`` of an object that was added to a frame; adding clears it."""
        layout.ObjectMeta.from_address(_object(target)).parent = _object(parent)

    def lineage(self, target: Any) -> tuple[int, int]:
        """Numbers for the object and for its parent, 0 if it has none.

        The pointer is not followed: it may be that of a batch that is gone.
        """
        address = _object(target)
        return address, layout.ObjectMeta.from_address(address).parent or 0

    # --- frames -------------------------------------------------------------------------------------------------------

    def mark_inferred(self, target: Any) -> None:
        """Set ``bInferDone``."""
        layout.FrameMeta.from_address(_frame(target)).infer_done = 1

    def remove_objects(self, target: Any, predicate: Callable[[Any], Any]) -> int:
        """Remove the objects for which ``predicate`` holds, with all that they own; the number of them."""
        frame = _frame(target)
        doomed = {struct_of(item) for item in target.object_items if predicate(item)}
        if not doomed:
            return 0
        for address in _objects(target):
            meta = layout.ObjectMeta.from_address(address)
            if meta.parent in doomed:
                meta.parent = None
        for address in doomed:
            self._library.remove_object(frame, address)
        return len(doomed)


def _object(handle: Any) -> int:
    """The address of an object's struct. Another struct, taken for one, would be written to in the wrong places.

    Raises:
        TypeError: if ``handle`` stands for something else.
    """
    address = struct_of(handle)
    if _meta_type(address) != layout.OBJECT_META:
        raise TypeError(f"an ObjectMetadata is needed, not a {type(handle).__name__}")
    return address


def _frame(handle: Any) -> int:
    """As `_object`, of a frame."""
    address = struct_of(handle)
    if _meta_type(address) != layout.FRAME_META:
        raise TypeError(f"a FrameMetadata is needed, not a {type(handle).__name__}")
    return address


def _objects(frame_meta: Any) -> list[int]:
    """Addresses of a frame's objects, in the order of ``object_items``."""
    return list(layout.list_items(layout.FrameMeta.from_address(_frame(frame_meta)).objects))


def _meta_type(address: int) -> int:
    return ctypes.c_int32.from_address(address + _TYPE).value


def _text(user: int) -> str:
    text = ctypes.c_char_p.from_address(user + _TEXT).value
    return (text or b"").decode()

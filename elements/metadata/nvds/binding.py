"""The functions of the libnvds_meta.so that pyservicemaker uses, once its structs are known to be as `layout` says."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from ctypes import CDLL, Structure, c_char_p, c_int, c_size_t, c_uint, c_void_p, sizeof
from typing import Any

from elements.metadata.nvds import layout
from elements.metadata.nvds.callbacks import Callbacks, string_callbacks
from elements.metadata.nvds.memory import peek

log = logging.getLogger("gstorch.metadata")

LIBRARY = "libnvds_meta.so"
WITHOUT = (
    "Not written: detector boxes, masks, classifier labels, inference marks. The functions of elements.metadata.edit "
    "will raise. Known are DeepStream 9.x and its pyservicemaker"
)

_POOLS: dict[str, type[Structure]] = {
    "frame_pool": layout.FrameMeta,
    "object_pool": layout.ObjectMeta,
    "classifier_pool": layout.ClassifierMeta,
    "user_pool": layout.UserMeta,
    "label_pool": layout.LabelInfo,
}


class UnusableLibraryError(Exception):
    """The library is not there, or not as this binding knows it."""


class Library:
    """Functions of libnvds_meta and GLib under short names. All of libnvds_meta's lock the batch by themselves.

    They are called without the GIL, because they can wait for the batch's lock.

    Raises:
        UnusableLibraryError: if a function is missing, a struct has another size, or there is no executable memory.
    """

    def __init__(self, nvds: CDLL) -> None:
        pointer, nothing = c_void_p, None
        try:
            self._create = _function(nvds, "nvds_create_batch_meta", pointer, c_uint)
            self._destroy = _function(nvds, "nvds_destroy_batch_meta", c_int, pointer)
            self.acquire_user = _function(nvds, "nvds_acquire_user_meta_from_pool", pointer, pointer)
            self.acquire_classifier = _function(nvds, "nvds_acquire_classifier_meta_from_pool", pointer, pointer)
            self.acquire_label = _function(nvds, "nvds_acquire_label_info_meta_from_pool", pointer, pointer)
            self.add_label = _function(nvds, "nvds_add_label_info_meta_to_classifier", nothing, pointer, pointer)
            self.add_classifier = _function(nvds, "nvds_add_classifier_meta_to_object", nothing, pointer, pointer)
            self.remove_object = _function(nvds, "nvds_remove_obj_meta_from_frame", nothing, pointer, pointer)
            self._user_meta_type = _function(nvds, "nvds_get_user_meta_type", c_int, pointer)
            self.add_user = {
                layout.BATCH_META: _function(nvds, "nvds_add_user_meta_to_batch", nothing, pointer, pointer),
                layout.FRAME_META: _function(nvds, "nvds_add_user_meta_to_frame", nothing, pointer, pointer),
                layout.OBJECT_META: _function(nvds, "nvds_add_user_meta_to_obj", nothing, pointer, pointer),
            }
            self.remove_user = {
                layout.BATCH_META: _function(nvds, "nvds_remove_user_meta_from_batch", nothing, pointer, pointer),
                layout.FRAME_META: _function(nvds, "nvds_remove_user_meta_from_frame", nothing, pointer, pointer),
                layout.OBJECT_META: _function(nvds, "nvds_remove_user_meta_from_object", nothing, pointer, pointer),
            }
            glib = CDLL("libglib-2.0.so.0")
            self.allocate = _function(glib, "g_malloc", pointer, c_size_t)
            self.free = _function(glib, "g_free", nothing, pointer)
            self.duplicate = _function(glib, "g_strdup", pointer, c_char_p)
            self.intern = _function(glib, "g_intern_string", pointer, c_char_p)
            self.callbacks: Callbacks = string_callbacks()
        except (AttributeError, OSError) as error:
            raise UnusableLibraryError(str(error)) from error
        self._check_layout()

    def user_meta_type(self, name: str) -> int:
        """The number of a user meta type; the same name gives the same number in one process.

        The library keeps the pointer that it is given, so it gets one that lives as long as the process.
        """
        return int(self._user_meta_type(self.intern(name.encode())))

    def _check_layout(self) -> None:
        batch = self._create(1)
        try:
            problem = self._layout_problem(batch)
        finally:
            self._destroy(batch)
        if problem:
            raise UnusableLibraryError(problem)

    def _layout_problem(self, batch: int) -> str:
        """What is not as `layout` says about a batch that the library made. It is looked at without trust."""
        image = peek(batch, sizeof(layout.BatchMeta))
        if image is None:
            return "the memory of the process cannot be read (/proc/self/mem)"
        meta = layout.BatchMeta.from_buffer_copy(image)
        if meta.base.meta_type != layout.BATCH_META or meta.base.batch_meta != batch:
            return "NvDsBatchMeta does not begin as expected"
        for pool, struct in _POOLS.items():
            image = peek(getattr(meta, pool) or 0, sizeof(layout.MetaPool))
            size = layout.MetaPool.from_buffer_copy(image).element_size if image else None
            if size != sizeof(struct):
                return f"NvDs{struct.__name__} has {size} bytes, {sizeof(struct)} are expected"
        return ""


@functools.cache
def library() -> Library | None:
    """The binding of the libnvds_meta.so that this process has loaded; ``None``, after one warning, if unusable."""
    try:
        return Library(_loaded())
    except UnusableLibraryError as error:
        log.warning("DeepStream metadata: %s cannot be used (%s). %s", LIBRARY, error, WITHOUT)
        return None


def _loaded() -> CDLL:
    """The library as pyservicemaker brought it in. A second copy would not know the first one's batches."""
    try:
        return CDLL(LIBRARY, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        raise UnusableLibraryError("pyservicemaker has not loaded it") from None


def _function(library: CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function: Any = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function  # type: ignore[no-any-return]

"""How a `BatchMeta` travels through GStreamer: on an opaque buffer, in one custom meta.

The buffer's own bytes mean nothing (DeepStream's batched buffer holds a handle there, too); the pictures are in
``BatchMeta.surfaces``. The meta has no tags, so GStreamer copies it wherever a buffer is copied. Copies share one
Python object; `writable_batch` gives a copy a batch of its own before somebody writes.

Writing a structure goes through ctypes because PyGObject hands out copies of structures: setting a value on such a
copy succeeds and stores nothing. ``PyDLL`` keeps the GIL, which is right for calls of less than a microsecond; calls
that can block (a push) go through ``CDLL``, which frees it.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from elements.base import ElementError, GObject, Gst
from elements.portable.meta import BatchMeta
from elements.portable.wrapping import buffer_at, buffer_times

_META = "GstorchBatchMeta"
_META_C = _META.encode()
_FIELD = b"batch"
OPAQUE_SIZE = 64
_REFCOUNT_OFFSET = 8  # GstMiniObject: GType type, gint refcount

_OBJECT_TYPE = 80  # G_TYPE_OBJECT: a fundamental type, its number is fixed

_quick = ctypes.PyDLL("libgstreamer-1.0.so.0")
_blocking = ctypes.CDLL("libgstreamer-1.0.so.0")
_gobject = ctypes.PyDLL("libgobject-2.0.so.0")

_Pointer = ctypes.c_void_p


class _GValue(ctypes.Structure):
    _fields_ = (("g_type", ctypes.c_size_t), ("data", ctypes.c_uint64 * 2))


def _function(library: ctypes.CDLL, name: str, result: type | None, *arguments: type) -> Callable[..., Any]:
    function: Any = getattr(library, name)
    function.restype, function.argtypes = result, list(arguments)
    return function  # type: ignore[no-any-return]


_new_buffer = _function(_quick, "gst_buffer_new_allocate", _Pointer, _Pointer, ctypes.c_size_t, _Pointer)
_add_custom_meta = _function(_quick, "gst_buffer_add_custom_meta", _Pointer, _Pointer, ctypes.c_char_p)
_get_custom_meta = _function(_quick, "gst_buffer_get_custom_meta", _Pointer, _Pointer, ctypes.c_char_p)
_meta_structure = _function(_quick, "gst_custom_meta_get_structure", _Pointer, _Pointer)
_set_parent_refcount = _function(_quick, "gst_structure_set_parent_refcount", ctypes.c_int, _Pointer, _Pointer)
_get_value = _function(_quick, "gst_structure_get_value", _Pointer, _Pointer, ctypes.c_char_p)
_set_value = _function(_quick, "gst_structure_set_value", None, _Pointer, ctypes.c_char_p, _Pointer)
_unref = _function(_quick, "gst_mini_object_unref", None, _Pointer)
_is_writable = _function(_quick, "gst_mini_object_is_writable", ctypes.c_int, _Pointer)
_pad_push = _function(_blocking, "gst_pad_push", ctypes.c_int, _Pointer, _Pointer)
_value_init = _function(_gobject, "g_value_init", _Pointer, _Pointer, ctypes.c_size_t)
_value_set_object = _function(_gobject, "g_value_set_object", None, _Pointer, _Pointer)
_value_unset = _function(_gobject, "g_value_unset", None, _Pointer)

_lock = threading.RLock()  # one thread may look at a meta while another gives the same buffer a batch of its own


class _Holder(GObject.Object):
    """What the meta's structure keeps: a GObject, so that GStreamer frees it without a Python callback."""

    __gtype_name__ = "GstorchBatchHolder"

    def __init__(self, batch: BatchMeta) -> None:
        super().__init__()
        self.batch = batch
        _holders[hash(self)] = self

    @property
    def buffers(self) -> int:
        """How many buffers have it: GStreamer's copies of a buffer share it. One reference is Python's."""
        return int(self.__grefcount__) - 1


# By address. PyGObject keeps the Python half, which has attributes, as long as GStreamer keeps the GObject.
_holders: weakref.WeakValueDictionary[int, _Holder] = weakref.WeakValueDictionary()


def attach_batch(buffer: Gst.Buffer, batch: BatchMeta) -> None:
    """Attach ``batch`` to ``buffer`` (in place of the one that is there, if any) and make the buffer its owner.

    Raises:
        RuntimeError: if GStreamer refuses to add the meta.
    """
    _attach(hash(buffer), batch)


def _attach(address: int, batch: BatchMeta) -> None:
    with _lock:
        meta = _get_custom_meta(address, _META_C) or _add_custom_meta(address, _registered())
        if not meta:
            raise RuntimeError(f"GStreamer added no {_META} to buffer {address:#x}; is the buffer writable?")
        structure = _meta_structure(meta)
        value = _GValue()
        holder = _Holder(batch)
        # The structure refuses a change while its buffer has a second reference, and a pad probe's wrapper is one.
        _set_parent_refcount(structure, None)
        _value_init(ctypes.byref(value), _OBJECT_TYPE)
        _value_set_object(ctypes.byref(value), hash(holder))
        _set_value(structure, _FIELD, ctypes.byref(value))
        _value_unset(ctypes.byref(value))
        _set_parent_refcount(structure, address + _REFCOUNT_OFFSET)
        batch.owner = address


def batch_of(buffer: Gst.Buffer) -> BatchMeta | None:
    """The batch that ``buffer`` carries, for reading; ``None`` if it carries none.

    Every element and probe asks. Through PyGObject the answer takes three times as long, and each of its calls offers
    the interpreter to another thread.
    """
    return batch_at(hash(buffer))


def batch_at(address: int) -> BatchMeta | None:
    """`batch_of` the buffer at ``address``."""
    with _lock:
        holder = _holder_at(address)
        return None if holder is None else holder.batch


def _holder_at(address: int) -> _Holder | None:
    """What the buffer at ``address`` carries; with the lock held."""
    meta = _get_custom_meta(address, _META_C)
    if not meta:
        return None
    return _holders[_GValue.from_address(_get_value(_meta_structure(meta), _FIELD)).data[0]]


def own_batch_at(address: int) -> BatchMeta | None:
    """The batch of the buffer at ``address``, for writing; ``None`` if it carries none.

    A buffer that is a copy (as a tee's branches make) or has been copied gets a batch of its own first.
    """
    with _lock:
        holder = _holder_at(address)
        if holder is None:
            return None
        batch = holder.batch
        if batch.owner != address or holder.buffers > 1:
            batch = batch.clone()
            _attach(address, batch)
        return batch


def writable_batch(buffer: Gst.Buffer) -> BatchMeta:
    """`own_batch_at` of ``buffer``.

    Raises:
        ElementError: if the buffer carries no batch.
    """
    batch = own_batch_at(hash(buffer))
    if batch is None:
        raise ElementError("the buffer carries no batch metadata; put an nvstreammux before this element")
    return batch


def detached_batch(buffer: Gst.Buffer, target: Gst.Buffer | None = None) -> BatchMeta | None:
    """The batch of ``buffer``, a vfunc's argument, to be changed and moved to a new buffer; ``None`` if it has none.

    It is a clone when somebody else may still look at the buffer's own. That is not ``target``, the new buffer, onto
    which GStreamer has copied it already.
    """
    with _lock:
        holder = _holder_at(hash(buffer))
        if holder is None:
            return None
        known = 1 if target is None or _holder_at(hash(target)) is not holder else 2
        batch = holder.batch
        alone = batch.owner == hash(buffer) and holder.buffers == known and is_writable(buffer)
        return batch if alone else batch.clone()


def new_batch_buffer(batch: BatchMeta, pts: int, duration: int) -> Gst.Buffer:
    """An opaque buffer that owns ``batch``. Times in nanoseconds, ``Gst.CLOCK_TIME_NONE`` where there is none."""
    address = _new(batch, pts, duration)
    buffer = buffer_at(address)
    _unref(address)
    return buffer


def _new(batch: BatchMeta, pts: int, duration: int) -> int:
    """`new_batch_buffer` as an address; its reference is the caller's."""
    address: int = _new_buffer(None, OPAQUE_SIZE, None)
    times = buffer_times(address)
    times.pts, times.duration = pts, duration
    _attach(address, batch)
    return address


def is_writable(buffer: Gst.Buffer) -> bool:
    """Whether ``buffer``, an argument of a vfunc, has no second owner. PyGObject's wrapper of an argument adds none."""
    return bool(_is_writable(hash(buffer)))


def push_batch(pad: Gst.Pad, batch: BatchMeta, pts: int, duration: int) -> Gst.FlowReturn:
    """Push ``batch`` on ``pad`` in a new buffer, of which the receiver is the only owner.

    ``Gst.Pad.push`` would keep the wrapper's reference until it returns, so that every element that works in place
    would have to copy the buffer and its metadata.
    """
    return Gst.FlowReturn(_pad_push(hash(pad), _new(batch, pts, duration)))


@functools.cache
def _registered() -> bytes:
    """The meta's name, registered with GStreamer (once per process)."""
    if Gst.Meta.get_info(_META) is None:
        Gst.Meta.register_custom(_META, [], None, None)
    return _META_C

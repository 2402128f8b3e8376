"""pyinfer: runs a model on every frame of a batch and writes what it finds into the batch's metadata."""

from __future__ import annotations

import importlib
import itertools
import logging
import weakref
from typing import Any, cast

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    Gst,
    GstBase,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    post_warning,
    sink_and_src,
    trace_of,
)
from elements.frames import BatchFrame, FrameReader
from elements.held_buffer import HeldBuffer
from elements.inference.errors import InferenceError, ModelError
from elements.inference.session import ANY_ERROR, Found, Pending, Session
from elements.metadata.edit import find_editor
from elements.metadata.writer import write_detections
from elements.overlap import Overlap
from elements.pyinfer_options import PROPERTIES, Options, resolve_options

log = logging.getLogger("gstorch.pyinfer")

FACTORY = "pyinfer"
_instances: weakref.WeakValueDictionary[int, PyInfer] = weakref.WeakValueDictionary()  # in the order they were made
_serial = itertools.count()
_LIVE = {"confidence-threshold": "confidence", "iou-threshold": "iou"}  # property -> threshold of the session
_COUNTERS = ("frames-inferred", "frames-failed", "nan-count")
_KEPT = Gst.FlowReturn.CUSTOM_SUCCESS  # GST_BASE_TRANSFORM_FLOW_DROPPED: not pushed by the base class
_OnItsWay = tuple[HeldBuffer, Pending]


class PyInfer(PropertyTable, GstBase.BaseTransform):
    """Inference in Python, in place: pixels are read, only metadata is written.

    With a model that `Session.overlaps`, the streaming thread only submits batches; `Overlap` collects, writes and
    pushes them. Serialised events wait until it has done so, so that their order stays.
    """

    __gtype_name__ = "PyInfer"
    __gstmetadata__ = ("Python inference", "Filter/Video", "Runs a model of your own on each frame of a batch", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ RGB, RGBA, NV12, I420 }}")
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        _instances[next(_serial)] = self
        self.init_properties()
        self.set_in_place(True)
        self._session: Session | None = None
        self._overlap: Overlap[_OnItsWay] | None = None
        self._left_to_skip: dict[int, int] = {}  # by source id
        self._api: Any = None

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @guarded(False)
    def do_start(self) -> bool:
        self._left_to_skip.clear()
        self.values.update(dict.fromkeys(_COUNTERS, 0))
        self._api = _pyservicemaker()
        self._reader = FrameReader(self, self._api)
        try:
            options = resolve_options(self.values, self.user_set)
            session = Session(options.model, options.on_error, self._warn)
            session.open()
        except ModelError as error:
            raise ElementError(str(error)) from error.__cause__
        self._options = options
        self._show_in_force(options)
        self._session = session
        if session.overlaps:
            self._overlap = Overlap(f"{self.get_name()}-results", self._finish, _release)
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        overlap, self._overlap = self._overlap, None
        if overlap is not None:
            overlap.stop()
        session, self._session = self._session, None
        try:
            if session is not None:
                session.close()
        except ANY_ERROR as error:  # nothing depends on it any more
            log.error("%s: the model fails in close(): %s", self.get_name(), trace_of(error))
        return True

    def _show_in_force(self, options: Options) -> None:
        """Let properties tell what is in force, wherever it came from."""
        self.values["confidence-threshold"] = options.model.confidence
        self.values["iou-threshold"] = options.model.iou
        self.values["interval"] = options.interval
        self.values["unique-id"] = options.unique_id
        self.values["on-error"] = options.on_error

    def property_changed(self, name: str, value: Any) -> None:
        if self._session is None:
            return
        if name in _LIVE:
            self._session.set_threshold(_LIVE[name], value)
        elif name != "interval":  # which is read for every frame
            log.warning("%s: %s takes effect at the next start", self.get_name(), name)

    def _warn(self, text: str, culprit: BaseException) -> None:
        post_warning(self, f"{self.get_name()}: {text}", trace_of(culprit))

    # --- the streaming thread -----------------------------------------------------------------------------------------

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        assert self._session is not None
        flow = Gst.FlowReturn.OK if self._overlap is None else self._overlap.wait_for_room()
        if flow != Gst.FlowReturn.OK:
            return flow
        frames = [frame for frame in self._reader.frames_of(buffer) if self._is_due(frame)]
        pending = self._session.submit(frames)
        if self._overlap is None:
            self._write(buffer, self._collect(pending))
            return flow
        self._overlap.put((HeldBuffer(buffer), pending))
        return _KEPT

    def _is_due(self, frame: BatchFrame) -> bool:
        """Whether this frame is one to infer: of each source the first, then every (interval + 1)-th."""
        left = min(self._left_to_skip.get(frame.source_id, 0), self.values["interval"])
        self._left_to_skip[frame.source_id] = self.values["interval"] if left == 0 else left - 1
        return bool(left == 0)

    @guarded(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        overlap = self._overlap
        if overlap is not None:
            if event.type == Gst.EventType.FLUSH_START:
                overlap.flush()
            elif event.type == Gst.EventType.FLUSH_STOP:
                overlap.reset()
            elif Gst.EventType.get_flags(event.type) & Gst.EventTypeFlags.SERIALIZED:
                overlap.drain()
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    # --- the streaming thread, or that of the overlap -----------------------------------------------------------------

    @guarded(Gst.FlowReturn.ERROR)
    def _finish(self, item: _OnItsWay) -> Gst.FlowReturn:
        held, pending = item
        try:
            self._write(held.buffer, self._collect(pending))
        except BaseException:
            held.release()
            raise
        return held.push(self.srcpad)

    def _collect(self, pending: Pending) -> Found:
        """What the model found.

        Raises:
            ElementError: if it fails and ``on-error`` is ``stop``.
        """
        session = self._session
        assert session is not None
        try:
            return session.collect(pending) if pending.frames else []
        except InferenceError as error:
            raise ElementError(str(error)) from error.__cause__
        finally:
            counts = (session.frames_inferred, session.frames_failed, session.nan_count)
            self.values.update(zip(_COUNTERS, counts, strict=True))

    def _write(self, buffer: Gst.Buffer, found: Found) -> None:
        if not found:
            return
        assert self._session is not None
        by_batch_id = {frame.batch_id: (frame, detections) for frame, detections in cast(Any, found)}
        names = self._session.names
        batch_meta = self._api.Buffer(buffer).batch_meta
        for frame_meta in batch_meta.frame_items:
            if frame_meta.batch_id not in by_batch_id:
                continue
            frame, detections = by_batch_id[frame_meta.batch_id]
            write_detections(
                batch_meta, frame_meta, detections, frame.placement, names, self._options.unique_id, self._api.osd
            )
            editor = find_editor(frame_meta)
            if editor is not None:
                editor.mark_inferred(frame_meta)


def _release(item: _OnItsWay) -> None:
    """Let go a buffer that will not be pushed."""
    item[0].release()


def top_level_of(name: str) -> Gst.Pipeline | None:
    """The pipeline that holds the newest inference element of that name in this process, ``None`` if there is none."""
    for element in reversed(list(_instances.values())):
        top: Gst.Object = element
        while top.get_parent() is not None:
            top = top.get_parent()
        if element.get_name() == name and isinstance(top, Gst.Pipeline):
            return top
    return None


def register() -> None:
    """Make the factory ``pyinfer`` known in this process. Harmless if it is known already."""
    if Gst.ElementFactory.find(FACTORY) is None:
        Gst.Element.register(None, FACTORY, Gst.Rank.NONE, PyInfer)


def _pyservicemaker() -> Any:
    """NVIDIA's pyservicemaker, or the portable one where there is none (or where the runtime put it in its place)."""
    try:
        return importlib.import_module("pyservicemaker")
    except ImportError:
        return importlib.import_module("elements.portable.pyservicemaker")

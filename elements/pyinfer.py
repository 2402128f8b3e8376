"""pyinfer: runs a model on every frame of a batch and writes what it finds into the batch's metadata."""

from __future__ import annotations

import functools
import itertools
import logging
import weakref
from collections.abc import Sequence
from typing import Any

from elements.api import pyservicemaker
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
from elements.frames import BatchFrame, FrameReader, refuse_rgba
from elements.frames_at_work import FramesAtWork, FrameWork
from elements.held_buffer import HeldBuffer
from elements.inference.errors import InferenceError, ModelError
from elements.inference.result import GroupResult
from elements.inference.session import Pending, Session
from elements.live_changes import LiveChanges
from elements.objects_at_work import ANNOTATIONS, Finders, ObjectsAtWork, ObjectWork, Said
from elements.overlap import Overlap
from elements.portable.stream_events import ended_stream
from elements.pyinfer_options import PROPERTIES, Options, resolve_options

log = logging.getLogger("gstorch.pyinfer")

FACTORY = "pyinfer"
_instances: weakref.WeakValueDictionary[int, PyInfer] = weakref.WeakValueDictionary()  # in the order they were made
_serial = itertools.count()
_COUNTERS = ("frames-inferred", "frames-failed", "nan-count")
_KEPT = Gst.FlowReturn.CUSTOM_SUCCESS  # GST_BASE_TRANSFORM_FLOW_DROPPED: not pushed by the base class
_OnItsWay = tuple[HeldBuffer, FrameWork | ObjectWork, Pending]


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
        self.live = LiveChanges(self, self.values, self.user_set)
        self._session: Session | None = None
        self._overlap: Overlap[_OnItsWay] | None = None
        self.failed_by_source: dict[int, int] = {}  # frames that were skipped, by source id
        self._left_to_skip: dict[int, int] = {}  # by source id
        self._api: Any = None

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @guarded(False)
    def do_start(self) -> bool:
        self._left_to_skip.clear()
        self.values.update(dict.fromkeys(_COUNTERS, 0))
        self.failed_by_source = {}
        self._api = pyservicemaker()
        try:
            options = resolve_options(self.values, self.user_set)
        except ModelError as error:
            raise ElementError(str(error)) from None
        try:
            session = Session(
                options.model,
                options.on_error,
                self._warn,
                options.swap_options,
                options.source_options,
                self.live.notify,
            )
            session.open()
        except ModelError as error:
            raise ElementError(str(error)) from error.__cause__
        self._options = options
        self._show_in_force(options)
        self._session = session
        self.live.begin(session, options)
        self._reader = FrameReader(self, self._api, options.source_names)
        self._work = self._open_work(options, session.task)
        if session.overlaps:
            self._overlap = Overlap(f"{self.get_name()}-results", self._finish, self._drop)
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        overlap, self._overlap = self._overlap, None
        if overlap is not None:
            overlap.stop()
        session, self._session = self._session, None
        self.live.end()
        if session is not None:
            session.close()
        return True

    def _open_work(self, options: Options, task: str) -> FramesAtWork | ObjectsAtWork:
        """What the model is given of each batch, and where its answers go."""
        said = Said(task, self.get_name(), options.unique_id, options.class_offset)
        if options.operate_on is None:
            return FramesAtWork(said, self._api)
        finders = functools.partial(_finders_of, self, options.operate_on.id)
        return ObjectsAtWork(options.operate_on, said, self._api, finders)

    def _show_in_force(self, options: Options) -> None:
        """Let properties tell what is in force, wherever it came from."""
        self.values["confidence-threshold"] = options.model.confidence
        self.values["iou-threshold"] = options.model.iou
        self.values["interval"] = options.interval
        self.values["unique-id"] = options.unique_id
        self.values["on-error"] = options.on_error

    def property_changed(self, name: str, value: Any) -> None:
        self.live.property_changed(name, value)

    def _warn(self, text: str, culprit: BaseException) -> None:
        post_warning(self, f"{self.get_name()}: {text}", trace_of(culprit))

    # --- the streaming thread -----------------------------------------------------------------------------------------

    @guarded(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        """Refuse RGBA, which DeepStream cannot hand to Python, on every runtime: the template lets it in to say so."""
        refuse_rgba(incaps)
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        assert self._session is not None
        flow = Gst.FlowReturn.OK if self._overlap is None else self._overlap.wait_for_room()
        if flow != Gst.FlowReturn.OK:
            return flow
        frames = self._reader.frames_of(buffer)
        work = self._work.plan(buffer, frames, self._due(frames))
        pending = self._session.submit(work.pictures)
        if self._overlap is None:
            self._write(buffer, work, self._collect(pending))
            return flow
        self._overlap.put((HeldBuffer(buffer), work, pending))
        return _KEPT

    def _due(self, frames: Sequence[BatchFrame]) -> set[int]:
        """Batch ids of the frames to infer."""
        assert self._session is not None
        if not self.values["interval"] and not self._session.sources:
            self._left_to_skip.clear()
            return {frame.batch_id for frame in frames}
        return {frame.batch_id for frame in frames if self._is_due(frame)}

    def _is_due(self, frame: BatchFrame) -> bool:
        """Whether this frame is one to infer: of each source the first, then every (interval + 1)-th."""
        assert self._session is not None
        own = self._session.source(frame.source_id).interval
        interval = self.values["interval"] if own is None else own
        left = min(self._left_to_skip.get(frame.source_id, 0), interval)
        self._left_to_skip[frame.source_id] = interval if left == 0 else left - 1
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
        self._forget(event)
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    def _forget(self, event: Gst.Event) -> None:
        """Drop what is kept of a source that has ended; it is known by the pad of the mux that it came through."""
        ended = ended_stream(event)
        if ended is None or self._session is None:
            return
        source_id = self._reader.source_of_pad(ended)
        if source_id is not None:
            self._session.forget(source_id)
            self._work.forget(source_id)

    # --- the streaming thread, or that of the overlap -----------------------------------------------------------------

    @guarded(Gst.FlowReturn.ERROR)
    def _finish(self, item: _OnItsWay) -> Gst.FlowReturn:
        held, work, pending = item
        try:
            self._write(held.buffer, work, self._collect(pending))
        except BaseException:
            held.release()
            raise
        return held.push(self.srcpad)

    def _collect(self, pending: Pending) -> list[GroupResult]:
        """What the model found.

        Raises:
            ElementError: if it fails and ``on-error`` is ``stop``.
        """
        session = self._session
        assert session is not None
        try:
            return session.collect_groups(pending)
        except InferenceError as error:
            raise ElementError(str(error)) from error.__cause__
        finally:
            counts = (session.frames_inferred, session.failed_by_source.total(), session.nan_count)
            self.values.update(zip(_COUNTERS, counts, strict=True))
            self.failed_by_source = dict(session.failed_by_source)

    def _write(self, buffer: Gst.Buffer, work: FrameWork | ObjectWork, found: list[GroupResult]) -> None:
        self._work.write(buffer, work, found)  # type: ignore[arg-type]  # its own plan comes back

    def _drop(self, item: _OnItsWay) -> None:
        """Let go a buffer that will not be pushed."""
        assert self._session is not None
        self._session.discard(item[2])
        item[0].release()


def _finders_of(element: PyInfer, unique_id: int) -> Finders:
    """The inference elements with that id in the pipeline of ``element``: merged stages share one."""
    names: dict[str, None] = {}
    labelling: dict[str, str] = {}
    finding = 0
    for other in list(_instances.values()):
        session, options = other._session, getattr(other, "_options", None)
        if (
            session is None
            or options is None
            or options.unique_id != unique_id
            or _top_of(other) is not _top_of(element)
        ):
            continue
        names |= dict.fromkeys(session.all_names)
        if options.operate_on is not None and session.task in ANNOTATIONS:
            labelling[other.get_name()] = session.task
        else:
            finding += 1
    return Finders(tuple(names), labelling, finding)


def _top_of(element: Gst.Element) -> Gst.Object:
    top: Gst.Object = element
    while top.get_parent() is not None:
        top = top.get_parent()
    return top


def top_level_of(name: str) -> Gst.Pipeline | None:
    """The pipeline that holds the newest inference element of that name in this process, ``None`` if there is none."""
    for element in reversed(list(_instances.values())):
        top = _top_of(element)
        if element.get_name() == name and isinstance(top, Gst.Pipeline):
            return top
    return None


def register() -> None:
    """Make the factory ``pyinfer`` known in this process. Harmless if it is known already."""
    if Gst.ElementFactory.find(FACTORY) is None:
        Gst.Element.register(None, FACTORY, Gst.Rank.NONE, PyInfer)

"""pyinfer: runs a model on every frame of a batch and writes what it finds into the batch's metadata."""

from __future__ import annotations

import importlib
import itertools
import logging
import weakref
from collections.abc import Sequence
from typing import Any

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
from elements.inference.answer import checked_answer
from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.model import FrameError, Model, open_model
from elements.metadata.detections import Detections
from elements.metadata.edit import find_editor
from elements.metadata.writer import write_detections
from elements.pyinfer_options import PROPERTIES, Options, resolve_options

log = logging.getLogger("gstorch.pyinfer")

FACTORY = "pyinfer"
# A model of one's own may call sys.exit(), which on a streaming thread would end nothing but the thread.
_ANY = (Exception, SystemExit)
_instances: weakref.WeakValueDictionary[int, PyInfer] = weakref.WeakValueDictionary()  # in the order they were made
_serial = itertools.count()
_LIVE = {"confidence-threshold": "confidence", "iou-threshold": "iou"}  # property -> attribute of the model


class PyInfer(PropertyTable, GstBase.BaseTransform):
    """Inference in Python, in place: pixels are read, only metadata is written."""

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
        self._model: Model | None = None
        self._left_to_skip: dict[int, int] = {}  # by source id
        self._broken = 0  # rows left out here, beside those that the model counts itself
        self._api: Any = None

    # --- life cycle ---------------------------------------------------------------------------------------------------

    @guarded(False)
    def do_start(self) -> bool:
        self._left_to_skip.clear()
        self._broken = 0
        self.values.update({"frames-inferred": 0, "frames-failed": 0, "nan-count": 0})
        self._api = _pyservicemaker()
        self._reader = FrameReader(self, self._api)
        try:
            options = resolve_options(self.values, self.user_set)
            model = _loaded(options.model)
        except ModelError as error:
            raise ElementError(str(error)) from error.__cause__
        self._options = options
        self._show_in_force(options)
        self._model = model
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        model, self._model = self._model, None
        try:
            if model is not None:
                model.close()
        except _ANY as error:  # nothing depends on it any more
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
        if self._model is None:
            return
        if name in _LIVE:
            setattr(self._model, _LIVE[name], value)
        elif name != "interval":  # which is read for every frame
            log.warning("%s: %s takes effect at the next start", self.get_name(), name)

    # --- frames -------------------------------------------------------------------------------------------------------

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        frames = [frame for frame in self._reader.frames_of(buffer) if self._is_due(frame)]
        if frames:
            self._write(buffer, self._infer(frames))
        return Gst.FlowReturn.OK

    def _is_due(self, frame: BatchFrame) -> bool:
        """Whether this frame is one to infer: of each source the first, then every (interval + 1)-th."""
        left = min(self._left_to_skip.get(frame.source_id, 0), self.values["interval"])
        self._left_to_skip[frame.source_id] = self.values["interval"] if left == 0 else left - 1
        return bool(left == 0)

    def _infer(self, frames: list[BatchFrame]) -> list[tuple[BatchFrame, Detections]]:
        """The frames that the model could do, and what it found.

        Raises:
            ElementError: if it fails and ``on-error`` is ``stop``.
        """
        found, failure = self._try(frames)
        if failure is None:
            self.values["frames-inferred"] += len(frames)
            return list(zip(frames, found, strict=True))
        if self._options.on_error == "stop":
            raise ElementError(_failure(frames, failure)) from _culprit(failure)
        if len(frames) > 1:  # find out which ones fail, so that only those are lost
            return [done for frame in frames for done in self._infer([frame])]
        self._skip(frames[0], failure)
        return []

    def _try(self, frames: Sequence[BatchFrame]) -> tuple[list[Detections], BaseException | None]:
        try:
            return self._run(frames), None
        except _ANY as error:
            return [], error

    def _run(self, frames: Sequence[BatchFrame]) -> list[Detections]:
        assert self._model is not None
        found, broken = checked_answer(self._model.infer(list(frames)), len(frames))  # a model may sort its list
        if broken and not self._broken:
            log.warning(
                "%s: the model returned %d boxes, scores or angles that are not finite numbers: they are left out and "
                "counted; this is said once",
                self.get_name(),
                broken,
            )
        self._broken += broken
        self.values["nan-count"] = self._broken + getattr(getattr(self._model, "stats", None), "nan", 0)
        return found

    def _skip(self, frame: BatchFrame, error: BaseException) -> None:
        if not self.values["frames-failed"]:
            text = f"{self.get_name()}: {_failure([frame], error)}"
            post_warning(self, f"{text}: this frame is skipped, as others will be", trace_of(_culprit(error)))
        self.values["frames-failed"] += 1

    def _write(self, buffer: Gst.Buffer, done: list[tuple[BatchFrame, Detections]]) -> None:
        by_batch_id = {frame.batch_id: (frame, detections) for frame, detections in done}
        names = getattr(self._model, "names", ())
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


def _loaded(config: ModelConfig) -> Model:
    """The model, ready to infer.

    Raises:
        ModelError: if it cannot be used; with the cause where the model's own code failed.
    """
    try:
        model = open_model(config)
        model.load()
    except ModelError as error:
        raise error from None
    except _ANY as error:
        raise ModelError(f"model '{config.path}' fails to load: {type(error).__name__}: {error}") from error
    return model


def _failure(frames: Sequence[BatchFrame], error: BaseException) -> str:
    """Where and how a model failed. Of several frames only the failing one, if the model tells."""
    if isinstance(error, FrameError):
        where, text = [error.frame], str(error)
    else:
        where, text = list(frames), f"{type(error).__name__}: {error}"
    return "; ".join(f"source {frame.source_id}, frame {frame.frame_number}" for frame in where) + f": {text}"


def _culprit(error: BaseException) -> BaseException:
    """The exception whose trace shows what failed."""
    return error.__cause__ or error if isinstance(error, FrameError) else error


def _pyservicemaker() -> Any:
    """NVIDIA's pyservicemaker, or the portable one where there is none (or where the runtime put it in its place)."""
    try:
        return importlib.import_module("pyservicemaker")
    except ImportError:
        return importlib.import_module("elements.portable.pyservicemaker")

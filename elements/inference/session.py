"""One model at work on a stream of batches: several on their way at a time, what happens when it fails, and counts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elements.inference.answer import checked_answer
from elements.inference.config import ModelConfig
from elements.inference.errors import FrameError, InferenceError, ModelError
from elements.inference.frame import Frame
from elements.inference.model import Model, open_model
from elements.metadata.detections import Detections

log = logging.getLogger("gstorch.inference")

Found = list[tuple[Frame, Detections]]
Report = Callable[[str, BaseException], None]
"""Called with a text for the user and the exception behind it."""

# A model of one's own may call sys.exit(), which on a streaming thread would end nothing but the thread.
ANY_ERROR = (Exception, SystemExit)


@dataclass(slots=True)
class Pending:
    """Frames that a model was given. It keeps the model, so that another one may take its place meanwhile.

    Attributes:
        frames: the frames, in order.
        model: the model that has them.
        work: what its ``submit`` gave; ``None`` if it has none and runs when it is collected.
        failure: what it raised.
    """

    frames: list[Frame]
    model: Model
    work: Any = None
    failure: BaseException | None = None


class Session:
    """Runs the frames of a stream through a model.

    `submit` and `collect` may be called from two threads, each in the same order. A model that works on the CPU runs in
    `collect`.

    >>> session = Session(ModelConfig("yolox_nano_416.onnx"))
    >>> session.open()
    >>> for frame, detections in session.collect(session.submit(frames)): ...

    Args:
        config: the model and its options.
        on_error: when the model fails on a frame: ``stop`` makes `collect` raise, ``skip`` leaves it out and counts it.
        report: is told of the first frame that is skipped.

    Attributes:
        frames_inferred: frames that the model could do.
        frames_failed: frames that were skipped.
    """

    def __init__(self, config: ModelConfig, on_error: str = "stop", report: Report | None = None) -> None:
        self.frames_inferred = 0
        self.frames_failed = 0
        self._config, self._on_error, self._report = config, on_error, report
        self._model: Model | None = None
        self._broken = 0  # rows left out here, beside those that the model counts itself

    # --- life cycle ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Load the model.

        Raises:
            ModelError: if it cannot be used; with the cause where the model's own code failed.
        """
        self._model = _loaded(self._config)

    def close(self) -> None:
        """Close the model.

        Raises:
            Exception: what its ``close`` raises; the session is closed all the same.
        """
        model, self._model = self._model, None
        if model is not None:
            model.close()

    @property
    def is_open(self) -> bool:
        return self._model is not None

    @property
    def overlaps(self) -> bool:
        """Whether the model returns from ``submit`` while it still works, so that the next batch can be made ready."""
        return bool(getattr(self._model, "overlaps", False))

    @property
    def names(self) -> Sequence[str]:
        """Class names by number."""
        return getattr(self._model, "names", ())

    @property
    def task(self) -> str:
        """What the model does, see `elements.inference.tasks`."""
        return str(getattr(self._model, "task", None) or getattr(self._config, "task", "detect"))

    def forget(self, source_id: int) -> None:
        """Tell the model, if it keeps anything, that a source has ended. Nothing of it may be on its way."""
        if hasattr(self._model, "forget"):
            self._model.forget(source_id)

    @property
    def nan_count(self) -> int:
        """Rows of the model's output that were left out as they are no finite numbers."""
        return int(self._broken + getattr(getattr(self._model, "stats", None), "nan", 0))

    def set_threshold(self, name: str, value: float) -> None:
        """Change ``confidence`` or ``iou`` for the frames submitted from now on."""
        if self._model is not None:
            setattr(self._model, name, value)

    # --- frames -------------------------------------------------------------------------------------------------------

    def submit(self, frames: Sequence[Frame]) -> Pending:
        """Give frames to the model. They must stay valid until they are collected. Never raises for the model."""
        assert self._model is not None, "the session is not open"
        pending = Pending(list(frames), self._model)
        if self.overlaps:
            try:
                pending.work = self._model.submit(list(frames))  # type: ignore[attr-defined]
            except ANY_ERROR as error:
                pending.failure = error
        return pending

    def collect(self, pending: Pending) -> Found:
        """The frames that the model could do, and what it found; waits for it.

        Raises:
            InferenceError: if it fails and ``on_error`` is ``stop``.
        """
        frames = pending.frames
        found = self._answer(pending)
        if found is not None:
            self.frames_inferred += len(frames)
            return list(zip(frames, found, strict=True))
        assert pending.failure is not None
        if self._on_error == "stop":
            raise InferenceError(_text_of(frames, pending.failure)) from _culprit(pending.failure)
        if len(frames) > 1:  # find out which ones fail, so that only those are lost
            return [done for frame in frames for done in self.collect(Pending([frame], pending.model))]
        self._skip(frames[0], pending.failure)
        return []

    def _answer(self, pending: Pending) -> list[Detections] | None:
        """What the model found; ``None`` if it failed, and then ``pending.failure`` is set."""
        if pending.failure is not None:
            return None
        model, frames = pending.model, list(pending.frames)  # a model may sort its list
        try:
            answer = model.infer(frames) if pending.work is None else model.collect(pending.work)  # type: ignore[attr-defined]
            found, broken = checked_answer(answer, len(pending.frames))
        except ANY_ERROR as error:
            pending.failure = error
            return None
        if broken and not self._broken:
            log.warning(
                "model '%s' returned %d boxes, scores or angles that are not finite numbers: they are left out and "
                "counted; this is said once",
                self._config.path,
                broken,
            )
        self._broken += broken
        return found

    def _skip(self, frame: Frame, error: BaseException) -> None:
        if not self.frames_failed and self._report is not None:
            self._report(f"{_text_of([frame], error)}: this frame is skipped, as others will be", _culprit(error))
        self.frames_failed += 1


def _loaded(config: ModelConfig) -> Model:
    """The model, ready to infer. Errors as in `Session.open`."""
    try:
        model = open_model(config)
        model.load()
    except ModelError as error:
        raise error from None
    except ANY_ERROR as error:
        raise ModelError(f"model '{config.path}' fails to load: {type(error).__name__}: {error}") from error
    return model


def _text_of(frames: Sequence[Frame], error: BaseException) -> str:
    """Where and how a model failed. Of several frames only the failing one, if the model tells."""
    if isinstance(error, FrameError):
        where, text = [error.frame], str(error)
    else:
        where, text = list(frames), f"{type(error).__name__}: {error}"
    places = dict.fromkeys(f"source {frame.source_id}, frame {frame.frame_number}" for frame in where)
    return "; ".join(places) + f": {text}"  # each once: several may be crops of one frame


def _culprit(error: BaseException) -> BaseException:
    """The exception whose trace shows what failed."""
    return error.__cause__ or error if isinstance(error, FrameError) else error

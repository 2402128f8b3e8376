"""The errors of models: at set-up, and on a frame."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from elements.inference.frame import Frame


class ModelError(Exception):
    """A model cannot be used. The text is complete for the user: which file, what was seen, what to change."""


class FrameError(Exception):
    """A model failed on one frame of a call. ``frame`` is that frame; the cause is chained."""

    def __init__(self, frame: Frame, text: str) -> None:
        super().__init__(text)
        self.frame = frame


class blaming:  # noqa: N801 (a context manager; contextlib's take twice as long, and there is one for each frame)
    """An exception that names no frame becomes one of ``frame``."""

    __slots__ = ("_frame",)

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, FrameError):
            raise FrameError(self._frame, f"{type(error).__name__}: {error}") from error


class InferenceError(Exception):
    """A model failed while it ran. The text says on which frames and how; the cause is what it raised."""


def brief(error: BaseException) -> str:
    """The line of ``error``'s text that says what happened, with its type.

    Libraries put stack traces into it; TorchScript's come before the cause, all others' after it.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no text"]
    if "TorchScript interpreter" in lines[0]:
        lines = [line for line in lines if line.startswith("RuntimeError")] or lines
        return lines[-1][:400]
    return f"{type(error).__name__}: {lines[0][:400]}"


def failure_text(frames: Sequence[Frame], error: BaseException) -> str:
    """Where and how a model failed. Of several frames only the failing one, if the model tells."""
    if isinstance(error, FrameError):
        where, text = [error.frame], str(error)
    else:
        where, text = list(frames), f"{type(error).__name__}: {error}"
    places = dict.fromkeys(f"source {frame.source_id}, frame {frame.frame_number}" for frame in where)
    return "; ".join(places) + f": {text}"  # each once: several may be crops of one frame


def culprit_of(error: BaseException) -> BaseException:
    """The exception whose trace shows what failed."""
    return error.__cause__ or error if isinstance(error, FrameError) else error


def unknown_key(key: object, known: Sequence[str], where: str = "") -> ModelError:
    """The error for an option that does not exist, with the nearest one that does. ``where`` comes before it."""
    near = difflib.get_close_matches(str(key).replace("-", "_"), known, n=1)
    return ModelError(f"{where}unknown key '{key}'" + (f": did you mean '{near[0]}'?" if near else ""))

"""Models of one's own: any Python class with ``load``, ``infer`` and ``close``, named as ``package.module:Class``.

    class Plates:
        names = ("plate",)                 # class names by number
        frames = "numpy"                   # or "torch": what ``load`` makes sure of

        def __init__(self, threshold: float = 0.5):    # from ``params:`` of the stage
            ...

        def load(self): ...
        def infer(self, frames):           # a list of OwnFrame; one Detections for each, in source pixels
            return [self.find(frame.array, frame.state) for frame in frames]
        def close(self): ...

A parameter named ``config`` gets the stage's `ModelConfig`.

When ``infer`` fails, ``on_error: stop`` ends the run; with ``on_error: skip`` the frames of that call are given again
one by one, so that only those that fail are lost, and ``state`` is then what the failed call left. What the class
prints goes to standard error. ``sys.exit`` is an error like any other; ``os._exit`` ends the process at once, which
nothing here can help.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import import_torch
from elements.inference.errors import ModelError
from elements.inference.frame import Frame
from elements.inference.names import declared_names
from elements.inference.own_frame import OwnFrame
from elements.inference.params import call_with_params, import_object, parameter_names
from elements.metadata.detections import Detections

log = logging.getLogger("gstorch.inference")

HOOKS = ("load", "infer", "close")
PICTURES = ("numpy", "torch")
OF_NETWORKS = (
    "labels", "layout", "letterbox", "color", "scale", "pad", "coordinates", "input_size", "rectangular", "engine",
    "device", "precision", "weights", "compile", "postprocess",
)  # fmt: skip
"""Options that do nothing for a class, unless it takes them from its ``config``."""
_USUAL = {option.name: option.default for option in fields(ModelConfig)}


class OwnModel:
    """A class of one's own as a `elements.inference.model.Model`.

    It adds what the class need not care about: frames as `OwnFrame`, a state per source, a word about its pace.
    Attributes that it lacks (``names``, ``confidence`` …) are those of the class.

    Args:
        config: names the class (``path``) and its ``params``.
        model_class: the class.

    Raises:
        ModelError: if the class or its parameters cannot be used.
        Exception: whatever its constructor raises.
    """

    def __init__(self, config: ModelConfig, model_class: Any) -> None:
        missing = [hook for hook in HOOKS if not callable(getattr(model_class, hook, None))]
        if missing:
            raise ModelError(f"the class lacks {', '.join(missing)}()")
        pictures = getattr(model_class, "frames", "numpy")
        if pictures not in PICTURES:
            raise ModelError(f"frames = {pictures!r}: a class declares 'numpy' or 'torch'")
        unseen = unseen_options({name: getattr(config, name) for name in OF_NETWORKS}, model_class)
        if unseen:
            raise ModelError(
                f"{unseen[0]} is for model files: leave it out, or give the class a parameter 'config' and use "
                f"config.{unseen[0]}"
            )
        self._pictures = pictures
        self._states: dict[int, dict[str, Any]] = {}
        self._times: dict[int, int] = {}  # presentation time of each source's last frame
        self._pace = Pace(config.path)
        self._model = call_with_params(model_class, config.params, {"config": config})()

    def load(self) -> None:
        """Load the class's model; see `Model.load`."""
        if self._pictures == "torch":
            import_torch()
        self._model.load()
        declared_names(getattr(self._model, "names", None))  # may raise

    @property
    def names(self) -> tuple[str, ...]:
        """Class names by number, as the class has them now."""
        return declared_names(getattr(self._model, "names", None))

    @property
    def overlaps(self) -> bool:
        """Whether the class has ``submit`` and ``collect``, see `Model`."""
        return bool(getattr(self._model, "overlaps", False))

    def submit(self, frames: Sequence[Frame]) -> Any:
        """What the class's ``submit`` gives; see `Model`."""
        work = self._model.submit(self._shown(frames))
        self._note(frames)
        return work

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        """What the class answers, as it is: whoever calls checks it."""
        shown = self._shown(frames)
        started = time.monotonic()
        found: list[Detections] = self._model.infer(shown)
        self._pace.add(len(frames), started, time.monotonic())
        self._note(frames)
        return found

    def close(self) -> None:
        """Close the class's model and drop all states."""
        self._states.clear()
        self._times.clear()
        self._model.close()

    def forget(self, source_id: int) -> None:
        """Drop the state of a source, which has ended or starts anew."""
        self._states.pop(source_id, None)
        self._times.pop(source_id, None)

    @property
    def confidence(self) -> Any:
        """Set when the element's property changes; of use if the class looks at it."""
        return self._model.confidence

    @confidence.setter
    def confidence(self, value: float) -> None:
        self._model.confidence = value

    @property
    def iou(self) -> Any:
        """As `confidence`."""
        return self._model.iou

    @iou.setter
    def iou(self, value: float) -> None:
        self._model.iou = value

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # not made yet
            raise AttributeError(name)
        return getattr(self._model, name)

    def _shown(self, frames: Sequence[Frame]) -> list[OwnFrame]:
        return [OwnFrame(frame, self._state(frame)) for frame in frames]

    def _note(self, frames: Sequence[Frame]) -> None:
        """Remember the times of frames that the class took. Those of a call that failed are given again."""
        for frame in frames:
            self._times[frame.source_id] = frame.pts

    def _state(self, frame: Frame) -> dict[str, Any]:
        if frame.pts < self._times.get(frame.source_id, 0):
            self.forget(frame.source_id)
        return self._states.setdefault(frame.source_id, {})


@dataclass(slots=True)
class Pace:
    """Says once, with numbers, when a model is what the pipeline waits for.

    Attributes:
        name: the model.
        window_s: seconds that are looked at together.
        busy: share of them from which on the pipeline is held back.
    """

    name: str
    window_s: float = 10.0
    busy: float = 0.95
    _start: float | None = None
    _inside_s: float = 0.0
    _frames: int = 0
    _said: bool = False

    def add(self, frames: int, started: float, ended: float) -> None:
        """A call for ``frames`` frames, from ``started`` to ``ended`` (seconds of any clock)."""
        if self._said:
            return
        self._start = started if self._start is None else self._start
        self._inside_s += ended - started
        self._frames += frames
        elapsed = ended - self._start
        if elapsed < self.window_s:
            return
        if self._inside_s / elapsed >= self.busy:
            self._said = True
            log.warning(
                "model '%s' holds the pipeline back: infer() takes %.0f ms per frame (%.1f frames/s) and was at work "
                "%.0f%% of the last %.0f s; frames of cameras are dropped if that is too slow. This is said once",
                self.name,
                1000 * self._inside_s / self._frames,
                self._frames / self._inside_s,
                100 * self._inside_s / elapsed,
                elapsed,
            )
        self._start, self._inside_s, self._frames = None, 0.0, 0


def open_own(config: ModelConfig, network: Callable[[ModelConfig], Any]) -> Any:
    """The model that ``config.path`` (``package.module:Class``) names, not loaded yet.

    Args:
        config: the model's options.
        network: makes the model of a class that is only a network (a ``torch.nn.Module``).

    Raises:
        ModelError: if the class or its parameters cannot be used; the text starts with the path.
        Exception: whatever the module or the class raises.
    """
    try:
        model_class = import_object(config.path)
        return network(config) if is_network(model_class) else OwnModel(config, model_class)
    except ModelError as error:
        raise ModelError(f"model '{config.path}': {error}") from error.__cause__


def unseen_options(given: Mapping[str, Any], model_class: Any) -> list[str]:
    """Those of `OF_NETWORKS` that are given, but neither the class nor anything else would look at."""
    try:
        if "config" in parameter_names(model_class):
            return []
    except ModelError:
        return []  # told where the class is made
    unlooked = {**_USUAL, "device": "cpu"} if given["device"] == "cpu" else _USUAL  # where every class may work
    return [name for name in OF_NETWORKS if given[name] != unlooked[name]]


def is_network(model_class: Any) -> bool:
    """Whether the class is a `torch.nn.Module`: only a network, for which the rest is done here."""
    torch = sys.modules.get("torch")  # a module class cannot exist without it
    return torch is not None and isinstance(model_class, type) and issubclass(model_class, torch.nn.Module)

"""Changes to a running pipeline: commands as plain data, and who carries them out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from elements.analytics.geometry import Point
from elements.inference.errors import ModelError
from elements.inference.source_options import parse_region
from elements.inference.swap.loader import Answer
from elements.live_changes import LiveChanges

# --- commands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """Something to change in an infer stage.

    Attributes:
        stage: name of the stage.
    """

    stage: str

    def __str__(self) -> str:
        """For logs: without options, which may be secret."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("stage", "options")}
        text = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None or name == "value")
        return f"{self.stage}: {type(self).__name__}" + (f" ({text})" if text else "")


@dataclass(frozen=True, slots=True)
class SetConfidence(Command):
    """Lowest confidence that counts, 0 to 1; of one source if it is named. ``None``: the source's is the stage's."""

    value: float | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class SetIou(Command):
    """Overlap above which the lesser box of a class goes, 0 to 1."""

    value: float


@dataclass(frozen=True, slots=True)
class SetInterval(Command):
    """Frames skipped between two inferences; of one source if it is named. ``None``: the source's is the stage's."""

    value: int | None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class SetClasses(Command):
    """Names or numbers of the classes that a source reports. ``None``: all that the stage does."""

    value: tuple[str | int, ...] | None
    source: str


@dataclass(frozen=True, slots=True)
class SetRegion(Command):
    """Where a source's objects must have their centre: ``[left, top, right, bottom]`` or a polygon of points, from 0 to
    1 of the picture. ``None``: anywhere."""

    value: Sequence[float] | Sequence[Point] | None
    source: str


@dataclass(frozen=True, slots=True)
class SwapModel(Command):
    """Load another model in the background and let it take over.

    Attributes:
        model: file or ``package.module:Class``; ``None``: the same as now with other options, or for a source: the
            stage's.
        source: the source that gets it for its own.
        options: other options of the stage's model (``labels``, ``layout`` …) as pyinfer's properties take them;
            ``None`` stands for the default.
    """

    model: str | None
    source: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetSwap(Command):
    """How new models prove themselves; keys of `elements.inference.swap.options.SwapOptions`."""

    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SetReload(Command):
    """``watch``: a model whose file changes is loaded again; or ``off``."""

    value: str


COMMANDS: tuple[type[Command], ...] = (
    SetConfidence, SetIou, SetInterval, SetClasses, SetRegion, SwapModel, SetSwap, SetReload,
)  # fmt: skip


# --- results ----------------------------------------------------------------------------------------------------------


class ResultState(StrEnum):
    """``applied`` at once, ``accepted`` (a model is being loaded), or ``refused`` and nothing changed."""

    APPLIED = "applied"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What became of a command.

    Attributes:
        state: see `ResultState`.
        reason: why it was refused.
        swap: gets the end of a swap: active, rejected or superseded.
    """

    state: ResultState
    reason: str = ""
    swap: Answer | None = None


class Control:
    """Carries out commands. May be used from any thread while the pipeline runs.

    >>> result = runner.control.apply(SwapModel("infer", "models/night.onnx"))
    >>> result.swap.result(timeout=60).state
    <SwapState.ACTIVE: 'active'>

    Args:
        stages: gives the running infer stages by name.
        sources: names of the sources by id.
    """

    def __init__(self, stages: Callable[[], Mapping[str, LiveChanges]], sources: Sequence[str]) -> None:
        self._stages, self._sources = stages, sources

    def apply(self, command: Command) -> CommandResult:
        """Carry out a command. What cannot be done is refused, with the reason, and changes nothing.

        Raises:
            TypeError: if it is none of the commands here.
        """
        if type(command) not in COMMANDS:
            known = ", ".join(kind.__name__ for kind in COMMANDS)
            raise TypeError(f"{command!r} is no command: there are {known}, in {__name__}")
        try:
            swap = self._apply(command)
        except ModelError as error:
            return CommandResult(ResultState.REFUSED, str(error))
        return CommandResult(ResultState.APPLIED if swap is None else ResultState.ACCEPTED, swap=swap)

    def refresh(self, asked: Iterable[Command] = ()) -> None:
        """Load models again whose files have new content, less those that the commands ``asked`` just asked for."""
        swaps = [command for command in asked if isinstance(command, SwapModel)]
        for name, live in self._stages().items():
            fresh = {swap.source for swap in swaps if swap.stage == name}
            if None not in fresh:  # the models of sources are asked for with the stage's
                live.refresh([self._sources.index(source) for source in fresh if source is not None])

    def _apply(self, command: Command) -> Answer | None:
        stages = self._stages()
        if not isinstance(command.stage, str) or command.stage not in stages:
            raise ModelError(f"no running infer stage '{command.stage}': {_nearest(str(command.stage), list(stages))}")
        live, source = stages[command.stage], getattr(command, "source", None)
        if source is not None:
            return self._apply_to_source(live, source, command)
        match command:
            case SetConfidence(value=float() | int() as value):
                live.set_threshold("confidence", value)
            case SetIou(value=value):
                live.set_threshold("iou", value)
            case SetInterval(value=int() as value):
                live.set_interval(value)
            case SetSwap(options=Mapping() as options):
                live.set_swap_options(options)
            case SetReload(value=value):
                live.set_reload(value)
            case SwapModel(model=model, options=Mapping() as options):
                return live.swap({**options, "model": model} if model is not None else options)
            case _:
                wanted = "options by name" if isinstance(command, SwapModel) else "a value, or a source"
                raise ModelError(f"{type(command).__name__} needs {wanted}")
        return None

    def _apply_to_source(self, live: LiveChanges, source: str, command: Command) -> Answer | None:
        if source not in self._sources:
            raise ModelError(f"no source '{source}': {_nearest(str(source), self._sources)}")
        source_id = self._sources.index(source)
        options = live.source(source_id)
        match command:
            case SetConfidence(value=value):
                options = replace(options, confidence=value)
            case SetInterval(value=value):
                options = replace(options, interval=value)
            case SetClasses(value=value):
                options = replace(options, classes=_classes(value))
            case SetRegion(value=value):
                options = replace(options, region=None if value is None else parse_region(value))
            case SwapModel(model=model, options=others):
                if others:
                    raise ModelError("a source's model has the stage's other options: give them with the stage's model")
                options = replace(options, model=model)
        return live.set_sources({**live.sources, source_id: options}).get(source_id)


def _classes(value: Any) -> tuple[str | int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str | int) for item in value):
        raise ModelError(f"classes: {value!r} is not a list of names or numbers")
    return tuple(value)


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known) or 'none'}"

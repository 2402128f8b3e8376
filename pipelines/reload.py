"""What a changed definition asks of the running pipeline: commands, and what only a restart can bring."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.control import (
    Command,
    Control,
    ResultState,
    SetClasses,
    SetConfidence,
    SetInterval,
    SetIou,
    SetRegion,
    SetReload,
    SetSwap,
    SwapModel,
)
from pipelines.definition import Definition, DefinitionError, InferStage, Source, SourceInfer
from pipelines.definition.sections import Section
from pipelines.stages.infer import infer_properties

log = logging.getLogger("gstorch.reload")

MODEL_KEYS = frozenset(
    {
        "model", "engine", "precision", "weights", "trust", "compile", "device", "batch_size", "labels", "layout",
        "letterbox", "color", "scale", "pad", "coordinates", "input_size", "rectangular", "classes", "params",
        "postprocess",
    }
)  # fmt: skip
"""Keys of an infer stage that take effect when its model is loaded."""
LIVE_KEYS = frozenset({"confidence", "iou", "interval", "swap", "reload"})
_LIVE_PROPERTIES = frozenset({"confidence-threshold", "iou-threshold", "interval", "swap-options", "reload"})


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """How to get from one definition to another while running.

    Attributes:
        commands: to be applied in order.
        restart: places (``file:line: key``) of changes that are not applied, as they need a restart.
    """

    commands: tuple[Command, ...]
    restart: tuple[str, ...]


def plan_reload(old: Definition, new: Definition) -> ReloadPlan:
    """Compare two definitions. Values are not told, as they may be secret."""
    commands: list[Command] = []
    restart = [new.where(key) for key in ("pipeline", "mux", "outputs", "runtime") if _differ(old, new, key)]
    if [s.name for s in old.sources] != [s.name for s in new.sources]:
        restart.append(f"{new.where('sources')} (other sources)")
    if [(s.KEY, getattr(s, "name", "")) for s in old.stages] != [(s.KEY, getattr(s, "name", "")) for s in new.stages]:
        restart.append(f"{new.where('stages')} (other stages)")
        return ReloadPlan((), tuple(restart))
    for index, (before, after) in enumerate(zip(old.stages, new.stages, strict=True)):
        origin = f"stages.{index}.{after.KEY}"
        if isinstance(before, InferStage) and isinstance(after, InferStage):
            commands += _stage_commands(before, after)
            fixed = [key for key in InferStage.model_fields if key not in MODEL_KEYS | LIVE_KEYS]
        else:
            fixed = list(type(after).model_fields)
        restart += [new.where(f"{origin}.{key}") for key in fixed if _differ(before, after, key)]
    if any("(other sources)" in place for place in restart):
        return ReloadPlan(tuple(commands), tuple(restart))
    for index, (one, other) in enumerate(zip(old.sources, new.sources, strict=True)):
        keys = [key for key in Source.model_fields if key != "infer" and _differ(one, other, key)]
        if not keys and one.location != other.location:
            keys = ["uri"]
        restart += [new.where(f"sources.{index}.{key}") for key in keys]
        commands += _source_commands(str(other.name), one.infer, other.infer)
    return ReloadPlan(tuple(commands), tuple(restart))


def _differ(old: Section, new: Section, key: str) -> bool:
    return bool(getattr(old, key) != getattr(new, key))


def _stage_commands(old: InferStage, new: InferStage) -> Iterator[Command]:
    stage = str(new.name)
    before, after = infer_properties(old), infer_properties(new)
    if _differ(old, new, "swap"):  # first, so that it holds for a new model
        yield SetSwap(stage, json.loads(str(after.get("swap-options", "{}"))))
    if _differ(old, new, "confidence"):
        yield SetConfidence(stage, new.confidence)
    if _differ(old, new, "iou"):
        yield SetIou(stage, new.iou)
    if _differ(old, new, "interval"):
        yield SetInterval(stage, new.interval)
    if _differ(old, new, "reload"):
        yield SetReload(stage, new.reload)
    if any(_differ(old, new, key) for key in MODEL_KEYS):
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        options = {key: after.get(key) for key in sorted(changed - _LIVE_PROPERTIES - {"model-path"})}
        yield SwapModel(stage, str(new.model), options=options)


def _source_commands(source: str, old: Mapping[str, SourceInfer], new: Mapping[str, SourceInfer]) -> Iterator[Command]:
    for stage in sorted(old.keys() | new.keys()):
        before, after = old.get(stage, SourceInfer()), new.get(stage, SourceInfer())
        if _differ(before, after, "model"):
            yield SwapModel(stage, None if after.model is None else str(after.model), source)
        if _differ(before, after, "confidence"):
            yield SetConfidence(stage, after.confidence, source)
        if _differ(before, after, "classes"):
            yield SetClasses(stage, after.classes, source)
        if _differ(before, after, "interval"):
            yield SetInterval(stage, after.interval, source)
        if _differ(before, after, "region"):
            yield SetRegion(stage, after.region, source)


class Reloader:
    """Brings changes of a definition's file to the running pipeline.

    Args:
        definition: what the pipeline was started with.
        read: reads the file again; raises `DefinitionError`.
        control: of the running pipeline.
    """

    def __init__(self, definition: Definition, read: Callable[[], Definition], control: Control) -> None:
        self._started = self._current = definition
        self._read, self._control = read, control

    def reload(self) -> None:
        """Read the file, apply what can be, and log the rest. A file that is rejected changes nothing.

        Models whose files have new content are loaded again, too.
        """
        try:
            new = self._read()
        except DefinitionError as error:
            log.error("the definition is rejected, nothing is changed:\n%s", error)
            return
        commands = plan_reload(self._current, new).commands
        done = []
        for command in commands:
            result = self._control.apply(command)
            if result.state is ResultState.REFUSED:
                log.error("%s: refused: %s", command, result.reason)
            else:
                done.append(command)
                log.info("%s: %s", command, result.state)
        restart = plan_reload(self._started, new).restart
        for place in restart:
            log.warning("%s: changed, which needs a restart", place)
        if not commands and not restart:
            log.info("the definition has not changed")
        self._control.refresh(done)
        self._current = new

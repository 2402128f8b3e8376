"""Stages: what happens to each batch, in order. One file per stage."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from pipelines.definition.sections import OneKey, one_key_tag
from pipelines.definition.stages.analyze import AnalyzeStage
from pipelines.definition.stages.draw import DrawStage
from pipelines.definition.stages.filter import FilterStage
from pipelines.definition.stages.infer import InferStage
from pipelines.definition.stages.message import MessageStage
from pipelines.definition.stages.node import NodeStage
from pipelines.definition.stages.operate import OperateStage
from pipelines.definition.stages.prompt import PromptStage
from pipelines.definition.stages.track import TrackStage
from pipelines.definition.uris import unique_names

__all__ = [
    "STAGE_MODELS",
    "AnalyzeStage",
    "DrawStage",
    "FilterStage",
    "InferStage",
    "MessageStage",
    "NodeStage",
    "OperateStage",
    "PromptStage",
    "Stage",
    "TrackStage",
    "can_be_named",
    "with_names",
]

Stage = Annotated[
    Annotated[InferStage, Tag("infer")]
    | Annotated[TrackStage, Tag("track")]
    | Annotated[FilterStage, Tag("filter")]
    | Annotated[OperateStage, Tag("operate")]
    | Annotated[AnalyzeStage, Tag("analyze")]
    | Annotated[PromptStage, Tag("prompt")]
    | Annotated[MessageStage, Tag("message")]
    | Annotated[DrawStage, Tag("draw")]
    | Annotated[NodeStage, Tag("node")],
    Discriminator(one_key_tag),
]

STAGE_MODELS: tuple[type[OneKey], ...] = (
    InferStage,
    TrackStage,
    FilterStage,
    OperateStage,
    AnalyzeStage,
    PromptStage,
    MessageStage,
    DrawStage,
    NodeStage,
)
"""Every stage there is, in the order in which they are listed to the user."""


def can_be_named(stage: OneKey) -> bool:
    """Whether stages of this kind have a ``name`` key."""
    return "name" in type(stage).model_fields


def with_names(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The same stages; every one that can be named has a name of its own, every infer stage a unique id.

    A stage that is merged with another one gets that one's id.
    """
    named: list[Any] = [stage for stage in stages if can_be_named(stage)]
    defaults = [s.factory if isinstance(s, NodeStage) else s.KEY for s in named]
    names = iter(unique_names([s.name for s in named], defaults))
    taken = {s.unique_id for s in stages if isinstance(s, InferStage)}
    free_ids = (n for n in range(1, len(stages) + len(taken) + 1) if n not in taken)
    ids: dict[str, int] = {}
    result: list[Stage] = []
    for stage in stages:
        update: dict[str, Any] = {}
        if can_be_named(stage):
            update["name"] = next(names)
        if isinstance(stage, InferStage) and stage.merge_with is not None:
            update["unique_id"] = ids.get(stage.merge_with, stage.unique_id)
        elif isinstance(stage, InferStage):
            update["unique_id"] = next(free_ids) if stage.unique_id is None else stage.unique_id
            ids[update["name"]] = update["unique_id"]
        result.append(stage.model_copy(update=update))
    return tuple(result)

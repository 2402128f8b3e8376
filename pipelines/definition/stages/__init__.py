"""Stages: what happens to each batch, in order. One file per stage."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from pipelines.definition.sections import OneKey, one_key_tag
from pipelines.definition.stages.draw import DrawStage
from pipelines.definition.stages.infer import InferStage
from pipelines.definition.stages.node import NodeStage
from pipelines.definition.stages.track import TrackStage
from pipelines.definition.uris import unique_names

__all__ = ["STAGE_MODELS", "DrawStage", "InferStage", "NodeStage", "Stage", "TrackStage", "with_names"]

Stage = Annotated[
    Annotated[InferStage, Tag("infer")]
    | Annotated[TrackStage, Tag("track")]
    | Annotated[DrawStage, Tag("draw")]
    | Annotated[NodeStage, Tag("node")],
    Discriminator(one_key_tag),
]

STAGE_MODELS: tuple[type[OneKey], ...] = (InferStage, TrackStage, DrawStage, NodeStage)
"""Every stage there is, in the order in which they are listed to the user."""


def with_names(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The same stages; every infer and node stage has a name of its own, every infer stage a unique id."""
    named = [s for s in stages if isinstance(s, InferStage | NodeStage)]
    defaults = [s.factory if isinstance(s, NodeStage) else s.KEY for s in named]
    names = iter(unique_names([s.name for s in named], defaults))
    taken = {s.unique_id for s in stages if isinstance(s, InferStage)}
    free_ids = (n for n in range(1, len(stages) + len(taken) + 1) if n not in taken)
    result: list[Stage] = []
    for stage in stages:
        update: dict[str, Any] = {}
        if isinstance(stage, InferStage | NodeStage):
            update["name"] = next(names)
        if isinstance(stage, InferStage) and stage.unique_id is None:
            update["unique_id"] = next(free_ids)
        result.append(stage.model_copy(update=update))
    return tuple(result)

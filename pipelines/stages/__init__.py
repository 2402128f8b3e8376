"""Stages as nodes of the graph, one file per stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipelines.definition import (
    AnalyzeStage,
    DrawStage,
    FilterStage,
    InferStage,
    MessageStage,
    NodeStage,
    OperateStage,
    PromptStage,
    Stage,
    TrackStage,
)
from pipelines.draft import Draft, Facts
from pipelines.stages.analyze import add_analyze
from pipelines.stages.draw import add_draw
from pipelines.stages.filter import add_filter
from pipelines.stages.infer import add_infer
from pipelines.stages.message import add_message
from pipelines.stages.node import add_node
from pipelines.stages.operate import add_operate
from pipelines.stages.prompt import add_prompt
from pipelines.stages.track import add_track

ADD: dict[type[Stage], Callable[[Draft, Any, str, Facts], None]] = {
    InferStage: add_infer,
    TrackStage: add_track,
    FilterStage: add_filter,
    OperateStage: add_operate,
    AnalyzeStage: add_analyze,
    PromptStage: add_prompt,
    MessageStage: add_message,
    DrawStage: add_draw,
    NodeStage: add_node,
}


def add_stage(draft: Draft, stage: Stage, origin: str, facts: Facts) -> None:
    """Add what a stage declares to the end of the chain. ``origin`` is its key in the definition."""
    ADD[type(stage)](draft, stage, origin, facts)

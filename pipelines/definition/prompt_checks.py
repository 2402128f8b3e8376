"""Whether prompt stages have somebody to ask about, and texts with fields that there are."""

from __future__ import annotations

from collections.abc import Mapping

from elements.prompting.options import unknown_field
from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.stages import NodeStage, PromptStage, Stage, TrackStage


def check_prompt_stages(document: Document, stages: Mapping[int, Stage]) -> None:
    """Add what is wrong to the problems of ``document``. Stages by their index in the definition."""
    for index, stage in stages.items():
        if not isinstance(stage, PromptStage):
            continue
        path: KeyPath = ("stages", index, "prompt")
        before = [other for place, other in stages.items() if place < index]
        if stage.per == "track" and not any(isinstance(other, TrackStage | NodeStage) for other in before):
            below = next((place for place, other in stages.items() if isinstance(other, TrackStage)), None)
            move = "add a track stage above it" if below is None else f"move it below stages[{below}].track"
            problem = "asks about tracks, and no track stage comes before it"
            document.problem(path, problem, f"{move}, or set 'per: frame'", of_key=True)
        if stage.per == "frame" and not stage.trigger.events and not stage.trigger.interval:
            hint = "set trigger.interval or trigger.events"
            document.problem((*path, "per"), "would ask about every frame", hint, of_key=True)
        if stage.per == "frame" and stage.refresh is not None:
            hint = "remove it; trigger.interval says how often"
            document.problem((*path, "refresh"), "is for questions about tracks", hint, of_key=True)
        unknown = unknown_field(stage.text, stage.per)
        if unknown:
            document.problem((*path, "text"), unknown)
        if stage.answer_schema is not None and stage.answer != "json":
            document.problem((*path, "answer_schema"), "is for JSON answers", "set 'answer: json'", of_key=True)

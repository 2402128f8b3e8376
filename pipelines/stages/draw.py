"""The draw stage: it has no node in the chain; every output branch draws for itself."""

from __future__ import annotations

from pipelines.definition import DrawStage
from pipelines.draft import Draft, Facts


def add_draw(draft: Draft, stage: DrawStage, origin: str, facts: Facts) -> None:
    """Note the stage for the branches."""
    draft.draw = stage

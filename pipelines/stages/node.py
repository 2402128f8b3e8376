"""The node stage: any element, as declared."""

from __future__ import annotations

from pydantic import Secret

from pipelines.definition import NodeStage
from pipelines.draft import Draft, Facts


def add_node(draft: Draft, stage: NodeStage, origin: str, facts: Facts) -> None:
    """Add the element to the chain."""
    secret = {key for key, value in stage.properties.items() if isinstance(value, Secret)}
    values = {k: v.get_secret_value() if isinstance(v, Secret) else v for k, v in stage.properties.items()}
    draft.add(f"{stage.name}", stage.factory, origin, values, secret)
    draft.format = ""

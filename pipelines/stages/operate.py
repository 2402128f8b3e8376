"""The operate stage: an operator where the chain has come to."""

from __future__ import annotations

from pipelines.definition import OperateStage
from pipelines.draft import Draft, Facts
from pipelines.graph import Attachment

OPERATOR = "pipelines.operators.user:UserOperator"


def add_operate(draft: Draft, stage: OperateStage, origin: str, facts: Facts) -> None:
    """Attach the operator behind a queue of its own, so that what comes before need not wait for it."""
    draft.add_queue(f"{stage.name}-queue", origin)
    params = {
        "name": str(stage.name),
        "operator": stage.operator,
        "params": stage.params.get_secret_value(),
        "sources": list(draft.sources),
        "padding": draft.padding,
        "mux_size": draft.mux_size,
        "run": stage.run,
        "queue": stage.queue,
        "overflow": stage.overflow,
        "on_error": stage.on_error,
        "report": "@report",
    }
    draft.graph.attach(Attachment(draft.tail, str(stage.name), OPERATOR, params, origin=origin))

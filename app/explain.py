"""``gstorch explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from app.common import DefinitionPath, Overrides, fail, load_or_exit
from pipelines.outcome import EXIT_FAILED


def explain(
    file: DefinitionPath,
    dot: Annotated[bool, typer.Option("--dot", help="Graphviz instead of text.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Mermaid instead of text.")] = False,
    set_: Overrides = None,
) -> None:
    """Show the graph that a definition stands for on this machine: nodes, links, caps, and what is real or stand-in."""
    from pipelines.plan import make_plan
    from pipelines.render import as_dot, as_mermaid, as_text
    from pipelines.runtime import RuntimeUnavailableError

    definition = load_or_exit(file, set_)
    try:
        plan = make_plan(definition)
    except RuntimeUnavailableError as error:
        fail(str(error))
        raise typer.Exit(EXIT_FAILED) from error
    if dot or mermaid:
        typer.echo((as_dot if dot else as_mermaid)(plan.graph, plan.runtime.stand_ins))
        return
    typer.echo(plan.runtime.describe())
    for source, facts in zip(definition.sources, plan.sources, strict=True):
        if facts.error:
            typer.echo(f"left out: source '{source.name}': {facts.error}")
    typer.echo()
    typer.echo(as_text(plan.graph, plan.runtime.stand_ins))

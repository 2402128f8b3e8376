"""``gstorch validate``."""

from __future__ import annotations

import typer

from app.common import DefinitionPath, Overrides, load_or_exit


def validate(file: DefinitionPath, set_: Overrides = None) -> None:
    """Check a definition without running it. Exit code 2 if it is rejected; every problem is listed."""
    definition = load_or_exit(file, set_)
    typer.echo(
        f"{file}: valid; {len(definition.sources)} sources, {len(definition.stages)} stages, "
        f"{len(definition.outputs)} outputs"
    )

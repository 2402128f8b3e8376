"""``gstorch schema``."""

from __future__ import annotations

import json

import typer

from pipelines.definition import definition_schema


def schema() -> None:
    """Print the JSON Schema of pipeline definitions (for editors: yaml-language-server and others)."""
    typer.echo(json.dumps(definition_schema(), indent=2, ensure_ascii=False))

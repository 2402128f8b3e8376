"""The ``gstorch`` program: one file per command."""

from __future__ import annotations

import typer

from app import compare, deliver, doctor, explain, inspect, models, new, replay, run, schema, validate, version
from app import eval as evaluation

cli = typer.Typer(
    name="gstorch",
    help="Run your own models inside DeepStream pipelines described in YAML; the same file runs without a GPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("run")(run.run)
cli.command("validate")(validate.validate)
cli.command("explain")(explain.explain)
cli.command("replay")(replay.replay)
cli.command("deliver")(deliver.deliver)
cli.command("eval")(evaluation.evaluate)
cli.command("doctor")(doctor.doctor)
cli.command("schema")(schema.schema)
cli.command("version")(version.version)
models.models.command("compare")(compare.compare)
models.models.command("inspect")(inspect.inspect)
models.models.command("layouts")(inspect.layouts)
cli.add_typer(models.models)
cli.add_typer(new.new)


def main() -> None:
    """Entry point of the console script."""
    cli()


if __name__ == "__main__":
    main()

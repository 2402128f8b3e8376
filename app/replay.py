"""``gstorch replay``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from app.common import Overrides, fail, find_own_code, reject, results_on_stdout, set_up_logging
from pipelines.definition import DefinitionError, load_definition
from pipelines.outcome import EXIT_COMPLETE, EXIT_FAILED


def replay(
    recording: Annotated[Path, typer.Argument(metavar="EVENTS.jsonl", help="An event file that a run has written.")],
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The definition with what is to be run on it.")],
    set_: Overrides = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail.")] = 0,
) -> None:
    """Run operators, analytics and messages on recorded events, without video or model.

    The same file gives the same results. Stages that look at pictures (infer, track, draw) and outputs that show them
    are left out; sources are found by their names.
    """
    from pipelines.assemble import AssemblyError
    from pipelines.outputs import OutputError
    from pipelines.replay import ReplayError
    from pipelines.replay import replay as run_again

    set_up_logging(quiet, verbose)
    find_own_code()
    try:
        with results_on_stdout():  # code of the user's is imported to check it, and may print
            definition = load_definition(file, set_ or (), check_files=False)
    except DefinitionError as error:
        reject(error)
    with results_on_stdout() as stdout:
        try:
            result = run_again(recording, definition, stdout)
        except (ReplayError, OutputError, AssemblyError) as error:
            fail(str(error))
            raise typer.Exit(EXIT_FAILED) from error
        code = EXIT_FAILED if result.error else EXIT_COMPLETE
        if result.error:
            fail(result.error, result.trace)
        frames = sum(count.frames for count in result.counts)
        if json_:
            summary = {
                "pipeline": definition.pipeline,
                "exit_code": code,
                "error": result.error or None,
                "frames": frames,
                "sources": [
                    {"source": source.name, "frames": count.frames, "objects": count.objects, "tracks": count.tracks}
                    for source, count in zip(definition.sources, result.counts, strict=True)
                ],
                "operators": {name: op.stats for name, op in result.operators.items() if hasattr(op, "stats")},
            }
            print(json.dumps(summary, ensure_ascii=False), file=stdout, flush=True)
        elif not quiet:
            typer.echo(f"{frames} frames of {sum(1 for c in result.counts if c.frames)} sources", err=True)
    raise typer.Exit(code)

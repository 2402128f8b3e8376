"""``gstorch run``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from app.common import Overrides, fail, find_own_code, load_or_exit, reject, results_on_stdout, set_up_logging
from elements.inference.swap.memory import limit_arenas
from pipelines.definition import Definition, DefinitionError, definition_from_mapping, load_definition
from pipelines.outcome import EXIT_FAILED, EXIT_REJECTED

if TYPE_CHECKING:
    from pipelines.runner import Runner

_OF_MODEL = ("model", "confidence", "labels", "device")
_ORIGINS = {  # what an error calls the place of a value
    **{f"stages[0].infer.{key}": f"--{key}" for key in _OF_MODEL},
    "outputs[0].file.path": "--output",
    **{f"outputs[{index}].events.path": "--events" for index in (0, 1)},
}

Targets = Annotated[
    list[str],
    typer.Argument(metavar="FILE.yaml | SOURCE...", help="A definition, or video files and rtsp:// addresses."),
]


def run(
    targets: Targets,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model file (without a YAML file).")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Annotated video, .mp4, tiled.")] = None,
    events: Annotated[str | None, typer.Option("--events", "-e", help="Event file, JSON Lines; - is stdout.")] = None,
    confidence: Annotated[float | None, typer.Option(help="Least confidence of a detection, 0 to 1.")] = None,
    labels: Annotated[str | None, typer.Option(help="Label file, one name per line.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda[:N].")] = None,
    set_: Overrides = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the final summary as JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail.")] = 0,
) -> None:
    """Run a pipeline: from a definition, or straight from sources and a model.

    Exit codes: 0 all sources complete, 1 failed, 2 definition rejected, 3 partial (some source failed, was cut short or
    was stopped). The first SIGINT or SIGTERM drains and finalises, a second one aborts.
    """
    limit_arenas()
    set_up_logging(quiet, verbose)
    find_own_code()
    options = {"model": model, "output": output, "events": events, "confidence": confidence, "labels": labels}
    definition = _definition(targets, {**options, "device": device}, set_)
    runner = _run(definition, quiet, json_, _reading(targets, set_))
    if runner.outcome.stuck:
        os._exit(EXIT_FAILED)
    raise typer.Exit(runner.exit_code())


def _is_file(targets: list[str]) -> bool:
    return len(targets) == 1 and Path(targets[0]).suffix.lower() in (".yaml", ".yml")


def _reading(targets: list[str], overrides: list[str] | None) -> Callable[[], Definition] | None:
    """Reads the definition's file again; ``None`` if there is none."""
    if not _is_file(targets):
        return None
    from pipelines.catalog import GStreamerCatalog

    path = Path(targets[0]).absolute()
    return lambda: load_definition(path, overrides or (), catalog=GStreamerCatalog())


def _definition(targets: list[str], options: dict[str, Any], overrides: list[str] | None) -> Definition:
    if _is_file(targets):
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if given:
            fail(f"{', '.join(given)}: only without a YAML file; use --set to override its keys")
            raise typer.Exit(EXIT_REJECTED)
        return load_or_exit(Path(targets[0]), overrides)
    if options["model"] is None and (given := [f"--{key}" for key in _OF_MODEL[1:] if options[key] is not None]):
        fail(f"{', '.join(given)}: only with --model")
        raise typer.Exit(EXIT_REJECTED)
    from pipelines.catalog import GStreamerCatalog

    try:
        return definition_from_mapping(
            _mapping(targets, options), Path.cwd(), overrides or (), catalog=GStreamerCatalog(), origins=_ORIGINS
        )
    except DefinitionError as error:
        reject(error)


def _mapping(sources: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """The definition that the command line stands for."""
    stages: list[dict[str, Any]] = []
    infer = {key: options[key] for key in _OF_MODEL if options[key] is not None}
    if infer:
        stages = [{"infer": infer}, {"track": {}}]
    outputs: list[dict[str, Any]] = []
    if options["output"] is not None:
        stages.append({"draw": {}})
        outputs.append({"file": {"path": options["output"]}})
    if options["events"] is not None:
        outputs.append({"events": {"path": options["events"]}})
    return {"pipeline": "gstorch", "sources": [{"uri": s} for s in sources], "stages": stages, "outputs": outputs}


def _run(definition: Definition, quiet: bool, as_json: bool, read: Callable[[], Definition] | None) -> Runner:
    from app.progress import progress, show_result
    from app.summary import summarise
    from elements.base import ElementError
    from pipelines.assemble import AssemblyError
    from pipelines.outputs import OutputError
    from pipelines.plan import make_plan, open_runner
    from pipelines.reload import Reloader
    from pipelines.runtime import RuntimeUnavailableError

    with results_on_stdout() as stdout:
        try:
            plan = make_plan(definition)
            runner = open_runner(plan, stdout)
        except (RuntimeUnavailableError, AssemblyError, OutputError, ElementError) as error:
            fail(str(error))
            raise typer.Exit(EXIT_FAILED) from error
        with progress(quiet) as callback:
            reloader = Reloader(definition, read, runner.control) if read is not None else None
            runner.run(callback, reloader.reload if reloader is not None else None)
        if runner.outcome.error:
            fail(runner.outcome.error, runner.outcome.trace)
        if not quiet and not as_json:
            show_result(runner)
        if as_json:
            _print(json.dumps(summarise(plan, runner), ensure_ascii=False), stdout)
    return runner


def _print(text: str, stdout: TextIO) -> None:
    try:
        print(text, file=stdout, flush=True)
    except OSError as error:
        fail(f"cannot write to standard output: {error.strerror}")
        raise typer.Exit(EXIT_FAILED) from error

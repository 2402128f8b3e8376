"""What the commands share: exit codes, logging, loading a definition."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer
from rich.console import Console
from rich.logging import RichHandler

from pipelines.definition import Definition, DefinitionError, load_definition
from pipelines.outcome import EXIT_REJECTED

stderr = Console(stderr=True)

DefinitionPath = Annotated[Path, typer.Argument(metavar="FILE", help="Pipeline definition (YAML).")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. --set stages.infer.confidence=0.5."),
]


def set_up_logging(quiet: bool, verbose: int) -> None:
    """Log to standard error: warnings and news by default, ``-q`` errors only, ``-v`` everything."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    if stderr.is_terminal:
        handler: logging.Handler = RichHandler(console=stderr, show_path=False, rich_tracebacks=False, markup=False)
        handler.setFormatter(logging.Formatter("%(message)s", datefmt="%H:%M:%S"))
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("gstorch")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
    # It logs every error on the bus, most of them consequences of the first, which the runner tells.
    logging.getLogger("gstorch.pyservicemaker").setLevel(logging.CRITICAL)


@contextlib.contextmanager
def results_on_stdout() -> Iterator[TextIO]:
    """Keep standard output for results: what models and libraries print meanwhile goes to standard error.

    Gives the stream for results. File descriptors are exchanged, so that it holds for C libraries too.
    """
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        yield results
    finally:
        sys.stdout.flush()
        os.dup2(results.fileno(), 1)
        with contextlib.suppress(OSError):  # what cannot be written was found when it was flushed
            results.close()


def find_own_code() -> None:
    """Let code of one's own be imported from the current folder; last, so that nothing is shadowed."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)


def label_names(text: str | None) -> str | list[str] | None:
    """What ``--labels`` says: a label file's path as it is, or the names between commas."""
    if text is None or "," not in text or Path(text).exists():
        return text
    return [name.strip() for name in text.split(",") if name.strip()]


def load_or_exit(path: Path, overrides: list[str] | None) -> Definition:
    """Load a definition; on problems print all of them and leave with exit code 2."""
    from pipelines.catalog import GStreamerCatalog

    find_own_code()
    try:
        with results_on_stdout():  # code of the user's is imported to check it, and may print
            return load_definition(path, overrides or (), catalog=GStreamerCatalog())
    except DefinitionError as error:
        reject(error)


def reject(error: DefinitionError) -> NoReturn:
    """Print every problem of a definition and exit with code 2."""
    typer.echo(str(error), err=True)
    raise typer.Exit(EXIT_REJECTED)


def fail(text: str, trace: str = "") -> None:
    """Print why a run failed."""
    if trace:
        typer.echo(trace.rstrip(), err=True)
    typer.echo(f"error: {text}", err=True)

"""Progress of a run: a live table on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import typer
from rich.live import Live

from app.common import stderr
from app.summary import row, table
from pipelines.runner import Runner

TABLE_PERIOD_S = 0.5
LINE_PERIOD_S = 10.0


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Callable[[Runner], None]]:
    """Gives the callback for `Runner.run`; shows on standard error."""
    if quiet:
        yield lambda runner: None
    elif stderr.is_terminal:
        with Live(console=stderr, auto_refresh=False, transient=True) as live:
            yield _every(TABLE_PERIOD_S, lambda runner: live.update(table(runner), refresh=True))
    else:
        yield _every(LINE_PERIOD_S, _print_lines)


def _every(period: float, show: Callable[[Runner], None]) -> Callable[[Runner], None]:
    last = time.monotonic()

    def callback(runner: Runner) -> None:
        nonlocal last
        if time.monotonic() - last >= period:
            last = time.monotonic()
            show(runner)

    return callback


def show_result(runner: Runner) -> None:
    """The final state of every source on standard error."""
    if stderr.is_terminal:
        stderr.print(table(runner))
    else:
        _print_lines(runner)


def _print_lines(runner: Runner) -> None:
    for source_id in range(len(runner.statuses)):
        name, state, frames, done, left, fps, objects, tracks, dropped, reason = row(runner, source_id)
        parts = [f"{name}: {state}", f"{frames} frames", done, f"eta {left}" if left else "", f"{fps} fps"]
        parts += [f"{objects} objects", f"{tracks} tracks", f"{dropped} dropped", reason]
        typer.echo(", ".join(part for part in parts if part), err=True)

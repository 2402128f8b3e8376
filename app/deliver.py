"""``gstorch deliver``."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from dataclasses import asdict
from typing import Annotated

import typer

from app.common import DefinitionPath, Overrides, fail, reject, set_up_logging
from pipelines.definition import DefinitionError, MessageStage, load_definition
from pipelines.delivery.broker import BadOptionError, MissingLibraryError
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Counters, OutboxError
from pipelines.outcome import EXIT_COMPLETE, EXIT_FAILED, EXIT_PARTIAL

log = logging.getLogger("gstorch.delivery")

POLL_S = 0.1
PATIENCE_S = 3.0
"""How long a broker may be silent before the user is told what is waited for."""


def deliver(
    file: DefinitionPath,
    set_: Overrides = None,
    timeout: Annotated[float, typer.Option(help="Seconds to try, for each message stage.")] = 60.0,
    json_: Annotated[bool, typer.Option("--json", help="Print the counters as JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail.")] = 0,
) -> None:
    """Deliver the messages that runs of a pipeline have left in their outboxes, without running it.

    Exit codes: 0 all are delivered, 1 failed, 2 the definition was rejected, 3 some still wait.
    """
    from pipelines.stages.message import settings_of

    set_up_logging(quiet, verbose)
    try:
        definition = load_definition(file, set_ or (), check_files=False)
    except DefinitionError as error:
        reject(error)
    stages = [s for s in definition.stages if isinstance(s, MessageStage) and s.delivery == "durable"]
    found: dict[str, Counters] = {}
    for stage in stages:
        settings = settings_of(stage, definition.pipeline)
        if not settings.outbox.is_file():
            continue
        try:
            found[str(stage.name)] = empty(settings, timeout)
        except (OutboxError, MissingLibraryError, BadOptionError) as error:
            fail(f"stage '{stage.name}': {error}")
            raise typer.Exit(EXIT_FAILED) from None
    if json_:
        typer.echo(json.dumps({name: {**asdict(c), "queued": c.queued} for name, c in found.items()}))
    elif not quiet:
        for name, counters in found.items():
            dropped = sum(counters.dropped.values())
            typer.echo(f"{name}: {counters.delivered} delivered, {counters.queued} queued, {dropped} dropped", err=True)
        if not found:
            typer.echo("no outbox: nothing was ever sent by this definition's message stages", err=True)
    raise typer.Exit(EXIT_PARTIAL if any(counters.queued for counters in found.values()) else EXIT_COMPLETE)


def empty(settings: Settings, seconds: float) -> Counters:
    """Deliver what an outbox holds, for at most ``seconds`` or until Ctrl-C; the counters at the end.

    Raises:
        OutboxError: it cannot be used, for example because a pipeline is running.
        MissingLibraryError, BadOptionError: see `Delivery`.
    """
    delivery = Delivery(settings)
    started = time.monotonic()
    delivered, told = delivery.status().counters.delivered, False
    with contextlib.suppress(KeyboardInterrupt):
        while (status := delivery.status()).counters.queued and time.monotonic() < started + seconds:
            silent = status.counters.delivered == delivered and not status.error  # an error is logged by itself
            if silent and not told and time.monotonic() > started + PATIENCE_S:
                told = True
                log.info(
                    "%s: no answer yet, %d messages wait; an answer may take %g s, all of this %g s (--timeout)",
                    *(status.broker, status.counters.queued, settings.timeout, seconds),
                )
            time.sleep(POLL_S)
    return delivery.close(0.0)

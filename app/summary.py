"""What a run came to, as plain data for ``--json`` and as a table for people."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from pipelines.plan import Plan
from pipelines.runner import Runner
from pipelines.sources import SourceState

STATE_STYLES = {
    SourceState.STARTING: "dim",
    SourceState.RUNNING: "cyan",
    SourceState.FINISHED: "green",
    SourceState.STOPPED: "green",
    SourceState.TRUNCATED: "yellow",
    SourceState.LOST: "yellow",
    SourceState.FAILED: "red",
}


def summarise(plan: Plan, runner: Runner) -> dict[str, Any]:
    """The final summary; every count is per source and adds up to what the event file holds."""
    sources = []
    for source_id, (status, count) in enumerate(zip(runner.statuses, runner.counts, strict=True)):
        sources.append(
            {
                "source": status.source.name,
                "source_id": source_id,
                "location": status.source.location,
                "state": str(status.state),
                "reason": status.reason or None,
                "frames": count.frames,
                "expected_frames": status.expected_frames,
                "frames_dropped": runner.dropped(source_id),
                "frames_failed": runner.failed(source_id),
                "objects": count.objects,
                "tracks": count.tracks,
                "fps": round(count.rate(), 2),
            }
        )
    outcome = runner.outcome
    return {
        "pipeline": plan.definition.pipeline,
        "exit_code": runner.exit_code(),
        "error": outcome.error or None,
        "interrupted": outcome.interrupted,
        "runtime": "portable" if plan.runtime.portable else "deepstream",
        "seconds": round(outcome.seconds, 3),
        "cpu_seconds": round(outcome.cpu_seconds, 3),
        "first_result_s": None if outcome.first_result_s is None else round(outcome.first_result_s, 3),
        "frames": sum(count.frames for count in runner.counts),
        "sources": sources,
        "inference": runner.element_counts("pyinfer"),
        "filters": runner.element_counts("pymetafilter"),
        "prompts": runner.element_counts("pyprompt"),
        "models": runner.models(),
        "operators": {
            name: operator.stats for name, operator in runner.assembly.operators.items() if hasattr(operator, "stats")
        },
    }


def table(runner: Runner) -> Table:
    """The live table: one row per source."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for column, justify in (
        ("source", "left"),
        ("state", "left"),
        ("frames", "right"),
        ("done", "right"),
        ("eta", "right"),
        ("fps", "right"),
        ("objects", "right"),
        ("tracks", "right"),
        ("dropped", "right"),
        ("", "left"),
    ):
        result.add_column(column, justify=justify)  # type: ignore[arg-type]
    for source_id in range(len(runner.statuses)):
        state = runner.statuses[source_id].state
        cells = [escape(cell) for cell in row(runner, source_id)]
        cells[1] = f"[{STATE_STYLES[state]}]{state}[/]"
        result.add_row(*cells)
    return result


def row(runner: Runner, source_id: int) -> list[str]:
    """Cells of one source: name, state, frames, percentage, time left, rate, objects, tracks, dropped, reason."""
    status, count = runner.statuses[source_id], runner.counts[source_id]
    done, left = "", ""
    if status.facts.media and status.facts.media.duration_s and not status.live:
        share = min(1.0, count.position / status.facts.media.duration_s)
        share = 1.0 if status.state is SourceState.FINISHED else share
        done = f"{share:.0%}"
        speed = count.position / count.elapsed() if count.elapsed() else 0
        if speed and status.state is SourceState.RUNNING:
            left = _clock((status.facts.media.duration_s - count.position) / speed)
    return [
        str(status.source.name),
        str(status.state),
        str(count.frames),
        done,
        left,
        f"{count.rate():.1f}",
        str(count.objects),
        str(count.tracks),
        str(runner.dropped(source_id)),
        status.reason,
    ]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

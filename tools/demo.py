"""``make demo``: make the clips once, run configs/demo.yaml, compare with the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app.common import set_up_logging
from app.progress import progress
from pipelines.catalog import GStreamerCatalog
from pipelines.definition import load_definition
from pipelines.plan import make_plan, open_runner
from tools.scenes.make_clips import Clip, missing_clips
from tools.scenes.score import load_events, load_truth, score

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "demo"
DEFINITION = ROOT / "configs" / "demo.yaml"


def what_is_made(clips: list[Clip]) -> str:
    """The line that is printed while clips are made, which is silent otherwise."""
    named = " and ".join(f"{clip.name} ({clip.duration:g} s of {clip.width}x{clip.height})" for clip in clips)
    return f"Making {named}, once; about a minute on two cores ..."


def main() -> int:
    """Returns the run's exit code."""
    console = Console()
    if missing := missing_clips(OUT):
        console.print(what_is_made(missing))
    make_clips = [sys.executable, "-m", "tools.scenes.make_clips", str(OUT)]
    subprocess.run(make_clips, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    set_up_logging(quiet=True, verbose=0)
    plan = make_plan(load_definition(DEFINITION, catalog=GStreamerCatalog()))
    runner = open_runner(plan)
    with progress(quiet=False) as callback:
        outcome = runner.run(callback)
    if outcome.error:
        console.print(f"[red]error:[/] {outcome.error}")
        return runner.exit_code()

    table = Table(title=f"{outcome.seconds:.1f} s on the {'CPU' if plan.runtime.portable else 'GPU'}")
    for column in ("source", "frames", "fps", "objects", "tracks", "true tracks", "precision", "recall"):
        table.add_column(column, justify="left" if column == "source" else "right")
    events = load_events(OUT / "events.jsonl")
    for status, count in zip(runner.statuses, runner.counts, strict=True):
        name = status.source.name or ""
        result = score(events[name], load_truth(OUT / f"{name}.truth.json"))
        table.add_row(
            name, str(count.frames), f"{count.rate():.1f}", str(count.objects), str(count.tracks),
            str(result.truth_tracks), f"{result.precision:.3f}", f"{result.recall:.3f}",
        )  # fmt: skip
    console.print(table)
    console.print(f"video:  {OUT / 'demo.mp4'}\nevents: {OUT / 'events.jsonl'}")
    return runner.exit_code()


if __name__ == "__main__":
    sys.exit(main())

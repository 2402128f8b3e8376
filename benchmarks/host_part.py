"""CPU time of the host's part per batch: from the stream mux to events, around a model that answers at once.

    python -m benchmarks.host_part [--sources 16] [--objects 0 5 20] [--frames 1500]

`gstorch run` with one small generated clip per source, a class as model whose `submit` and `collect` do nothing, as if
a GPU were behind them, and an event file in /dev/null. Counted are the threads that carry batches, by name; not those
that decode, which on a GPU run no Python. What the torch path itself costs per batch (tables, launches) is not in it.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elements.metadata.detections import Detections

SIZE = (64, 48)
SKIPPED = 0.2  # share of the frames at either end that is not measured: starts, and ends of single sources


class Instant:
    """A model that finds the same objects in every frame."""

    names = ("thing",)
    overlaps = True

    def __init__(self, objects: int) -> None:
        edges = np.linspace(1, 20, objects, dtype=np.float32)
        self._boxes = np.stack([edges, edges, edges + 20, edges + 20], axis=1)
        self._scores, self._numbers = np.full(objects, 0.9, np.float32), np.zeros(objects, np.int64)

    def load(self) -> None:
        """Nothing to load."""

    def submit(self, frames: Sequence[Any]) -> int:
        """Remember how many frames there are."""
        return len(frames)

    def collect(self, work: int) -> list[Detections]:
        """The answer: new arrays for each frame, as a model makes them."""
        return [Detections(self._boxes.copy(), self._scores.copy(), self._numbers.copy()) for _ in range(work)]

    def infer(self, frames: Sequence[Any]) -> list[Detections]:
        """Both steps."""
        return self.collect(self.submit(frames))

    def close(self) -> None:
        """Nothing to free."""


def definition(clip: Path, sources: int, objects: int) -> dict[str, Any]:
    """Inference and events."""
    return {
        "pipeline": "host-part",
        "sources": [{"name": f"s{i}", "uri": str(clip)} for i in range(sources)],
        "mux": {"batch_size": sources},
        "stages": [{"infer": {"model": "benchmarks.host_part:Instant", "params": {"objects": objects}}}],
        "outputs": [{"events": {"path": "/dev/null"}}],
    }


def cpu_ms() -> dict[str, float]:
    """CPU time so far of the threads that carry batches."""
    ours = {t.native_id: t.name for t in threading.enumerate() if t.name.endswith(("-batches", "-results"))}
    found: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            name = ours.get(int(task.name)) or (task / "comm").read_text().strip()
            if int(task.name) in ours or re.search("(^|-)queue", name):  # queues of the pipeline, none of a decoder
                spent = int((task / "schedstat").read_text().split()[0]) / 1e6
                found[name] = found.get(name, 0) + spent
    return found


def measure(clip: Path, sources: int, objects: int, frames: int) -> dict[str, float]:
    """Milliseconds per batch, by thread."""
    from elements.base import Gst

    Gst.init(None)  # caps in the classes of elements need it
    from pipelines.definition import definition_from_mapping
    from pipelines.plan import make_plan, open_runner

    runner = open_runner(make_plan(definition_from_mapping(definition(clip, sources, objects), Path.cwd())))
    looks: list[tuple[int, dict[str, float]]] = []

    def look(now: Any) -> None:
        looks.append((sum(count.frames for count in now.counts), cpu_ms()))

    outcome = runner.run(look)
    if outcome.error:
        raise SystemExit(outcome.error)
    all_frames = sources * frames
    steady = [(n, spent) for n, spent in looks if SKIPPED * all_frames < n < (1 - SKIPPED) * all_frames]
    if len(steady) < 2:
        raise SystemExit("the run was too short to be measured: give more --frames")
    (first, before), (last, after) = steady[0], steady[-1]
    batches = (last - first) / sources
    return {name: (after[name] - before.get(name, 0)) / batches for name in sorted(after)}


def main() -> None:
    """Print one row per number of objects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--objects", type=int, nargs="+", default=[0, 5, 20])
    parser.add_argument("--frames", type=int, default=1500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clip = Path(folder, "clip.mp4")
        picture = f"testsrc=s={SIZE[0]}x{SIZE[1]}:r=30,trim=end_frame={options.frames}"
        command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", picture, "-c:v", "libx264", "-pix_fmt", "yuv420p"]
        subprocess.run([*command, str(clip)], check=True)
        for objects in options.objects:
            found = measure(clip, options.sources, objects, options.frames)
            parts = ", ".join(f"{name} {spent:.2f}" for name, spent in found.items())
            print(f"{objects} objects per frame: {sum(found.values()):.2f} ms per batch of {options.sources} ({parts})")


if __name__ == "__main__":
    main()

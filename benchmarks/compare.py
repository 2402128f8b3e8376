"""gstorch against the plain loop: same files, model, confidence and outputs, in turn, medians.

    python -m benchmarks.compare --model yolox_nano_416.onnx clip1.mp4 clip2.mp4 [--sources 1 4 8] [--repeat 3]

Clips are repeated until there are enough. Rates and CPU time are those of the run itself, after imports.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

Figures = dict[str, float]
CONFIDENCE = "0.35"
CANVAS = "1280x720"


def gstorch_command(sources: Sequence[str], model: str, folder: str, draw: bool) -> list[str]:
    """gstorch with an event file and, if drawing, a tiled video."""
    command = [sys.executable, "-m", "app.main", "run", *sources, "--model", model, "--confidence", CONFIDENCE]
    command += ["--events", f"{folder}/ours.jsonl", "--json", "--quiet", "--set", "stages.infer.rectangular=true"]
    if draw:
        width, height = CANVAS.split("x")
        command += ["--output", f"{folder}/ours.mp4"]
        command += ["--set", f"outputs.file.width={width}", "--set", f"outputs.file.height={height}"]
    return command


def plain_command(sources: Sequence[str], model: str, folder: str, draw: bool) -> list[str]:
    """The plain loop with the same outputs."""
    command = [sys.executable, "-m", "benchmarks.plain_loop", *sources, "--model", model, "--confidence", CONFIDENCE]
    command += ["--events", f"{folder}/plain.jsonl"]
    return [*command, "--output", f"{folder}/plain.mp4", "--size", CANVAS] if draw else command


def measure(command: list[str]) -> Figures:
    """Run a command whose last line of output is a JSON object; frames/s, CPU seconds per 1000 frames, peak MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    result = json.loads(output.strip().splitlines()[-1])
    return {
        "fps": result["frames"] / result["seconds"],
        "cpu": 1000 * result["cpu_seconds"] / result["frames"],
        "first": result["first_result_s"],
        "peak": usage.ru_maxrss / 1024,
    }


def median(runs: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    """Print one row per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clips", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--sources", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(
        "| sources | outputs | frames/s plain | gstorch | ratio | CPU s/1000 plain | gstorch | ratio | first result s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count, draw in itertools.product(options.sources, (False, True)):
        sources = list(itertools.islice(itertools.cycle(options.clips), count))
        ours, plain = [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(options.repeat):
                plain.append(measure(plain_command(sources, options.model, folder, draw)))
                ours.append(measure(gstorch_command(sources, options.model, folder, draw)))
        a, b = median(plain), median(ours)
        outputs = "events + video" if draw else "events"
        print(
            f"| {count} | {outputs} | {a['fps']:.1f} | {b['fps']:.1f} | {b['fps'] / a['fps']:.2f} "
            f"| {a['cpu']:.1f} | {b['cpu']:.1f} | {b['cpu'] / a['cpu']:.2f} | {b['first']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

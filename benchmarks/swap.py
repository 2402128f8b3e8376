"""Models exchanged under load: 30 swaps in 60 s on four looping sources at full speed.

    python -m benchmarks.swap [--seconds 60] [--swaps 30] [--sources 4] [--device cpu] [--model A --other B]

By default it makes two detectors of unlike input size, layout and labels. Prints frames/s, what became of the swaps,
resident memory (and on a GPU torch's) with its slope, and checks that no frame
is lost and that every event's version fits its labels. Ends with status 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak import make_clips, slope
from elements.inference.swap.memory import limit_arenas
from elements.inference.swap.status import SwapState
from pipelines.control import SwapModel
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from tests.onnx_models import finder, save

SAMPLE_S = 0.5
KEEP_S = 1.0
ANSWER_S = 60.0
LIMIT_MIB_PER_MINUTE = 5.0  # over a single minute, in which the allocator settles


@dataclass
class Record:
    """What was seen: (seconds, resident MiB, MiB of torch on the GPU), answers, seconds from request to switch."""

    memory: list[tuple[float, float, float]] = field(default_factory=list)
    answers: list[SwapState] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def resident_mib() -> float:
    """Resident memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def gpu_mib() -> float:
    """What torch holds on the GPU; 0 where it is not in use."""
    torch = sys.modules.get("torch")
    return torch.cuda.memory_reserved() / 2**20 if torch is not None and torch.cuda.is_available() else 0.0


def drive(runner: Runner, models: list[str], swaps: int, seconds: float, record: Record) -> None:
    """Swap at even times, sample memory meanwhile, then stop."""
    while not all(count.frames for count in runner.counts):
        time.sleep(0.05)
    started, turn = time.monotonic(), itertools.cycle(models[::-1])
    for number in range(swaps):
        while time.monotonic() < started + seconds * (number + 1) / (swaps + 1):
            record.memory.append((time.monotonic() - started, resident_mib(), gpu_mib()))
            time.sleep(SAMPLE_S)
        asked = time.monotonic()
        result = runner.control.apply(SwapModel("infer", next(turn)))
        assert result.swap is not None, result.reason
        record.answers.append(result.swap.result(ANSWER_S).state)
        record.waits.append(time.monotonic() - asked)
    while time.monotonic() < started + seconds:
        record.memory.append((time.monotonic() - started, resident_mib(), gpu_mib()))
        time.sleep(SAMPLE_S)
    runner.stop()


def faults(runner: Runner, events: Path) -> Iterator[str]:
    """What does not hold: lost frames, versions that do not fit their labels, frames without a version."""
    numbers: dict[int, int] = {}
    labels: dict[str, set[str]] = {}
    with events.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            source = event["source_id"]
            if event["frame"] != numbers.get(source, -1) + 1:
                yield f"source {source}: frame {event['frame']} comes after {numbers.get(source, -1)}"
            numbers[source] = event["frame"]
            version = event.get("models", {}).get("infer", "")
            labels.setdefault(version, set()).update(o["label"] for o in event["objects"])
    written = sum(number + 1 for number in numbers.values())
    counted = sum(count.frames for count in runner.counts)
    inferred = runner.element_counts("pyinfer")["infer"]["frames-inferred"]
    if not written == counted == inferred:
        yield f"{inferred} frames inferred, {counted} counted, {written} written"
    if "" in labels:
        yield "there are frames without a version"
    for one, other in itertools.combinations(labels, 2):
        if labels[one] & labels[other]:
            yield f"{one} and {other} share the labels {labels[one] & labels[other]}"


def main() -> int:
    """Run, report; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--swaps", type=int, default=30)
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default="")
    parser.add_argument("--other", default="")
    options = parser.parse_args()
    limit_arenas()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = {"names": "['red', 'green', 'blue']"}
        large = {"names": "['rot', 'grün', 'blau']"}
        models = [
            options.model or save(finder("yolov8", (320, 320), metadata=small), folder / "small.onnx"),
            options.other or save(finder("yolox", (416, 416), metadata=large), folder / "large.onnx"),
        ]
        definition = {
            "pipeline": "swap",
            "sources": [{"uri": str(clip), "loop": True} for clip in make_clips(folder, options.sources)],
            "stages": [{"infer": {"model": models[0], "device": options.device, "swap": {"keep": f"{KEEP_S}s"}}}],
            "outputs": [{"events": {"path": str(folder / "events.jsonl")}}],
        }
        runner, record = open_runner(make_plan(definition_from_mapping(definition, folder))), Record()
        driver = threading.Thread(target=drive, args=(runner, models, options.swaps, options.seconds, record))
        driver.start()
        outcome = runner.run()
        driver.join()
        found = list(itertools.islice(faults(runner, folder / "events.jsonl"), 10))
    frames = sum(count.frames for count in runner.counts)
    print(f"{frames} frames of {options.sources} sources in {outcome.seconds:.1f} s: {frames / outcome.seconds:.0f}/s")
    active = record.answers.count(SwapState.ACTIVE)
    print(f"{active} of {options.swaps} swaps active; {max(record.waits):.2f} s from request to switch at most")
    half = len(record.memory) // 2
    growth = [slope([m[0] for m in record.memory[half:]], [m[i] for m in record.memory[half:]]) for i in (1, 2)]
    for what, column, per_minute in zip(("resident", "GPU"), (1, 2), growth, strict=True):
        values = [m[column] for m in record.memory]
        print(f"{what}: {values[0]:.1f} -> {values[-1]:.1f} MiB, second half {per_minute:+.2f} MiB/min")
    for fault in found:
        print(f"FAULT: {fault}")
    if outcome.error:
        print(f"FAULT: {outcome.error}")
    bad = found or outcome.error or active != options.swaps or max(growth) >= LIMIT_MIB_PER_MINUTE
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

"""Models exchanged under load: 30 swaps in 60 s on four looping sources at full speed.

    python -m benchmarks.swap [--seconds 60] [--swaps 30] [--sources 4] [--device cpu] [--model A --other B]
    python -m benchmarks.swap --device cuda --clip CLIP

By default it makes two detectors of unlike input size, layout and labels, and after every fourth swap has a bad model
(garbage, one that gives NaN, one that raises on its third batch) try in vain. CLIP is for machines without ffmpeg.
Prints frames/s, what became of the swaps, resident memory (and the GPU's), and checks that no frame is lost,
that every event's version fits its labels, and that memory is flat. Ends with status 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak import make_clips, slope
from benchmarks.swap_models import Choice, make_models
from elements.inference.swap.memory import limit_arenas
from elements.inference.swap.status import SwapState
from pipelines.control import SwapModel
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner

SAMPLE_S = 0.5
KEEP_S = 1.0
ANSWER_S = 60.0
BAD_EVERY = 4  # swaps: each tries in the first half, as kernels that only one model needs stay loaded from then on
LIMIT_MIB_PER_MINUTE = 5.0  # over a single minute, in which the allocator settles


@dataclass
class Record:
    """What was seen.

    Attributes:
        memory: (seconds, resident MiB, MiB of the GPU).
        answers: ends of the swaps to good models.
        waits: seconds from request to switch.
        faults: what became of bad models, where it should not have.
        ended: the run is over.
    """

    memory: list[tuple[float, float, float]] = field(default_factory=list)
    answers: list[SwapState] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    ended: bool = False


def resident_mib() -> float:
    """Resident memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def gpu_mib() -> float:
    """What is taken of the GPU, by whatever; 0 where it is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return float(total - free) / 2**20


def drive(
    runner: Runner, models: list[Choice], bad: Sequence[Choice], swaps: int, seconds: float, record: Record
) -> None:
    """Swap at even times, sample memory meanwhile, then stop."""
    bad_turn, turn = itertools.cycle(bad), itertools.cycle(models[::-1])
    try:
        while not all(count.frames for count in runner.counts):
            if record.ended:
                return
            time.sleep(0.05)
        started = time.monotonic()
        for number in range(swaps):
            sample_until(started, seconds * (number + 1) / (swaps + 1), record)
            asked = time.monotonic()
            chosen = next(turn)
            result = runner.control.apply(SwapModel("infer", chosen.model, options=chosen.properties()))
            assert result.swap is not None, result.reason
            record.answers.append(result.swap.result(ANSWER_S).state)
            record.waits.append(time.monotonic() - asked)
            if bad and number % BAD_EVERY == BAD_EVERY - 1:
                record.faults += try_in_vain(runner, next(bad_turn))
        sample_until(started, seconds, record)
    except Exception as error:
        record.faults.append(f"{type(error).__name__}: {error}")
    finally:
        runner.stop()


def sample_until(started: float, seconds: float, record: Record) -> None:
    """Sample memory until ``seconds`` after ``started``."""
    while (now := time.monotonic() - started) < seconds:
        record.memory.append((now, resident_mib(), gpu_mib()))
        time.sleep(min(SAMPLE_S, seconds - now))


def try_in_vain(runner: Runner, bad: Choice) -> Iterator[str]:
    """Swap to a bad model; what does not go as it should."""
    before = runner.models()["infer"]
    result = runner.control.apply(SwapModel("infer", bad.model, options=bad.properties()))
    assert result.swap is not None, result.reason
    state = result.swap.result(ANSWER_S).state
    until = time.monotonic() + ANSWER_S
    while bad.end is SwapState.ROLLED_BACK and state is not bad.end and time.monotonic() < until:
        time.sleep(0.01)
        if runner.models()["infer"]["rolled_back"] > before["rolled_back"]:
            state = SwapState.ROLLED_BACK
    models = runner.models()["infer"]
    print(f"{Path(bad.model).name}: {state}: {models['error']}", flush=True)
    if state != bad.end:
        yield f"{bad.model} is {state}, not {bad.end}"
    if models["version"] != before["version"]:
        yield f"{models['version']} goes on after {bad.model}"


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


def memory_faults(samples: Sequence[tuple[float, float, float]]) -> list[str]:
    """Print how memory went; what grows too much.

    Resident memory by its slope over the second half. The GPU's goes up and down with the models, so the least of the
    second quarter and of the last is compared.
    """
    half, quarter = len(samples) // 2, len(samples) // 4
    if not quarter:
        return ["it ended too soon to tell whether memory is flat"]
    seconds, resident, gpu = (list(column) for column in zip(*samples, strict=True))
    per_minute = slope(seconds[half:], resident[half:])
    more = min(gpu[-quarter:]) - min(gpu[quarter:half])
    print(f"resident: {resident[0]:.1f} -> {resident[-1]:.1f} MiB, second half {per_minute:+.2f} MiB/min")
    print(f"GPU: {min(gpu):.1f} to {max(gpu):.1f} MiB, least of the last quarter {more:+.1f} MiB on the second's")
    found = [f"resident memory grows by {per_minute:.1f} MiB/min"] if per_minute >= LIMIT_MIB_PER_MINUTE else []
    return found + ([f"GPU memory grew by {more:.1f} MiB"] if more >= LIMIT_MIB_PER_MINUTE else [])


def main() -> int:
    """Run, report; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--swaps", type=int, default=30)
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clip", type=Path, help="for all sources; default: clips that ffmpeg makes")
    parser.add_argument("--model", default="")
    parser.add_argument("--other", default="")
    options = parser.parse_args()
    limit_arenas()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        good, bad = make_models(folder, options.device)
        models = [
            Choice(options.model) if options.model else good[0],
            Choice(options.other) if options.other else good[1],
        ]
        clips = [options.clip.resolve()] * options.sources if options.clip else make_clips(folder, options.sources)
        first = {"device": options.device, "model": models[0].model, **models[0].options}
        definition = {
            "pipeline": "swap",
            "sources": [{"uri": str(clip), "loop": True} for clip in clips],
            "stages": [{"infer": {**first, "swap": {"keep": f"{KEEP_S}s"}}}],
            "outputs": [{"events": {"path": str(folder / "events.jsonl")}}],
        }
        runner, record = open_runner(make_plan(definition_from_mapping(definition, folder))), Record()
        driver = threading.Thread(target=drive, args=(runner, models, bad, options.swaps, options.seconds, record))
        driver.start()
        outcome = runner.run()
        record.ended = True
        driver.join()
        found = record.faults + list(itertools.islice(faults(runner, folder / "events.jsonl"), 10))
    frames = sum(count.frames for count in runner.counts)
    print(f"{frames} frames of {options.sources} sources in {outcome.seconds:.1f} s: {frames / outcome.seconds:.0f}/s")
    active = record.answers.count(SwapState.ACTIVE)
    print(
        f"{active} of {options.swaps} swaps active; {max(record.waits, default=0):.2f} s from request to switch at most"
    )
    found += memory_faults(record.memory)
    for fault in found:
        print(f"FAULT: {fault}")
    if outcome.error:
        print(f"FAULT: {outcome.error}")
    return int(bool(found or outcome.error or active != options.swaps))


if __name__ == "__main__":
    sys.exit(main())

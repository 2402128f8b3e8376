"""Whole runs on a GPU, decoder to events: no pixels on the host, memory that stays flat, colours as on the CPU."""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path
from typing import Any

import pytest

from elements.portable import nvidia
from pipelines.definition import definition_from_mapping
from pipelines.outcome import Outcome
from pipelines.plan import make_plan, open_runner
from tests.clips import drifting
from tests.gpu.make_clips import FRAMES, LONG, SIZES
from tests.pictures import NAMES

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

MIB = 2**20
ROW = 6 * 4  # bytes of a detection on its way to the host
CANDIDATES = 512


@pytest.fixture(scope="module")
def clips() -> Path:
    if not nvidia.decodes_on_gpu():
        pytest.skip("needs a CUDA GPU and NVIDIA's decoder wheel on GST_PLUGIN_PATH")
    folder = Path(os.environ.get("GSTORCH_GPU_CLIPS", ""))
    if not (folder / "frames.npz").is_file():
        pytest.skip("GSTORCH_GPU_CLIPS names no folder made by `python -m tests.gpu.make_clips`")
    return folder


def run(clips: list[Path], events: Path, on_progress: Any = None, **mux: int) -> Outcome:
    """What ``gstorch run`` does with a definition that infers and writes events."""
    infer = {"model": "tests.torch_models:Finder", "labels": list(NAMES), "layout": "yolov8", "input_size": 640}
    definition = {
        "pipeline": "gpu",
        "sources": [{"name": f"s{i}", "uri": str(clip)} for i, clip in enumerate(clips)],
        "mux": mux,
        "stages": [{"infer": {**infer, "device": "cuda", "precision": "fp32", "confidence": 0.5}}],
        "outputs": [{"events": {"path": str(events)}}],
    }
    runner = open_runner(make_plan(definition_from_mapping(definition, Path.cwd())))
    outcome = runner.run(on_progress)
    assert (outcome.error, runner.exit_code()) == ("", 0)
    return outcome


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", SIZES)
def test_boxes_are_where_the_rectangles_are(clips: Path, tmp_path: Path, name: str) -> None:
    events = tmp_path / "events.jsonl"
    run([clips / f"{name}.mp4"], events)
    truth, worst = drifting(*SIZES[name]), 0.0
    found = read(events)
    assert [event["frame"] for event in found] == list(range(FRAMES))
    for event in found:
        boxes = {item["class_id"]: item["bbox"] for item in event["objects"]}
        for number, box in truth(event["frame"]).items():
            worst = max(worst, *(abs(a - b) for a, b in zip(boxes[number], box, strict=True)))
    print(name, "worst corner:", worst, "pixels")
    assert worst < 1.5


def test_only_detections_are_copied_to_the_host(clips: Path, tmp_path: Path) -> None:
    sources = 8
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        run([clips / "plain.mp4"] * sources, tmp_path / "events.jsonl", batch_size=sources)
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy" and "DtoH" in e["name"]]
    copies.sort(key=lambda event: event["ts"])
    sizes = [int(event["args"]["bytes"]) for event in copies]
    frame = (1 + CANDIDATES) * ROW
    begun = next(i for i, size in enumerate(sizes) if size % frame == 0)  # before: outputs of trial runs, at start
    times = [float(event["dur"]) for event in copies[begun:]]
    print(
        f"{len(times)} copies to the host for {FRAMES} batches of {sources}: sizes {sorted(set(sizes[begun:]))} bytes, "
        f"{statistics.median(times)} us (median), {max(times)} us (longest); {begun} before the first batch"
    )
    assert all(size % frame == 0 and size <= sources * frame for size in sizes[begun:])  # a picture has 697,212 bytes
    assert FRAMES <= len(times) <= FRAMES * 1.2  # one a batch; the ends of files make some batches smaller
    assert statistics.median(times) <= 30


def test_gpu_memory_is_flat_over_2000_batches(clips: Path, tmp_path: Path) -> None:
    free: list[tuple[int, int]] = []

    def look(runner: Any) -> None:
        free.append((sum(count.frames for count in runner.counts), torch.cuda.mem_get_info()[0]))

    run([clips / "long.mp4"], tmp_path / "events.jsonl", look, batch_size=1)
    settled = [value for frames, value in free if frames > LONG // 8]
    print(f"GPU memory over {LONG} batches: {(max(settled) - min(settled)) / MIB:+.1f} MiB between most and least")
    assert len(settled) > 3
    assert settled[0] - settled[-1] <= 2 * MIB

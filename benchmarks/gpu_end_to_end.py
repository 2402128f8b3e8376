"""`gstorch run` on a GPU without the SDK, and beside it what decoder and network can do alone, in one session.

    python -m benchmarks.gpu_end_to_end CLIP [--streams 1 8 16 32] [--compile] [--json out.json]

CLIP, a 1080p H.264 file, is opened once per stream. Needs a GPU, torch, and NVIDIA's decoder wheel on GST_PLUGIN_PATH.
Rates, of the whole and of the decoder, are those of the middle half of all frames: at the beginning sources come one by
one and CUDA graphs are made, at the end they leave one by one, which weighs the more the shorter the clip is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

NETWORK = "benchmarks.network:Detector"
LIMIT_S = 300
LOOK_S = 0.02  # between two looks at what was decoded
Figures = dict[str, Any]


def middle_rate(counts: Sequence[tuple[float, int]]) -> float:
    """Frames/s between the first looks at which a quarter and three quarters of all frames had come.

    Args:
        counts: (seconds, frames so far), in order.

    >>> middle_rate([(0, 0), (1, 10), (2, 30), (3, 60), (4, 90), (5, 100)])
    30.0
    """
    total = counts[-1][1]
    (begin, first), (end, last) = (next(look for look in counts if look[1] >= total * part) for part in (0.25, 0.75))
    if end <= begin:
        raise SystemExit("the clip is too short: its middle half passed between two looks")
    return (last - first) / (end - begin)


def network(size: str) -> dict[str, Any]:
    """An ``infer`` stage with the network, for an input of this size."""
    return {"model": NETWORK, "layout": "yolov8", "letterbox": "center", "device": "cuda", "input_size": size}


def definition(clip: Path, streams: int, events: Path, compiled: bool) -> dict[str, Any]:
    """Inference and an event file, no pixels out."""
    infer = {**network("640x384" if compiled else "640"), "compile": compiled}
    return {
        "pipeline": "bench",
        "sources": [{"name": f"s{i}", "uri": str(clip.resolve())} for i in range(streams)],
        "stages": [{"infer": infer}],
        "outputs": [{"events": {"path": str(events)}}],
    }


def end_to_end(clip: Path, streams: int, program: list[str], compiled: bool = False) -> Figures:
    """Frames/s of the whole pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        path, events = Path(folder, "bench.yaml"), Path(folder, "events.jsonl")
        path.write_text(yaml.safe_dump(definition(clip, streams, events, compiled)), encoding="utf-8")
        command = [*program, "run", str(path), "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        times = batch_times(events) if done.returncode == 0 else []
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    sys.stderr.write(done.stderr[-6000:])
    summary = json.loads(done.stdout.strip().splitlines()[-1])
    return {
        "frames": summary["frames"],
        "objects": sum(source["objects"] for source in summary["sources"]),
        "frames_per_s": round(middle_rate([(time, n) for n, time in enumerate(times, 1)])),
        "frames_per_s_with_start_and_end": round(len(times) / (times[-1] - times[0])),
        "cpu_s": summary["cpu_seconds"],
        "seconds": summary["seconds"],
        "first_result_s": summary["first_result_s"],
    }


def batch_times(events: Path) -> list[float]:
    """When each frame was put into its batch, seconds, sorted."""
    with events.open(encoding="utf-8") as lines:
        found = [datetime.fromisoformat(json.loads(line)["time_utc"]).timestamp() for line in lines]
    return sorted(found)


def decoding(clip: Path, streams: int) -> float:
    """Frames/s of decoder and converter alone, with the sources of `gstorch run`; in this process."""
    from elements.base import Gst

    Gst.init(None)
    from elements.portable.register import register_stand_ins  # caps in its classes need GStreamer

    register_stand_ins()
    line = " ".join(
        f"nvurisrcbin uri={clip.resolve().as_uri()} ! fakesink name=f{i} sync=false async=false" for i in range(streams)
    )
    pipeline = Gst.parse_launch(line)
    sinks = [pipeline.get_by_name(f"f{i}") for i in range(streams)]
    counts: list[tuple[float, int]] = []
    pipeline.set_state(Gst.State.PLAYING)
    end, until, message = Gst.MessageType.EOS | Gst.MessageType.ERROR, time.monotonic() + LIMIT_S, None
    while message is None and time.monotonic() < until:
        message = pipeline.get_bus().timed_pop_filtered(int(LOOK_S * Gst.SECOND), end)
        counts.append((time.monotonic(), sum(sink.get_property("stats").get_uint64("rendered")[1] for sink in sinks)))
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type != Gst.MessageType.EOS:
        raise SystemExit(f"decoding failed: {message and message.parse_error()}")
    return middle_rate(counts)


def inference(batches: list[int], compiled: bool) -> Figures:
    """Images/s of the model alone, from pictures on the GPU to detections on the host, several batches on the way."""
    from benchmarks.gpu_inference import SIZE, compiled_figures, whole_figures
    from elements.inference.config import ModelConfig
    from elements.inference.model import DetectionModel

    if compiled:
        found = {batch: compiled_figures(batch)["compiled"] for batch in batches}
        return {str(batch): round(figures["two_on_the_way_images_per_s"]) for batch, figures in found.items()}
    config = ModelConfig(NETWORK, device="cuda", input_size=SIZE, letterbox="center", layout="yolov8")
    model = DetectionModel(config)
    model.load()
    found = {batch: whole_figures(model, batch) for batch in batches}
    model.close()
    return {str(batch): round(figures["two_on_the_way_images_per_s"]) for batch, figures in found.items()}


def alone(part: str, clip: Path, streams: list[int], compiled: bool) -> Any:
    """A ceiling, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu_end_to_end", str(clip), "--only", part]
    command += ["--compile"] * compiled + ["--streams", *map(str, streams)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 16, 32])
    parser.add_argument("--compile", action="store_true", help="the network compiled by torch.compile")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=["decode", "model"], help=argparse.SUPPRESS)
    parser.add_argument("--program", nargs="+", default=[sys.executable, "-m", "app.main"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only == "decode":
        print(json.dumps({str(n): round(decoding(options.clip, n)) for n in options.streams}))
        return
    if options.only == "model":
        print(json.dumps(inference(options.streams, options.compile)))
        return
    figures: Figures = {
        "decode": alone("decode", options.clip, options.streams, False),
        "model": alone("model", options.clip, options.streams, options.compile),
    }
    print("| streams | frames/s | decoder alone | model alone | share of the lower | CPU ms/frame | first result s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for streams in options.streams:
        found = end_to_end(options.clip, streams, options.program, options.compile)
        decode, model = figures["decode"][str(streams)], figures["model"][str(streams)]
        figures[str(streams)] = found | {"share": found["frames_per_s"] / min(decode, model)}
        print(
            f"| {streams} | {found['frames_per_s']} | {decode} | {model} | {figures[str(streams)]['share']:.0%} "
            f"| {found['cpu_s'] * 1000 / found['frames']:.2f} | {found['first_result_s']} |",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""`gstorch run` on a GPU without the SDK, and beside it what decoder and network can do alone, in one session.

    python -m benchmarks.gpu_end_to_end CLIP [--streams 1 8 16 32] [--json out.json]

CLIP, a 1080p H.264 file, is opened once per stream. Needs a GPU, torch, and NVIDIA's decoder wheel on GST_PLUGIN_PATH.
Rates are steady: they begin with the first frame, so loading, CUDA graphs and prerolling are not in them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

NETWORK = "benchmarks.network:Detector"
LIMIT_S = 300
Figures = dict[str, Any]


def definition(clip: Path, streams: int) -> dict[str, Any]:
    """Inference and an event file, no pixels out."""
    infer = {"model": NETWORK, "layout": "yolov8", "input_size": 640, "letterbox": "center", "device": "cuda"}
    return {
        "pipeline": "bench",
        "sources": [{"name": f"s{i}", "uri": str(clip.resolve())} for i in range(streams)],
        "stages": [{"infer": infer}],
        "outputs": [{"events": {"path": "/dev/null"}}],
    }


def end_to_end(clip: Path, streams: int, program: list[str]) -> Figures:
    """Frames/s of the whole pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.yaml")
        path.write_text(yaml.safe_dump(definition(clip, streams)), encoding="utf-8")
        command = [*program, "run", str(path), "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    sys.stderr.write(done.stderr[-6000:])
    summary = json.loads(done.stdout.strip().splitlines()[-1])
    return {
        "frames": summary["frames"],
        "objects": sum(source["objects"] for source in summary["sources"]),
        "frames_per_s": round(sum(source["fps"] for source in summary["sources"])),
        "cpu_s": summary["cpu_seconds"],
        "seconds": summary["seconds"],
        "first_result_s": summary["first_result_s"],
    }


def decoding(clip: Path, streams: int) -> float:
    """Frames/s of decoder and converter alone, with the sources of `gstorch run`; in this process."""
    from elements.base import Gst

    Gst.init(None)
    from elements.portable.register import register_stand_ins  # caps in its classes need GStreamer

    register_stand_ins()
    started: list[float] = []

    def first(_pad: Any, _info: Any) -> Gst.PadProbeReturn:
        started.append(time.perf_counter())
        return Gst.PadProbeReturn.REMOVE

    line = " ".join(
        f"nvurisrcbin uri={clip.resolve().as_uri()} ! fakesink name=f{i} sync=false async=false" for i in range(streams)
    )
    pipeline = Gst.parse_launch(line)
    for i in range(streams):
        pipeline.get_by_name(f"f{i}").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, first)
    pipeline.set_state(Gst.State.PLAYING)
    end = Gst.MessageType.EOS | Gst.MessageType.ERROR
    message = pipeline.get_bus().timed_pop_filtered(LIMIT_S * Gst.SECOND, end)
    ended = time.perf_counter()
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type != Gst.MessageType.EOS:
        raise SystemExit(f"decoding failed: {message and message.parse_error()}")
    return streams * frames_of(clip) / (ended - min(started))


def frames_of(clip: Path) -> int:
    """Frames of a clip that OpenCV can open."""
    import cv2

    return int(cv2.VideoCapture(str(clip)).get(cv2.CAP_PROP_FRAME_COUNT))


def inference(batches: list[int]) -> Figures:
    """Images/s of the model alone, from pictures on the GPU to detections on the host, several batches on the way."""
    from benchmarks.gpu_inference import SIZE, whole_figures
    from elements.inference.config import ModelConfig
    from elements.inference.model import DetectionModel

    config = ModelConfig(NETWORK, device="cuda", input_size=SIZE, letterbox="center", layout="yolov8")
    model = DetectionModel(config)
    model.load()
    found = {batch: whole_figures(model, batch) for batch in batches}
    model.close()
    return {str(batch): round(figures["two_on_the_way_images_per_s"]) for batch, figures in found.items()}


def alone(part: str, clip: Path, streams: list[int]) -> Any:
    """A ceiling, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu_end_to_end", str(clip), "--only", part, "--streams"]
    done = subprocess.run([*command, *map(str, streams)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 16, 32])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=["decode", "model"], help=argparse.SUPPRESS)
    parser.add_argument("--program", nargs="+", default=[sys.executable, "-m", "app.main"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only == "decode":
        print(json.dumps({str(n): round(decoding(options.clip, n)) for n in options.streams}))
        return
    if options.only == "model":
        print(json.dumps(inference(options.streams)))
        return
    figures: Figures = {
        "decode": alone("decode", options.clip, options.streams),
        "model": alone("model", options.clip, options.streams),
    }
    print("| streams | frames/s | decoder alone | model alone | share of the lower | CPU ms/frame | first result s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for streams in options.streams:
        found = end_to_end(options.clip, streams, options.program)
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

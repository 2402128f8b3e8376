"""Whether memory grows: eight looping sources through a model, the tracker and an event file that goes nowhere.

    python -m benchmarks.soak [--minutes 5] [--sources 8] [--model configs/models/street.onnx] [--video]

Prints the resident memory, threads and frames every 10 seconds, and at the end the slope after the first minute.
Ends with status 1 if that is at or above the limit.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PERIOD_S = 10.0
WARM_UP_S = 60.0
LIMIT_MIB_PER_MINUTE = 1.0
CLIP_FRAMES = 250


def make_clips(folder: Path, count: int) -> list[Path]:
    """Short clips of unequal size, length and content."""
    clips = [folder / f"clip{index}.mp4" for index in range(count)]
    for index, clip in enumerate(clips):
        size = ((640, 360), (360, 640), (480, 480), (854, 480))[index % 4]
        source = f"testsrc2=size={size[0]}x{size[1]}:rate=25"
        command = [
            "ffmpeg",
            "-v",
            "error",
            "-y",
            "-f",
            "lavfi",
            "-i",
            source,
            "-frames:v",
            str(CLIP_FRAMES + 7 * index),
        ]
        subprocess.run([*command, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", clip], check=True)
    return clips


def watch(process: subprocess.Popen[str], seconds: float) -> Iterator[tuple[float, float, int]]:
    """(seconds since the start, resident MiB, threads) every `PERIOD_S`, until ``seconds`` or the process's end."""
    started = time.monotonic()
    while process.poll() is None and time.monotonic() - started < seconds:
        time.sleep(PERIOD_S)
        status = Path(f"/proc/{process.pid}/status")
        if process.poll() is not None or not status.exists():
            return
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        yield time.monotonic() - started, int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"])


def slope(times: list[float], sizes: list[float]) -> float:
    """Least-squares slope of sizes over times (seconds), per minute."""
    return float(np.polyfit(np.array(times) / 60, np.array(sizes), 1)[0])


def main() -> int:
    """Run, report; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--model", default=str(ROOT / "configs" / "models" / "street.onnx"))
    parser.add_argument("--video", action="store_true", help="draw and encode too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clips = make_clips(Path(folder), options.sources)
        command = [sys.executable, "-m", "app.main", "run", *map(str, clips), "--model", options.model]
        command += ["--events", "/dev/null", "--json", "--quiet"]
        command += ["--output", f"{folder}/out.mp4"] if options.video else []
        command += [part for index in range(len(clips)) for part in ("--set", f"sources.{index}.loop=true")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        times, sizes = [], []
        try:
            for at, size, threads in watch(process, options.minutes * 60):
                print(f"{at:6.0f} s  {size:8.1f} MiB  {threads:3d} threads", flush=True)
                if at > WARM_UP_S:
                    times.append(at)
                    sizes.append(size)
            process.send_signal(signal.SIGINT)
            summary = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
    print(f"{summary['frames']} frames, exit code {summary['exit_code']}, {summary['error'] or 'no error'}")
    if len(times) < 3:
        print("too short to tell a slope")
        return 1
    growth = slope(times, sizes)
    print(f"slope after the first minute: {growth:+.2f} MiB/min (limit {LIMIT_MIB_PER_MINUTE})")
    return int(growth >= LIMIT_MIB_PER_MINUTE or summary["exit_code"] != 0)


if __name__ == "__main__":
    sys.exit(main())

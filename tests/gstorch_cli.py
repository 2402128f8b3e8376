"""Runs the program as a user does, and reads what it wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT_S, wait_for


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads(self.stdout.strip().splitlines()[-1])
        return summary

    def source(self, name: str) -> dict[str, Any]:
        return next(s for s in self.summary["sources"] if s["source"] == name)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "app.main", *(str(a) for a in arguments)]


def gstorch(*arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Result:
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=cwd,
        env=environment(env),
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def gstorch_interrupted(
    arguments: Sequence[str | Path],
    number: signal.Signals,
    when: Callable[[], bool],
    times: int = 1,
) -> tuple[Result, float]:
    """Run until ``when()``, send the signal (``times``, 0.5 s apart); also returns how long the end took, seconds."""
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        wait_for(when)
        sent = time.monotonic()
        for _ in range(times):
            process.send_signal(number)
            if times > 1:
                time.sleep(0.5)
        stdout, stderr = process.communicate(timeout=LIMIT_S)
        return Result(process.returncode, stdout, stderr), time.monotonic() - sent
    finally:
        process.kill()


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    root = Path(__file__).resolve().parent.parent
    return {**os.environ, "PYTHONPATH": str(root), **(extra or {})}


def events(path: Path, source: str | None = None) -> list[dict[str, Any]]:
    """Events of an event file, of one source if named; each line is strict JSON."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line, parse_constant=refuse) for line in lines]
    return [e for e in found if source is None or e["source"] == source]


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def count_frames(path: Path) -> int:
    """Frames that an independent decoder (ffprobe) finds in a file."""
    return int(ffprobe(path, "-count_frames", "-show_entries", "stream=nb_read_frames").strip().strip(","))


def frame_times(path: Path) -> list[float]:
    """Presentation times that ffprobe gives, seconds."""
    lines = ffprobe(path, "-show_entries", "frame=pts_time").split()
    return [float(line.strip(",")) for line in lines if line.strip(",")]


def video_size(path: Path) -> tuple[int, int]:
    width, height = ffprobe(path, "-show_entries", "stream=width,height").strip().split(",")[:2]
    return int(width), int(height)


def ffprobe(path: Path, *what: str) -> str:
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", *what, "-of", "csv=p=0", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout

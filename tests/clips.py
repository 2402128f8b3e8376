"""Clips with known truth: coloured rectangles that move, one per class of `tests.onnx_models`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.onnx_models import picture

Box = tuple[float, float, float, float]
Boxes = dict[int, Box]


def drifting(width: int, height: int, seed: int = 0) -> Callable[[int], Boxes]:
    """Truth of frame ``n``: a red and a green rectangle that drift; ``seed`` moves the start."""

    def at(n: int) -> Boxes:
        x = width * 0.1 + (n * 3 + seed * 17) % (width * 0.4)
        y = height * 0.15 + (n * 2 + seed * 11) % (height * 0.25)
        return {
            0: (x, y, x + width * 0.2, y + height * 0.25),
            1: (width * 0.55, height * 0.5 + (n + seed) % 10, width * 0.85, height * 0.85 + (n + seed) % 10),
        }

    return at


def make_clip(
    path: Path, width: int, height: int, frames: int, boxes: Callable[[int], Boxes] | None = None, fps: int = 25
) -> Callable[[int], Boxes]:
    """Write a nearly lossless H.264 clip (MP4) and return its truth. Even and odd sizes alike: frames are 4:2:0 (4:4:4
    where a side is odd, since x264 has no odd 4:2:0).
    """
    boxes = boxes or drifting(width, height)
    odd = width % 2 or height % 2
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    command += ["-r", str(fps), "-i", "-", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "4"]
    command += ["-pix_fmt", "yuv444p" if odd else "yuv420p", str(path)]
    encoder = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert encoder.stdin is not None
    for n in range(frames):
        encoder.stdin.write(picture(width, height, boxes(n), soft=1.5).tobytes())
    encoder.stdin.close()
    assert encoder.wait(60) == 0
    return boxes

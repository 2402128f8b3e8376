"""A clip of a bar that turns, and a model that finds it as OpenCV's minAreaRect does: it exchanges the sides each
quarter of a turn.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from elements.inference.frame import Frame
from elements.metadata.detections import Detections
from tests.own_models import Good

WIDTH, HEIGHT, LONG, SHORT = 320, 180, 90, 30
DEGREES_PER_FRAME = 6.0


def centre_at(n: int) -> tuple[float, float]:
    return 100 + 1.5 * n, 90.0


def make_rotating_clip(path: Path, frames: int) -> None:
    """A white bar of 90 x 30 pixels on grey, 15 frames/s; in frame n turned by 6 n degrees."""
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}"]
    command += ["-r", "15", "-i", "-", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "8", "-pix_fmt", "yuv420p"]
    encoder = subprocess.Popen([*command, str(path)], stdin=subprocess.PIPE)
    assert encoder.stdin is not None
    for n in range(frames):
        image = np.full((HEIGHT, WIDTH, 3), 40, np.uint8)
        outline = cv2.boxPoints((centre_at(n), (LONG, SHORT), DEGREES_PER_FRAME * n))
        cv2.fillConvexPoly(image, np.round(outline * 16).astype(np.int32), (255, 255, 255), cv2.LINE_AA, shift=4)
        encoder.stdin.write(image.tobytes())
    encoder.stdin.close()
    assert encoder.wait(60) == 0


class BarFinder(Good):
    names = ("bar",)

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        return [self._find(frame) for frame in frames]

    def _find(self, frame: Frame) -> Detections:
        if frame.frame_number % 9 == 8:  # missed
            return Detections()
        bright = (frame.resized(frame.width, frame.height)[..., 0] > 140).astype(np.uint8)
        (x, y), (width, height), degrees = cv2.minAreaRect(cv2.findNonZero(bright))
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return Detections([box], [0.9], [0], angles=np.array([math.radians(degrees)], np.float32))

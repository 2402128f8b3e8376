"""The pictures that a request may carry: encoded at once, few, and the best."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import cv2

from elements.inference.frame import Image
from elements.inference.own_frame import OwnFrame

LOOKS = 4
"""So often at most each part of the time is looked at."""
_QUALITY = 90
_CUT = 0.5  # what is left of a picture's score if the frame's edge cuts it


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture.

    Attributes:
        jpeg: as it is sent.
        size: (width, height), pixels.
        time_s: of its frame, seconds of stream time.
        score: grows with its sharpness and with what it shows; for pictures of the same thing.
    """

    jpeg: bytes
    size: tuple[int, int]
    time_s: float
    score: float


def pixels_of(frame: Any) -> Image:
    """The picture of a frame or crop in host memory, (height, width, 3) uint8 RGB; of a crop nothing else is copied."""
    if getattr(getattr(frame, "frame", frame), "in_gpu_memory", False):
        import torch  # noqa: F401  frames of DeepStream give their tensor only where torch is in use
    return OwnFrame(frame, {}).array


def encoded(rgb: Image, max_side: int, time_s: float, cut: bool = False) -> Picture:
    """Encode a picture, scaled down if a side is longer than ``max_side`` pixels.

    Args:
        rgb: (height, width, 3) uint8.
        max_side: longest side, pixels.
        time_s: of its frame.
        cut: whether a part of what it is to show lies beyond the frame's edge.
    """
    height, width = rgb.shape[:2]
    scale = min(1.0, max_side / max(width, height))
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
    done, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise RuntimeError(f"OpenCV cannot encode a picture of {width}x{height} as JPEG")
    score = math.sqrt(width * height) * (1 + _sharpness(rgb)) * (_CUT if cut else 1)
    return Picture(data.tobytes(), (rgb.shape[1], rgb.shape[0]), time_s, score)


class Album:
    """The best pictures of one thing over the last seconds: one of each of ``count`` equal parts of the time.

    Args:
        count: most pictures.
        within: seconds that they are from.
        looks: how often each part is looked at; the best look stays.
    """

    __slots__ = ("_looked_s", "_part_s", "_pictures", "_step_s", "_within")

    def __init__(self, count: int, within: float, looks: int = LOOKS) -> None:
        self._within, self._part_s, self._step_s = within, within / count, within / (count * looks)
        self._pictures: deque[Picture] = deque(maxlen=count)
        self._looked_s = -math.inf

    def wants(self, now_s: float) -> bool:
        """Whether it is time to look again."""
        return now_s - self._looked_s >= self._step_s - 1e-6

    def add(self, picture: Picture) -> None:
        """Take a picture, unless its part of the time has a better one. They come in the order of time."""
        self._looked_s = picture.time_s
        last = self._pictures[-1] if self._pictures else None
        if last is None or self._part(last.time_s) != self._part(picture.time_s):
            self._pictures.append(picture)
        elif picture.score > last.score:
            self._pictures[-1] = picture

    def pictures(self, now_s: float) -> list[Picture]:
        """Those of the last seconds, oldest first; older ones go."""
        while self._pictures and self._pictures[0].time_s < now_s - self._within - 1e-6:
            self._pictures.popleft()
        return list(self._pictures)

    def clear(self) -> None:
        """Let all pictures go."""
        self._pictures.clear()
        self._looked_s = -math.inf

    def _part(self, time_s: float) -> int:
        return math.floor(time_s / self._part_s)


def _sharpness(rgb: Image) -> float:
    """Standard deviation of the Laplacian: how strong edges are."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_32F).std())

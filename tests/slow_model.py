"""A model of one's own that is slower than a camera."""

from __future__ import annotations

import time
from collections.abc import Sequence

from elements.inference.config import ModelConfig
from elements.inference.frame import Frame
from elements.metadata.detections import Detections

SECONDS_PER_FRAME = 0.2


class Slow:
    """Sees nothing, and takes its time over it."""

    names = ("thing",)

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def load(self) -> None:
        """Nothing to load."""

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        """No detections, after a while."""
        time.sleep(SECONDS_PER_FRAME * len(frames))
        return [Detections() for _ in frames]

    def close(self) -> None:
        """Nothing to free."""

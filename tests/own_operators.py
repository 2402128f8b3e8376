"""Operators that definitions of the tests name."""

from __future__ import annotations

from typing import Any

NOT_ONE = 3


def crowded(frame: Any, limit: int = 10) -> None:
    """Tells of frames with many objects."""
    if len(frame) > limit:
        frame.emit("crowded", people=len(frame))


class Speed:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def process(self, frame: Any) -> None:
        frame.attach("scale", self.scale)


class Idle:
    """Lacks process()."""

"""Models of one's own to be exchanged while running, named as ``tests.swap_models:Class``. Labels tell who it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elements.inference.frame import Frame
from elements.metadata.detections import Detections

BOX = (10.0, 20.0, 50.0, 60.0)


class Old:
    """One object per frame, labelled with the class's name; says its version."""

    version = "1"
    wanted = 1

    def __init__(self) -> None:
        self.names: Sequence[str] = (type(self).__name__.lower(),)
        self.batches = 0

    def load(self) -> None:
        """Nothing to load."""

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        """Always the same."""
        self.batches += 1
        return [self.found(frame) for frame in frames]

    def found(self, frame: Frame) -> Detections:
        """What is found in a frame."""
        boxes = np.tile(np.array([BOX], np.float32), (self.wanted, 1))
        return Detections(boxes, np.full(self.wanted, 0.9), np.zeros(self.wanted))

    def close(self) -> None:
        """Nothing to free."""


class New(Old):
    version = "2"


class Classifier(Old):
    task = "classify"


class Blind(Old):
    wanted = 0


class RaisesOnThird(Old):
    """The warm-up is a batch, too: it does not count."""

    def infer(self, frames):
        if self.batches == 3:
            raise ValueError("no such luck")
        return super().infer(frames)


class NotNumbers(Old):
    def found(self, frame):
        found = super().found(frame)
        if self.batches > 2:
            found.boxes = found.boxes * np.nan
        return found


class NotNumbersAtOnce(Old):
    def found(self, frame):
        found = super().found(frame)
        found.boxes = found.boxes * np.nan
        return found


class Exits(Old):
    def infer(self, frames):
        if self.batches == 2:
            raise SystemExit(3)
        return super().infer(frames)


class BySource(Old):
    """Four objects of two classes in the corners of the picture, with falling scores."""

    def __init__(self) -> None:
        super().__init__()
        self.names = ("person", "car")

    def found(self, frame):
        w, h = frame.width, frame.height
        centres = np.array([(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)]) * (w, h)
        boxes = np.concatenate([centres - 5, centres + 5], axis=1)
        return Detections(boxes, np.array([0.9, 0.7, 0.5, 0.3]), np.array([0, 1, 0, 1]))

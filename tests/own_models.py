"""Models of one's own that behave well or badly, named as ``tests.own_models:Class``."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.frame import Frame
from elements.metadata.detections import Detections

RELEASE = threading.Event()  # lets blocked models go on
BOX = (10.0, 20.0, 50.0, 60.0)


class Good:
    """One object per frame, always the same."""

    names = ("thing",)

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def load(self) -> None:
        pass

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        return [Detections(np.array([BOX]), np.array([0.9]), np.array([0])) for _ in frames]

    def close(self) -> None:
        pass


class Plain(Good):
    """Does not look at the stage's options."""

    def __init__(self) -> None:
        pass


class Tuned(Good):
    """Takes parameters."""

    def __init__(self, config: ModelConfig, size: int, threshold: float = 0.5, colours: tuple[str, ...] = ()) -> None:
        super().__init__(config)
        self.size, self.threshold, self.colours = size, threshold, colours


def read(outputs, frames, *, least: float = 0.5):
    """Reads the ``finder`` of tests.onnx_models in the layout yolov8: (1, 4 + classes, rows)."""
    answer = []
    for output, frame in zip(outputs["output"], frames, strict=True):
        rows = output.T[output[4:].max(axis=0) >= least]
        half = rows[:, 2:4] / 2
        boxes = frame.to_source(np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1))
        answer.append(Detections(boxes, rows[:, 4:].max(axis=1), rows[:, 4:].argmax(axis=1)))
    return answer


class RaisesOnFour(Good):
    def infer(self, frames):
        if any(frame.frame_number == 4 for frame in frames):
            raise ValueError("no such luck")
        return super().infer(frames)


class ExitsOnFour(Good):
    def infer(self, frames):
        if any(frame.frame_number == 4 for frame in frames):
            sys.exit("had enough")
        return super().infer(frames)


class BlocksOnFour(Good):
    def infer(self, frames):
        if any(frame.frame_number == 4 for frame in frames):
            RELEASE.wait(3600)
        return super().infer(frames)


class BlocksInLoad(Plain):
    def load(self):
        RELEASE.wait(3600)


class BlocksInClose(Plain):
    def close(self):
        RELEASE.wait(3600)


class AnswersNone(Good):
    def infer(self, frames):
        return None


class AnswersTooFew(Good):
    def infer(self, frames):
        return super().infer(frames)[1:]


class AnswersArrays(Good):
    def infer(self, frames):
        return [np.zeros((1, 6)) for _ in frames]


class AnswersNegativeClass(Good):
    def infer(self, frames):
        return [Detections(np.array([BOX]), np.array([0.9]), np.array([-1])) for _ in frames]


class AnswersNaN(Good):
    """A good row, one with a NaN box and one with a NaN score."""

    def infer(self, frames):
        boxes = np.array([BOX, (np.nan, 0, 1, 1), BOX])
        return [Detections(boxes, np.array([0.9, 0.9, np.nan]), np.zeros(3)) for _ in frames]


class Prints(Good):
    def infer(self, frames):
        print("said with print")
        os.write(1, b"said to descriptor 1\n")
        return super().infer(frames)


class Mutates(Good):
    """Paints over every picture that it gets, and empties the list of frames."""

    def infer(self, frames):
        answer = super().infer(frames)
        for frame in frames:
            for size in ((frame.width, frame.height), (64, 64)):
                picture = frame.resized(*size)
                if picture.flags.writeable:
                    picture[:] = 255
        frames.clear()
        return answer


class Misbehaves(Good):
    """Does on frame 4 what its subclass does."""

    def infer(self, frames):
        answer = super().infer(frames)
        if any(frame.frame_number == 4 for frame in frames):
            self.misbehave(frames, answer[0])
        return answer

    def misbehave(self, frames, found):
        raise NotImplementedError


class Recurses(Misbehaves):
    def misbehave(self, frames, found):
        self.misbehave(frames, found)


class LacksMemory(Misbehaves):
    def misbehave(self, frames, found):
        np.empty((1 << 50,), np.uint8)


class Interrupts(Misbehaves):
    def misbehave(self, frames, found):
        raise KeyboardInterrupt("not by the user")


class PaintsOver(Misbehaves):
    def misbehave(self, frames, found):
        frames[0].array[:] = 0


class ScoresInColumns(Misbehaves):
    def misbehave(self, frames, found):
        found.scores = found.scores[:, None]


class BoxesOfThree(Misbehaves):
    def misbehave(self, frames, found):
        found.boxes = found.boxes[:, :3]


class TextAsScores(Misbehaves):
    def misbehave(self, frames, found):
        found.scores = np.array(["high"])


class PointsWithoutScores(Misbehaves):
    def misbehave(self, frames, found):
        found.keypoints = np.zeros((1, 5, 2), np.float32)


class TooManyRows(Misbehaves):
    def misbehave(self, frames, found):
        found.scores = np.ones(2, np.float32)


class Remembers(Good):
    """Its class number counts the source's frames; its label is the source's name, if the frame tells all it should."""

    def load(self):
        self.seen = []

    @property
    def names(self):
        return tuple(self.seen)

    def infer(self, frames):
        return [self.count(frame) for frame in frames]

    def count(self, frame):
        frame.state["frames"] = frame.state.get("frames", -1) + 1
        complete = frame.time_utc is not None and frame.array.shape == (frame.height, frame.width, 3)
        name = f"{frame.source} {frame.state['frames']} {frame.stream_time_s:.2f}" if complete else "incomplete"
        self.seen.append(name)
        return Detections(np.array([BOX]), np.array([0.9]), np.array([len(self.seen) - 1]))


class FailsToLoad(Good):
    def load(self):
        raise RuntimeError("weights are bad")


class ExitsInLoad(Good):
    def load(self):
        sys.exit(7)


class FailsToClose(Good):
    def close(self):
        raise RuntimeError("will not go")

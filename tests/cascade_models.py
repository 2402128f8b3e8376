"""Second models of one's own that look at the rectangles of `tests.clips`, named as ``tests.cascade_models:Class``."""

from __future__ import annotations

import numpy as np

from elements.metadata.detections import Detections

CALLS: list[list[tuple[str, int, tuple[int, int]]]] = []
"""What each call of a model was given: source, frame and size of each crop."""


class _Second:
    def load(self):
        pass

    def infer(self, frames):
        CALLS.append([(f.source, f.frame_number, (f.width, f.height)) for f in frames])
        return [self.look(frame) for frame in frames]

    def close(self):
        pass


def whole(frame, class_id=0, score=1.0, **more):
    """One row whose box is the whole picture."""
    return Detections(np.array([[0, 0, frame.width, frame.height]]), np.array([score]), np.array([class_id]), **more)


def colour(frame):
    """0 for red, 1 for green, 2 for blue: the strongest on average."""
    return int(frame.array.mean(axis=(0, 1)).argmax())


class Colour(_Second):
    task = "classify"
    names = ("crimson", "lime", "navy")

    def look(self, frame):
        return whole(frame, colour(frame), 0.875)


class NoLime(Colour):
    """Fails on green."""

    def look(self, frame):
        if colour(frame) == 1:
            raise ValueError("cannot stand lime")
        return super().look(frame)


class Vector(_Second):
    task = "embed"

    def look(self, frame):
        return whole(frame, embeddings=np.eye(3, dtype=np.float32)[None, colour(frame)])


class Middle(_Second):
    """Finds the middle of what it is shown, half as wide and high."""

    names = ("middle",)

    def look(self, frame):
        w, h = frame.width, frame.height
        return Detections(np.array([[w / 4, h / 4, w * 3 / 4, h * 3 / 4]]), np.array([0.5]), np.array([0]))


class Corners(_Second):
    task = "pose"

    def look(self, frame):
        corners = [[0, 0, 1], [frame.width, 0, 1], [frame.width, frame.height, 0.5]]
        return whole(frame, keypoints=np.array([corners], np.float32))

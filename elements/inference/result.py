"""What a stage found, and which model did it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elements.inference.frame import Frame
from elements.metadata.detections import Detections


class Result(NamedTuple):
    """Detections never go without the names of their classes: the next frame's may come from another model.

    Attributes:
        frame: the frame.
        detections: what was found, in pixels of the frame.
        names: the model's class names by number.
        version: of the model, see `elements.inference.swap.version`.
    """

    frame: Frame
    detections: Detections
    names: Sequence[str]
    version: str


class GroupResult(NamedTuple):
    """What one model found in the frames of a batch that it did. Attributes as of `Result`, and:

    Attributes:
        frames: the frames.
        places: their places among the frames that the session was given.
        found: what was found in each.
    """

    frames: Sequence[Frame]
    places: Sequence[int]
    found: Sequence[Detections]
    names: Sequence[str]
    version: str

    def each(self) -> list[Result]:
        """One by one."""
        pairs = zip(self.frames, self.found, strict=True)
        return [Result(frame, detections, self.names, self.version) for frame, detections in pairs]

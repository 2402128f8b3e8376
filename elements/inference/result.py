"""What a stage found in one frame, and which model did it."""

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

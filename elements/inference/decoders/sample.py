"""What a trial run of a model shows, and how its outputs may be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elements.inference.letterbox import Size
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

NO_FIT, FITS, CONFIRMED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Sample:
    """One trial run of a model, from which its layout is told.

    Attributes:
        outputs: what the model gave for noise, float32, batch first, by output name in the model's order.
        size: (width, height) of the network's input in that run.
        label_count: number of class names known, from the model or the user; ``None`` if none.
        ultralytics: whether the model's metadata says that ultralytics exported it.
        task: what the model does, if it is declared or the metadata tells.
        keypoints: number of key points and of values for each, if the metadata tells.
    """

    outputs: Mapping[str, FloatArray]
    size: Size
    label_count: int | None = None
    ultralytics: bool = False
    task: Task | None = None
    keypoints: tuple[int, int] | None = None

    def only(self, dimensions: int) -> str | None:
        """The name of the one output that has so many dimensions, ``None`` if none or several have."""
        names = [name for name, output in self.outputs.items() if output.ndim == dimensions]
        return names[0] if len(names) == 1 else None

    def first(self, dimensions: int) -> str | None:
        """The name of the first output that has so many dimensions."""
        return next((name for name, output in self.outputs.items() if output.ndim == dimensions), None)

    def described(self) -> str:
        """The outputs' names and shapes in words."""
        return "; ".join(f"{name} {output.shape}" for name, output in self.outputs.items())


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a model's outputs.

    Attributes:
        task: what the model then does.
        outputs: names of the outputs that are read, in the order in which the decoder gets them.
        classes: number of classes; ``None`` where the shapes do not tell.
        extras: number of columns that the task adds to box and classes.
        certainty: `NO_FIT` (only if declared), `FITS` by shape alone, or `CONFIRMED` by shape and other evidence.
    """

    task: Task
    outputs: tuple[str, ...]
    classes: int | None
    extras: int = 0
    certainty: int = CONFIRMED


def task_columns(sample: Sample, task: Task, rest: int) -> tuple[int, tuple[str, ...]] | None:
    """What ``task`` adds to a row whose columns beside the box are ``rest``: classes, then these.

    Returns:
        Number of columns, and names of the further outputs that they need; ``None`` if the task cannot be.
    """
    if task == "detect":
        return 0, ()
    if task == "obb":
        return (1, ()) if rest > 1 else None
    if task == "segment":
        prototypes = sample.only(4)
        if prototypes is None:
            return None
        return sample.outputs[prototypes].shape[1], (prototypes,)
    if task == "pose":
        if sample.keypoints:
            return sample.keypoints[0] * sample.keypoints[1], ()
        columns = rest - (sample.label_count or 1)  # pose models without names have one class
        return (columns, ()) if columns > 0 and columns % 3 == 0 else None
    return None

"""What heads with one row per anchor share: box, classes and what the task adds stand side by side."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from elements.inference.decoders.base import Arrays, Decoder
from elements.inference.decoders.rows import are_probabilities
from elements.inference.decoders.sample import CONFIRMED, FITS, NO_FIT, Reading, Sample, task_columns
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray


class Dense(Decoder):
    """Rows ``box, [objectness,] classes, what the task adds``.

    Attributes:
        box_columns: columns before the classes.
    """

    box_columns: ClassVar[int] = 4

    @staticmethod
    def rows(output: FloatArray) -> FloatArray:
        """A view of the first output in the order (…, A, columns)."""
        return output

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = sample.first(3)
        if name is None:
            return None
        rows = cls.rows(sample.outputs[name])
        rest = rows.shape[2] - cls.box_columns
        added = task_columns(sample, task, rest)
        if added is None or rest - added[0] < 1:
            return None
        extras, more = added
        fits = cls.fits_size(sample.outputs[name].shape, sample.size)
        reading = Reading(task, (name, *more), rest - extras, extras)
        certainty = min(cls.trust(sample, reading), _told(sample, reading, rows)) if fits else NO_FIT
        return Reading(task, reading.outputs, reading.classes, extras, certainty)

    @classmethod
    @abstractmethod
    def trust(cls, sample: Sample, reading: Reading) -> int:
        """How sure the layout is, given that the number of rows fits."""

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return self.rows(outputs[0])[..., :4]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        rows = self.rows(outputs[0])
        return rows[..., 4 : rows.shape[-1] - self.reading.extras]

    def split(self, output: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """(A, columns) of one frame without what the task adds, and that."""
        rows = self.rows(output)
        extras = self.reading.extras
        return (rows[:, :-extras], rows[:, -extras:]) if extras else (rows, None)


def _told(sample: Sample, reading: Reading, rows: FloatArray) -> int:
    """How sure the task is: nothing in the shapes tells an angle or key points from classes, so names must agree."""
    if sample.task is not None or reading.task == "segment":
        return CONFIRMED
    named = sample.label_count == reading.classes
    if reading.task == "detect":
        return CONFIRMED if named or sample.label_count is None else FITS
    return CONFIRMED if named and not are_probabilities(rows[..., -reading.extras :]) else NO_FIT

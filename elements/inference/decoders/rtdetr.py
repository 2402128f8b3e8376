"""RT-DETR heads: object queries with boxes from 0 to 1, no suppression needed.

Layouts after the exports of ultralytics/nn/modules/head.py (RTDETRDecoder): cx, cy, w, h, C sigmoid scores; since 8.4
cx, cy, w, h, score, class. For the export of RT-DETR's own repository see `separate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.end_to_end import EndToEnd
from elements.inference.decoders.rows import are_probabilities, corners, select_best, strides_of
from elements.inference.decoders.sample import CONFIRMED, FITS, NO_FIT, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray

STRETCHED = Preprocess(letterbox="stretch")


class RtDetr(Decoder):
    """(B, N, 4+C): one row per query; the best class of each counts."""

    layout = "rtdetr"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, N, 4+C)"}
    preprocess = STRETCHED
    suppress = False
    has_grid = False

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        name = sample.first(3)
        if name is None or sample.outputs[name].shape[2] < 5:
            return None
        output = sample.outputs[name]
        classes, certainty = output.shape[2] - 4, NO_FIT
        if not any(strides_of(n, sample.size) for n in output.shape[1:]) and are_probabilities(output):
            certainty = CONFIRMED if classes == (sample.label_count or 80) or sample.ultralytics else FITS
        return Reading(task, (name,), classes, 0, certainty)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., :4]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0][..., 4:]

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        rows = outputs[0]
        index, scores, class_ids, invalid = select_best(rows[:, 4:], confidence)
        return Candidates(corners(rows[index, :4]), scores, class_ids, invalid)


class RtDetrFinished(EndToEnd):
    """(B, N, 6): the same with score and class already picked."""

    layout = "rtdetr-end2end"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "(B, N, 6), boxes cx cy w h"}
    preprocess = STRETCHED

    centered = True

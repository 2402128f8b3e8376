"""Finished objects whose boxes, classes and scores are outputs of their own.

``separate``: labels, boxes, scores, as the export scripts of RT-DETR and D-FINE give them (lyuwenyu/RT-DETR,
tools/export_onnx.py); such files take the picture's size as a second input. ``tf-detection``: TensorFlow's object
detection API (exporter_main_v2), as SSD MobileNet in the ONNX model zoo has it: y1, x1, y2, x2 from 0 to 1, classes
from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.sample import CONFIRMED, FITS, NO_FIT, Reading, Sample
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray


class Separate(Decoder):
    """(B, N, 4) xyxy boxes, (B, N) class numbers and (B, N) scores.

    Attributes:
        first_class: number that the model gives its first class.
        order: columns of x1, y1, x2, y2.
    """

    layout = "separate"
    shapes: ClassVar[Mapping[Task, str]] = {"detect": "labels (B, N), boxes (B, N, 4), scores (B, N)"}
    preprocess = Preprocess(letterbox="stretch")
    suppress = False
    has_grid = False
    first_class: ClassVar[int] = 0
    order: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        boxes = sample.first(3)
        if boxes is None or sample.outputs[boxes].shape[2] != 4:
            return None
        rows = [name for name, output in sample.outputs.items() if output.shape == sample.outputs[boxes].shape[:2]]
        scores = [name for name in rows if "score" in name.lower()]
        classes = [name for name in rows if "label" in name.lower() or "class" in name.lower()]
        if len(scores) != 1 or len(classes) != 1:
            return None
        return Reading(task, (boxes, classes[0], scores[0]), None, 0, FITS)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return outputs[2]

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        boxes, classes, scores = outputs
        invalid = int(np.count_nonzero(np.isnan(scores)))
        index = np.flatnonzero((scores >= confidence) & (classes >= self.first_class))
        class_ids = classes[index].astype(np.int64) - self.first_class
        return Candidates(boxes[index][:, self.order], scores[index], class_ids, invalid)


class TfDetection(Separate):
    """``detection_boxes``, ``detection_classes``, ``detection_scores``, whatever else there is beside them."""

    layout = "tf-detection"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "detection_boxes (B, N, 4), detection_classes (B, N), detection_scores (B, N)"
    }
    preprocess = Preprocess(letterbox="stretch", scale="0-255")
    by_name = True
    first_class = 1
    order = (1, 0, 3, 2)

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        wanted = ("detection_boxes", "detection_classes", "detection_scores")
        found = [next((name for name in sample.outputs if name.split(":")[0] == want), None) for want in wanted]
        names = tuple(name for name in found if name is not None)
        if len(names) < len(wanted) or sample.outputs[names[0]].shape[-1] != 4:
            return None
        return Reading(task, names, None, 0, CONFIRMED if sample.outputs[names[1]].ndim == 2 else NO_FIT)

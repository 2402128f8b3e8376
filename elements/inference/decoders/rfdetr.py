"""RF-DETR heads: object queries with boxes from 0 to 1, class logits and, for segmentation, mask logits.

Layout after roboflow/rf-detr rfdetr/export (outputs ``dets``, ``labels``, ``masks``) and its PostProcess: cx, cy, w, h;
sigmoid scores; masks above 0 inside. The head has one more column than classes: models tuned on C classes have an
unused last one, and those trained on COCO have its 91 category numbers with gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from elements.inference.coco import CATEGORY_COLUMNS, COCO_CATEGORIES, COCO_NAMES
from elements.inference.decoders.base import Arrays, Candidates, Decoder
from elements.inference.decoders.rows import are_probabilities, corners
from elements.inference.decoders.sample import CONFIRMED, FITS, Reading, Sample
from elements.inference.decoders.ssd import boxes_and_scores
from elements.inference.letterbox import Size
from elements.inference.preprocess import Preprocess
from elements.inference.tasks import Task
from elements.metadata.detections import FloatArray


class RfDetr(Decoder):
    """(B, N, 4) boxes, (B, N, 1+C) logits and maybe (B, N, h, w) masks; the best class of each query counts.

    Attributes:
        columns: for each class the column of its logit.
    """

    layout = "rfdetr"
    shapes: ClassVar[Mapping[Task, str]] = {
        "detect": "dets (B, N, 4) and labels (B, N, C+1) logits",
        "segment": "dets (B, N, 4), labels (B, N, C+1) logits and masks (B, N, h, w)",
    }
    preprocess = Preprocess(letterbox="stretch", scale="imagenet")
    suppress = False
    has_grid = False

    def __init__(self, sample: Sample, reading: Reading) -> None:
        super().__init__(sample, reading)
        self.columns = _class_columns(sample.outputs[reading.outputs[1]].shape[2], sample.label_count)

    @classmethod
    def read(cls, sample: Sample, task: Task) -> Reading | None:
        pair = boxes_and_scores(sample)
        if pair is None:
            return None
        masks = sample.only(4) if task == "segment" else None
        if task == "segment" and (masks is None or sample.outputs[masks].shape[1] != sample.outputs[pair[0]].shape[1]):
            return None
        logits = sample.outputs[pair[1]]
        classes = len(_class_columns(logits.shape[2], sample.label_count))
        fits = not are_probabilities(logits) and are_probabilities(sample.outputs[pair[0]])
        more = (masks,) if masks else ()
        return Reading(task, (*pair, *more), classes, 1 if masks else 0, CONFIRMED if fits else FITS)

    def boxes_of(self, outputs: Arrays) -> FloatArray:
        return outputs[0]

    def scores_of(self, outputs: Arrays) -> FloatArray:
        return _sigmoid(outputs[1])

    def select(self, outputs: Arrays, size: Size, confidence: float) -> Candidates:
        logits = outputs[1][:, self.columns]
        best = logits.max(axis=1)
        index = np.flatnonzero(_sigmoid(best) >= confidence)
        invalid = int(np.count_nonzero(np.isnan(best)))
        extras = index.astype(np.float32)[:, None] if self.task == "segment" else None
        class_ids = logits[index].argmax(axis=1)
        return Candidates(corners(outputs[0][index]), _sigmoid(best[index]), class_ids, invalid, extras)

    def mask_logits(self, extras: FloatArray, outputs: Arrays) -> FloatArray:
        """See `Decoder.mask_logits`: each query has its own mask, of which ``extras`` is the number."""
        return outputs[2][extras[:, 0].astype(np.int64)]


def _class_columns(columns: int, label_count: int | None) -> list[int]:
    """The columns of the classes among all, in the order of their numbers."""
    if columns == CATEGORY_COLUMNS and label_count in (None, len(COCO_NAMES)):
        return list(COCO_CATEGORIES)
    return list(range(columns if columns == label_count else columns - 1))


def _sigmoid(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-values))).astype(np.float32, copy=False)

"""Two programs' answers for the same pictures, object by object, and why some are only in one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel
from elements.inference.nms import probabilistic_iou
from elements.metadata.detections import Detections
from elements.metadata.rotated import corners, rotated_iou

SAME_PX = 0.5
SCORE_TIE = 1e-3  # scores this near to the threshold may fall on either side
IOU_TIE = 2e-3


def bgr_frames(clip: Path, step: int = 1, most: int = 10**6) -> list[NDArray[np.uint8]]:
    """Every ``step``-th frame of a clip, at most ``most``, as OpenCV decodes it."""
    video, number = cv2.VideoCapture(str(clip)), 0
    frames: list[NDArray[np.uint8]] = []
    while len(frames) < most and video.grab():
        if number % step == 0:
            frames.append(np.asarray(video.retrieve()[1], np.uint8))
        number += 1
    assert frames, f"OpenCV cannot decode {clip}"
    return frames


def rgb_frame(bgr: NDArray[np.uint8]) -> ArrayFrame:
    """The same pixels for a model of ours."""
    return ArrayFrame(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))


def detections_of(objects: list[dict[str, Any]]) -> Detections:
    """The objects of an event, without masks and key points."""
    boxes = np.array([o["bbox"] for o in objects], np.float32).reshape(-1, 4)
    angles = np.array([o["angle"] for o in objects], np.float32) if objects and "angle" in objects[0] else None
    scores = np.array([o["confidence"] for o in objects], np.float32)
    return Detections(boxes, scores, np.array([o["class_id"] for o in objects], np.int64), angles=angles)


def distances(ours: Detections, theirs: Detections) -> NDArray[np.float64]:
    """(N, M) largest difference of a corner's coordinate, pixels; infinite between classes.

    A rotated box is the same whichever of its corners comes first.
    """
    a, b = (corners(d.boxes, np.zeros(len(d)) if d.angles is None else d.angles) for d in (ours, theirs))
    turns = [np.roll(b, turn, axis=1) for turn in (range(4) if ours.angles is not None else (0,))]
    each = [np.abs(a[:, None] - turned[None]).max(axis=(2, 3)) for turned in turns]
    apart: NDArray[np.float64] = np.min(each, axis=0)
    apart[ours.class_ids[:, None] != theirs.class_ids[None, :]] = np.inf
    return apart


def pairs(ours: Detections, theirs: Detections, far: float) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
    """Rows of both that are one object, at most ``far`` pixels apart, and how far each pair is apart."""
    apart = distances(ours, theirs)
    rows, columns = linear_sum_assignment(np.minimum(apart, 10 * far))
    kept = apart[rows, columns] <= far
    return rows[kept], columns[kept], apart[rows, columns][kept]


@dataclass
class Comparison:
    """Sums over pictures.

    Attributes:
        confidence, iou: thresholds of both programs.
        far: up to how many pixels apart two boxes may be one object.
        fast_nms: whether theirs suppresses with boxes that are gone themselves, so that fewer stay.
        ours, theirs: objects of each.
        shifts: of each pair, pixels.
        score_shifts: of each pair.
        reasons: why objects have no partner, by count; ``unexplained`` if nothing is known.
    """

    confidence: float
    iou: float
    far: float = SAME_PX
    fast_nms: bool = False
    ours: int = 0
    theirs: int = 0
    shifts: list[float] = field(default_factory=list)
    score_shifts: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(
        self, ours: Detections, theirs: Detections, nearly: Sequence[Detections] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Compare one picture.

        Args:
            ours: our answer.
            theirs: the other's.
            nearly: our answers with thresholds that are a little different, to tell what hangs on rounding.

        Returns:
            The rows of the pairs.
        """
        self.ours += len(ours)
        self.theirs += len(theirs)
        rows, columns, apart = pairs(ours, theirs, self.far)
        self.shifts += apart.tolist()
        self.score_shifts += np.abs(ours.scores[rows] - theirs.scores[columns]).tolist()
        alone = np.setdiff1d(np.arange(len(ours)), rows)
        others = np.setdiff1d(np.arange(len(theirs)), columns)
        goes = [_missing(ours[alone], one) for one in nearly]
        comes = [~_missing(theirs[others], one) for one in nearly]
        for number, row in enumerate(alone):
            reason = self._reason(ours[[row]], theirs[others], [bool(one[number]) for one in goes])
            self.reasons["fast NMS" if self.fast_nms and reason == "unexplained" else reason] += 1
        for number, row in enumerate(others):
            self.reasons[self._reason(theirs[[row]], ours[alone], [bool(one[number]) for one in comes])] += 1
        return rows, columns

    @property
    def paired(self) -> int:
        return len(self.shifts)

    def _reason(self, one: Detections, unpaired: Detections, changes: Sequence[bool]) -> str:
        """Why an object has no partner. ``unpaired``: objects of the other program without one."""
        if abs(float(one.scores[0]) - self.confidence) < SCORE_TIE:
            return "score at the threshold"
        if any(changes):
            return "overlap at the threshold"
        better = (unpaired.class_ids == one.class_ids[0]) & (unpaired.scores > one.scores[0] - SCORE_TIE)
        if (better & (overlaps(one, unpaired)[0] > self.iou / 2)).any():  # of boxes that are cut at the edges by now
            return "beaten by one of these"
        return "unexplained"


def slightly_other(model: DetectionModel, frame: ArrayFrame) -> list[Detections]:
    """What a model finds with a little more or less overlap allowed."""
    iou = model.iou
    found: list[Detections] = []
    for model.iou in (iou - IOU_TIE, iou + IOU_TIE):
        found += model.infer([frame])
    model.iou = iou
    return found


def _missing(objects: Detections, among: Detections) -> NDArray[np.bool_]:
    """Which ``objects`` have no equal ``among`` others."""
    missing = np.ones(len(objects), bool)
    missing[pairs(objects, among, SAME_PX)[0]] = False
    return missing


def overlaps(a: Detections, b: Detections) -> NDArray[np.float64]:
    """(N, M): ProbIoU of rotated boxes, else IoU."""
    if a.angles is not None and b.angles is not None:
        return probabilistic_iou(a.boxes, a.angles, b.boxes, b.angles)
    return np.asarray(rotated_iou(a.boxes, np.zeros(len(a)), b.boxes, np.zeros(len(b))))

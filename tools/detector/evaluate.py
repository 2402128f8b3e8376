"""Average precision of an exported detector on scenes it has not seen, through the letterbox."""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.detector.pictures import Letterbox, canvas, letterbox
from tools.scenes import CLASSES, Scene, TruthObject
from tools.scenes.average_precision import FrameResult, mean_average_precision

FIRST_TEST_SEED = 50_000
SIZES = {"landscape": (1280, 720), "portrait": (720, 1280)}
FRAMES_PER_SCENE = 8
SCORE_FLOOR, NMS_IOU = 0.01, 0.6

Infer = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Network: (1, 3, H, W) float32 RGB in 0..1 to (1, 4 + C, A)."""


@dataclass(frozen=True)
class Sample:
    """A letterboxed picture, where it lies, and its truth in source pixels."""

    boxed: NDArray[np.uint8]
    placed: Letterbox
    objects: tuple[TruthObject, ...]


def _render(job: tuple[int, int, int]) -> list[Sample]:
    seed, width, height = job
    cv2.setNumThreads(1)
    scene = Scene(seed, width, height, 25)
    pictures = []
    for index in range(FRAMES_PER_SCENE):
        picture, objects = scene.render(index * 125)
        pictures.append(Sample(*letterbox(picture, *canvas(width, height)), tuple(objects)))
    return pictures


def render_tests(scenes: int, workers: int) -> dict[str, list[Sample]]:
    """Test pictures from `scenes` unseen scenes per orientation."""
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        return {
            name: [
                picture
                for scene in pool.map(_render, [(FIRST_TEST_SEED + index, *size) for index in range(scenes)])
                for picture in scene
            ]
            for name, size in SIZES.items()
        }


def detect(infer: Infer, picture: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Boxes (N, 4) xyxy in source pixels, scores (N,) and classes (N,) after non-maximum suppression per class."""
    images = picture.boxed.astype(np.float32).transpose(2, 0, 1)[None] / 255
    output = infer(np.ascontiguousarray(images))[0].T.astype(np.float64)
    scores, class_ids = output[:, 4:].max(1), output[:, 4:].argmax(1)
    kept = scores > SCORE_FLOOR
    boxes, scores, class_ids = output[kept, :4], scores[kept], class_ids[kept]
    boxes[:, :2] -= boxes[:, 2:] / 2
    picked = np.array(
        cv2.dnn.NMSBoxesBatched(boxes, scores, class_ids.astype(np.int32), SCORE_FLOOR, NMS_IOU), int
    ).reshape(-1)[:300]
    boxes, scores, class_ids = boxes[picked], scores[picked], class_ids[picked]
    boxes[:, 2:] += boxes[:, :2]
    boxes = (boxes - np.tile((picture.placed.left, picture.placed.top), 2)) / picture.placed.scale
    return boxes, scores, class_ids


def evaluate(infer: Infer, pictures: Sequence[Sample]) -> dict[str, float]:
    """Average precision at IoU 0.5 by class, and "mean"."""
    results = []
    for picture in pictures:
        boxes, scores, class_ids = detect(infer, picture)
        results.append(
            FrameResult(
                boxes,
                scores,
                class_ids,
                np.array([item.box for item in picture.objects], float).reshape(-1, 4),
                np.array([CLASSES.index(item.label) for item in picture.objects], int),  # type: ignore[arg-type]
                np.array([item.ignore for item in picture.objects], bool),
            )
        )
    return mean_average_precision(results, CLASSES)

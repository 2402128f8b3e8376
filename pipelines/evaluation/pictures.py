"""Predictions of a model on pictures."""

from __future__ import annotations

from collections.abc import Sequence as Series
from pathlib import Path

import cv2

from elements.inference.frame import ArrayFrame
from elements.inference.single import SingleModel
from elements.metadata.detections import Detections, mask_windows
from pipelines.evaluation.annotations import Annotations, EvaluationError, Mask, Row, Sequence

ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})


def pictures_of(paths: Series[Path]) -> list[Path]:
    """The picture files among ``paths``, and in the folders among them (and below), in order.

    Raises:
        EvaluationError: if there is none, or two have the same name without ending.
    """
    found: dict[str, Path] = {}
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix.lower() not in ENDINGS:
                continue
            if file.stem in found:
                raise EvaluationError(f"{file} and {found[file.stem]} have the same name: evaluate them apart")
            found[file.stem] = file
    if not found:
        raise EvaluationError(f"{', '.join(map(str, paths))}: no pictures ({', '.join(sorted(ENDINGS))})")
    return list(found.values())


def predict(model: SingleModel, files: Series[Path]) -> Annotations:
    """What a loaded model finds in pictures. Each is a sequence of one frame, named like the file without its ending.

    Raises:
        EvaluationError: if a file is no picture.
        ModelError: if the model fails on one.
    """
    result = Annotations("the model")
    for number, file in enumerate(files):
        bgr = cv2.imread(str(file))
        if bgr is None:
            raise EvaluationError(f"{file}: is no picture that can be read")
        frame = ArrayFrame(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), frame_number=number)
        rows = rows_of(model.find(frame, str(file)), model.names)
        result.sequences[file.stem] = Sequence({0: rows}, (frame.width, frame.height), 1)
    return result


def rows_of(detections: Detections, names: Series[str]) -> list[Row]:
    """Detections of a frame as rows."""
    windows = mask_windows(detections.boxes, detections.angles)
    rows = []
    for i, (x1, y1, x2, y2) in enumerate(detections.boxes.tolist()):
        class_id = int(detections.class_ids[i])
        mask = None
        if detections.masks is not None and detections.masks[i].size:
            mask = Mask(int(windows[i][0]), int(windows[i][1]), detections.masks[i])
        rows.append(
            Row(
                names[class_id] if class_id < len(names) else str(class_id),
                (x1, y1, x2, y2),
                float(detections.scores[i]),
                angle=float(detections.angles[i]) if detections.angles is not None else 0.0,
                mask=mask,
                keypoints=None if detections.keypoints is None else detections.keypoints[i].astype(float),
            )
        )
    return rows

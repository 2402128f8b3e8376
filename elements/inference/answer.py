"""What a model answered, checked: a model of one's own may return anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from elements.metadata.detections import Detections


def checked_answer(found: Any, count: int) -> tuple[list[Detections], int]:
    """The answer of ``Model.infer`` for ``count`` frames without rows that are not finite numbers.

    Returns:
        One `Detections` per frame, and how many rows were left out.

    Raises:
        TypeError: if it is not one `Detections` for each frame.
        ValueError: if it has class numbers below 0.
    """
    if not isinstance(found, list | tuple) or len(found) != count or not all(isinstance(f, Detections) for f in found):
        raise TypeError(f"infer() must return a list of one Detections per frame ({count}), not {_shape(found)}")
    answer = [_finite(detections) for detections in found]
    for detections in answer:
        if (detections.class_ids < 0).any():
            raise ValueError(f"infer() returned class_ids below 0: {detections.class_ids.min()}")
    return answer, sum(map(len, found)) - sum(map(len, answer))


def _finite(detections: Detections) -> Detections:
    """The rows whose box, score and angle are numbers; the same object if all are."""
    finite = np.isfinite(detections.boxes).all(axis=1) & np.isfinite(detections.scores)
    if detections.angles is not None:
        finite &= np.isfinite(detections.angles)
    return detections if finite.all() else detections[finite]


def _shape(found: Any) -> str:
    """What was returned instead, in a few words."""
    if isinstance(found, list | tuple):
        kinds = sorted({type(item).__name__ for item in found})
        return f"a {type(found).__name__} of {len(found)}" + (f" ({', '.join(kinds)})" if kinds else "")
    return type(found).__name__

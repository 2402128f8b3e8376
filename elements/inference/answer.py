"""What a model answered, checked: a model of one's own may return anything."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elements.inference.frame import Frame
from elements.metadata.batch_detections import BatchDetections
from elements.metadata.detections import Detections

if TYPE_CHECKING:
    from elements.inference.model import Model

log = logging.getLogger("gstorch.inference")

_HIGHEST_CLASS = 2**31 - 1  # int32 in NvDsObjectMeta
_told: set[tuple[str, str]] = set()  # warnings, and the models that they were about


def ask(model: Model, frames: Sequence[Frame], name: str, handle: Any = None) -> tuple[Sequence[Detections], int]:
    """What a model finds, and how many rows it and `checked_answer` left out as they are not finite numbers.

    Args:
        model: the model.
        frames: the frames.
        name: what to call the model in messages.
        handle: what its ``submit`` gave for them; ``None``: they are given to ``infer`` now.

    Raises:
        BaseException: whatever the model raises, or what `checked_answer` does about its answer.
    """
    stats = getattr(model, "stats", None)
    before = getattr(stats, "nan", 0)
    answer = model.infer(frames) if handle is None else model.collect(handle)  # type: ignore[attr-defined]
    found, broken = checked_answer(answer, len(frames), name, names=getattr(model, "names", ()))
    return found, broken + getattr(stats, "nan", 0) - before


def checked_answer(
    found: Any, count: int, name: str, who: str = "infer", names: Sequence[str] = ()
) -> tuple[Sequence[Detections], int]:
    """The answer of ``Model.infer`` for ``count`` frames without rows that are not finite numbers, or have no area.

    Args:
        found: the answer.
        count: number of frames.
        name: what to call the model in messages.
        who: the function that gave it, for messages.
        names: of its classes, if it has any. A class number beyond them is told once, and is its own name.

    Returns:
        One `Detections` per frame, and how many rows were left out as they are not finite numbers.

    Raises:
        TypeError: if it is not one `Detections` for each frame, or holds something else than arrays and mappings.
        ValueError: if it has class numbers below 0 or above what metadata holds, an array of the wrong shape, or
            attributes without a label.
    """
    in_arrays = isinstance(found, BatchDetections) and len(found) == count
    if not in_arrays and not (
        isinstance(found, list | tuple) and len(found) == count and all(isinstance(f, Detections) for f in found)
    ):
        raise TypeError(f"{who}() must return a list of one Detections per frame ({count}), not {_shape(found)}")
    parts = [found.rows] if in_arrays else found
    for detections in parts:
        _check_arrays(detections, who)
    some = [detections for detections in parts if len(detections.boxes)]  # often none
    if _all_finite(some):
        _check_classes(some, name, who, names)
        if not some or _have_area(some, name, who):
            return found if in_arrays else list(found), 0
        return [_with_area(one) for one in found], 0
    answer = [_finite(detections) for detections in found]
    _check_classes(answer, name, who, names)
    broken = sum(map(len, parts)) - sum(map(len, answer))
    return answer if _have_area(answer, name, who) else [_with_area(one) for one in answer], broken


def _check_classes(found: Sequence[Detections], name: str, who: str, names: Sequence[str]) -> None:
    numbers = _column(found, "class_ids")
    if not len(numbers):
        return
    lowest, highest = numbers.min(), numbers.max()
    if lowest < 0:
        raise ValueError(f"{who}() returned class_ids below 0: {lowest}")
    if highest > _HIGHEST_CLASS:
        raise ValueError(f"{who}() returned class_ids above {_HIGHEST_CLASS}, which metadata cannot hold: {highest}")
    if names and highest >= len(names):
        last = len(names) - 1
        _warn_once(
            "returned class %d, but it has %d names (0 to %d): such objects are called by their number",
            *(name, who, highest, len(names), last),
        )


_SHAPES: dict[str, tuple[int | None, ...]] = {
    "boxes": (4,), "scores": (), "class_ids": (), "angles": (), "keypoints": (None, 3), "embeddings": (None,),
    "track_ids": (),
}  # behind the number of objects; None: any size  # fmt: skip
_NEEDED = frozenset(("boxes", "scores", "class_ids"))
_NUMBERS = frozenset("fiub")  # kinds of NumPy types


def _check_arrays(detections: Detections, who: str) -> None:
    """Arrays may have been exchanged after the `Detections` were made, and some are not looked at then."""
    rows = len(detections.boxes)
    for name, expected in _SHAPES.items():
        value = getattr(detections, name)
        if value is None and name not in _NEEDED:
            continue
        if not isinstance(value, np.ndarray) or value.dtype.kind not in _NUMBERS:
            what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(f"{who}() returned {what} as {name}: an array of numbers is needed")
        shape = (rows, *expected)
        if value.shape != shape and not _fits(value.shape, shape):
            wanted = ", ".join("n" if size is None else str(size) for size in shape)
            raise ValueError(f"{who}() returned {name} of shape {value.shape}: ({wanted}) is needed for {rows} objects")
    _check_attributes(detections, who)


def _check_attributes(detections: Detections, who: str) -> None:
    """What is to become classifiers' labels (see `elements.metadata.writer.write_detections`)."""
    for row, given in enumerate(detections.attributes or ()):
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise TypeError(
                f"{who}() returned {given!r:.80} as attributes[{row}]: a mapping is needed, {{'colour': 'red'}}"
            )
        for name, value in given.items():
            if isinstance(value, Mapping) and not _is_label(value):
                raise ValueError(
                    f"{who}() returned {value!r:.80} as attributes[{row}]['{name}']: a label is needed, or a mapping "
                    "with 'label' and, if known, the numbers 'class_id' and 'probability'"
                )


def _is_label(value: Mapping[str, Any]) -> bool:
    class_id, probability = value.get("class_id", 0), value.get("probability", 1.0)
    numbers = isinstance(class_id, Integral) and isinstance(probability, Real)
    return "label" in value and numbers and 0 <= class_id <= _HIGHEST_CLASS and math.isfinite(probability)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))


def _column(found: Sequence[Detections], name: str) -> NDArray[Any]:
    """What all have of one kind, flat: for one look at many small arrays."""
    arrays = [value.reshape(-1) for detections in found if (value := getattr(detections, name)) is not None]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays) if arrays else np.empty(0)


def _all_finite(found: Sequence[Detections]) -> bool:
    return not found or all(np.isfinite(_column(found, name)).all() for name in ("boxes", "scores", "angles"))


def _finite(detections: Detections) -> Detections:
    """The rows whose box, score and angle are numbers; the same object if all are."""
    finite = np.isfinite(detections.boxes).all(axis=1) & np.isfinite(detections.scores)
    if detections.angles is not None:
        finite &= np.isfinite(detections.angles)
    return detections if finite.all() else detections[finite]


def _have_area(found: Sequence[Detections], name: str, who: str) -> bool:
    """Whether all boxes have; sides below 0 are told."""
    sides = _sides(_column(found, "boxes").reshape(-1, 4))
    if (sides < 0).any():
        _warn_once(
            "returns boxes whose right or lower side comes before the left or upper one: they are left out (a box is "
            "x1, y1, x2, y2, not x, y, width, height)",
            *(name, who),
        )
    return bool((sides > 0).all())


def _with_area(detections: Detections) -> Detections:
    """The rows whose box has sides above 0: there is no picture in others, and nothing overlaps them."""
    return detections[(_sides(detections.boxes) > 0).all(axis=1)]


def _sides(boxes: NDArray[Any]) -> NDArray[Any]:
    sides: NDArray[Any] = boxes[:, 2:] - boxes[:, :2]
    return sides


def _warn_once(text: str, name: str, who: str, *values: object) -> None:
    """Log ``text``, with ``values``, the first time that it is about this model."""
    if (text, name) not in _told:
        _told.add((text, name))
        log.warning("model '%s': %s() " + text + "; this is said once", name, who, *values)


def _shape(found: Any) -> str:
    """What was returned instead, in a few words."""
    if isinstance(found, list | tuple):
        kinds = sorted({type(item).__name__ for item in found})
        return f"a {type(found).__name__} of {len(found)}" + (f" ({', '.join(kinds)})" if kinds else "")
    return type(found).__name__

"""What one source has otherwise than its stage: thresholds, classes, a region, a model of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.analytics.geometry import Point, polygon_problem
from elements.inference.config import parse_list
from elements.inference.errors import ModelError, unknown_key
from elements.inference.names import class_ids_of
from elements.metadata.detections import Detections


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of one source in an infer stage; ``None``: as the stage says.

    Attributes:
        confidence: lowest score that counts, 0 to 1.
        classes: names or numbers to report, of those that the stage reports.
        interval: frames skipped between two inferences.
        region: polygon of (x, y) from 0 to 1 of the source's width and height. Objects whose box has its centre outside
            are left out; the model sees the whole picture.
        model: model file or ``package.module:Class`` for this source alone.

    Raises:
        ModelError: if a value is out of its range.
    """

    confidence: float | None = None
    classes: tuple[str | int, ...] | None = None
    interval: int | None = None
    region: tuple[Point, ...] | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        number = self.confidence
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            raise ModelError(f"confidence: '{number}' is not a number")
        if number is not None and not 0 <= number <= 1:
            raise ModelError(f"confidence: {number} is not between 0 and 1")
        skipped = self.interval
        if skipped is not None and (isinstance(skipped, bool) or not isinstance(skipped, int) or skipped < 0):
            raise ModelError(f"interval: '{skipped}' is not a whole number of 0 or more")
        if self.model is not None and (not isinstance(self.model, str) or not self.model):
            raise ModelError(f"model: '{self.model}' is neither a path nor package.module:Class")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> SourceOptions:
        """Options from plain values; dashes in keys count as underscores.

        Raises:
            ModelError: for an unknown key or a value out of range.
        """
        known = [field.name for field in fields(cls)]
        values = {}
        for key, value in options.items():
            name = str(key).replace("-", "_")
            if name not in known:
                raise unknown_key(key, known)
            values[name] = value
        if values.get("classes") is not None:
            values["classes"] = tuple(parse_list(values["classes"]))
        if values.get("region") is not None:
            values["region"] = parse_region(values["region"])
        return cls(**values)

    def pick(
        self, found: Detections, names: Sequence[str], size: tuple[int, int], stage_confidence: float
    ) -> Detections:
        """The objects of one frame that this source reports; the same object if all are.

        Args:
            found: by a model whose threshold is at most this source's.
            names: the model's class names.
            size: (width, height) of the frame, pixels.
            stage_confidence: threshold of sources that have none of their own.
        """
        keep = found.scores >= np.float32(stage_confidence if self.confidence is None else self.confidence)
        if self.classes is not None:
            keep &= np.isin(found.class_ids, _known_ids(self.classes, names))
        if self.region is not None:
            centres = (found.boxes[:, :2] + found.boxes[:, 2:]) / np.multiply(2, size, dtype=np.float32)
            keep &= inside(self.region, centres)
        return found if keep.all() else found[keep]


def _known_ids(classes: Sequence[str | int], names: Sequence[str]) -> list[int]:
    """Numbers of the classes; one that the model lacks, which was told when it came, has none."""
    found: list[int] = []
    for entry in classes:
        with contextlib.suppress(ModelError):
            found += class_ids_of((entry,), names)
    return found


def parse_region(value: Any) -> tuple[Point, ...]:
    """A polygon from ``[x1, y1, x2, y2]`` (a rectangle) or ``[[x, y], [x, y], [x, y], …]``, all from 0 to 1.

    Raises:
        ModelError: for anything else.
    """
    what = f"region: {json.dumps(value, default=str)}"
    try:
        numbers = np.array(value, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape == (4,):
        x1, y1, x2, y2 = numbers
        if x1 >= x2 or y1 >= y2:
            raise ModelError(f"{what} is empty: a rectangle is [left, top, right, bottom]")
        numbers = np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])
    if numbers.ndim != 2 or numbers.shape[1] != 2 or len(numbers) < 3:
        raise ModelError(f"{what} is neither [left, top, right, bottom] nor a list of three or more [x, y]")
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise ModelError(f"{what} leaves the picture: x and y run from 0 to 1 of its width and height")
    points = tuple((float(x), float(y)) for x, y in numbers)
    problem = polygon_problem(points)
    if problem is not None:
        raise ModelError(f"{what}: {problem[0]}: {problem[1]}")
    return points


def inside(polygon: Sequence[Point], points: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which points lie in a polygon (even-odd rule). A point on its left or top edge does, on the others does not.

    Args:
        polygon: corners in order, closed by itself.
        points: (N, 2).
    """
    x, y = points[:, 0], points[:, 1]
    result = np.zeros(len(points), bool)
    for (x1, y1), (x2, y2) in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
        if y1 == y2:
            continue
        crosses = (y1 <= y) != (y2 <= y)
        result ^= crosses & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    return result


def parse_source_options(text: str) -> dict[int, SourceOptions]:
    """Options by source id from JSON: ``{"0": {"confidence": 0.6}, "2": {"region": [0, 0.5, 1, 1]}}``.

    Raises:
        ModelError: if it is not that.
    """
    try:
        content = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise ModelError(f"source-options is no JSON ({error}): {text!r}") from error
    return source_options_of(content)


def source_options_of(content: Any) -> dict[int, SourceOptions]:
    """Options by source id from plain values.

    Raises:
        ModelError: if they are not that.
    """
    if not isinstance(content, Mapping) or not all(
        str(key).isdecimal() and isinstance(value, Mapping) for key, value in content.items()
    ):
        raise ModelError('source-options must be like {"0": {"confidence": 0.6}}, by source id')
    options = {}
    for key, values in content.items():
        try:
            options[int(key)] = SourceOptions.from_mapping(values)
        except ModelError as error:
            raise ModelError(f"source-options: source {key}: {error}") from error
    return options


def source_options_text(options: Mapping[int, SourceOptions]) -> str:
    """The inverse of `parse_source_options`; what is as the stage says is left out."""
    plain = {
        str(source_id): {key: value for key, value in asdict(one).items() if value is not None}
        for source_id, one in sorted(options.items())
    }
    return json.dumps({source_id: values for source_id, values in plain.items() if values})

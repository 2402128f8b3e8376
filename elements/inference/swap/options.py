"""How a new model proves itself before and after it takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from elements.inference.errors import ModelError, unknown_key


@dataclass(frozen=True, slots=True)
class SwapOptions:
    """The ``swap`` section of an infer stage.

    Attributes:
        shadow: batches on which the new model runs beside the old one before it takes over; 0: none.
        min_iou: least mean overlap (IoU) of boxes that both found in the shadow run, 0 to 1.
        max_count_change: most by which the number of objects may differ in the shadow run, as a share of the old one.
        keep: seconds for which the old model is kept after the switch; only in this time is there a way back.
        no_detections: frames without any object after which the old model comes back, if it found one in as many
            frames before; 0: no such rule.
        max_latency: seconds per batch; the old model comes back after three slower batches in a row; 0: no such rule.

    Raises:
        ModelError: if a value is out of its range.
    """

    shadow: int = 0
    min_iou: float = 0.5
    max_count_change: float = 0.5
    keep: float = 10.0
    no_detections: int = 0
    max_latency: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), isinstance(field.default, int)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                kind = "a whole number" if whole else "a number"
                raise ModelError(f"swap: {field.name}: '{value}' is not {kind}")
            if not 0 <= value <= (1 if field.name == "min_iou" else float("inf")):
                raise ModelError(f"swap: {field.name}: {value} is out of range")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> SwapOptions:
        """Options from plain values; durations in seconds, dashes count as underscores.

        Raises:
            ModelError: for an unknown key or a value out of range.
        """
        known = [field.name for field in fields(cls)]
        values = {}
        for key, value in options.items():
            name = str(key).replace("-", "_")
            if name not in known:
                raise unknown_key(key, known, "swap: ")
            values[name] = value
        return cls(**values)

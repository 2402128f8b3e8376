"""Exchange of a stage's model while the pipeline runs."""

from __future__ import annotations

from pipelines.definition.fields import Duration, Integer, Number
from pipelines.definition.sections import Section, option


class Swap(Section):
    """How a new model proves itself before it takes over, and when the old one comes back."""

    shadow: Integer = option(
        0, ge=0, description="Batches on which the new model runs beside the old one before it takes over; 0: none."
    )
    min_iou: Number = option(
        0.5, ge=0, le=1, description="Least mean overlap (IoU) of boxes that both models found in the shadow run."
    )
    max_count_change: Number = option(
        0.5, ge=0, description="Most by which the number of objects may change in the shadow run, as a share."
    )
    keep: Duration = option(
        "10s", description="How long the old model is kept after the switch; only then is there a way back."
    )
    no_detections: Integer = option(
        0, ge=0, description="Frames without objects after which the old model, which found some, comes back; 0: off."
    )
    max_latency: Duration | None = option(
        None, description="The old model comes back after three batches in a row that take longer; default: off."
    )

"""The infer stage as nodes: pyinfer, and the conversion that it needs."""

from __future__ import annotations

from pipelines.definition import InferStage
from pipelines.draft import Draft, Facts
from pipelines.graph import PropertyValue

FORMATS = ("RGB",)  # at the sink pad, memory:NVMM


def add_infer(draft: Draft, stage: InferStage, origin: str, facts: Facts) -> None:
    """Add pyinfer to the chain."""
    draft.add_queue(f"{stage.name}-queue", origin)
    draft.convert(FORMATS, f"{stage.name}-convert", origin)
    draft.add(f"{stage.name}", "pyinfer", origin, _properties(stage))


def _properties(stage: InferStage) -> dict[str, PropertyValue]:
    """pyinfer's properties: what the stage declares; what it leaves to the model is left unset."""
    declared: dict[str, PropertyValue | None] = {
        "model-path": str(stage.model),
        "confidence-threshold": stage.confidence,
        "iou-threshold": stage.iou,
        "interval": stage.interval,
        "engine": _declared(stage.engine),
        "precision": _declared(stage.precision),
        "weights": str(stage.weights) if stage.weights else None,
        "trust": stage.trust or None,
        "device": stage.device,
        "unique-id": stage.unique_id,
        "on-error": stage.on_error,
        "batch-size": stage.batch_size,
        "labels": _labels(stage),
        "layout": _declared(stage.layout),
        "letterbox": _declared(stage.letterbox),
        "color": _declared(stage.color),
        "scale": _declared(stage.scale),
        "pad-value": stage.pad,
        "coordinates": _declared(stage.coordinates),
        "input-size": "x".join(str(side) for side in stage.input_size) if stage.input_size else None,
        "classes": ",".join(str(item) for item in stage.classes) if stage.classes else None,
    }
    return {key: value for key, value in declared.items() if value is not None}


def _labels(stage: InferStage) -> str | None:
    """A path, or names with commas between them."""
    if stage.labels is None:
        return None
    if isinstance(stage.labels, tuple):
        return ",".join(stage.labels) + ","  # with a comma at the end one name is not taken for a path
    return str(stage.labels)


def _declared(value: str) -> str | None:
    return None if value == "auto" else value

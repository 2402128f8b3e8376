"""The infer stage as nodes: pyinfer, and the conversion that it needs."""

from __future__ import annotations

import json
from typing import Any

from elements.inference.source_options import SourceOptions, source_options_text
from elements.inference.swap.options import SwapOptions
from pipelines.definition import InferStage, SourceInfer, Swap
from pipelines.definition.stages.operate_on import OperateOn
from pipelines.draft import Draft, Facts
from pipelines.graph import PropertyValue

FORMATS = ("RGB",)  # at the sink pad, memory:NVMM


def add_infer(draft: Draft, stage: InferStage, origin: str, facts: Facts) -> None:
    """Add pyinfer to the chain."""
    draft.add_queue(f"{stage.name}-queue", origin)
    draft.convert(FORMATS, f"{stage.name}-convert", origin)
    properties = infer_properties(stage)
    if stage.compile and stage.operate_on is None:  # which is for one number of frames: that of a full batch
        mux = next(node for node in draft.graph.nodes.values() if node.factory == "nvstreammux")
        properties.setdefault("batch-size", mux.properties["batch-size"])
    if others := _source_options(draft, stage):
        properties["source-options"] = others
    properties["source-names"] = json.dumps(draft.sources, ensure_ascii=False)
    if stage.operate_on is not None:
        properties["operate-on"] = _operate_on(draft, stage.operate_on)
    draft.add(f"{stage.name}", "pyinfer", origin, properties, {"params"} & set(properties))


def _operate_on(draft: Draft, on: OperateOn) -> str:
    """pyinfer's ``operate-on``: `elements.inference.cascade.OperateOn` as JSON, without what is its default."""
    names = list(draft.graph.nodes)
    since = [draft.graph.nodes[name] for name in names[names.index(on.stage) :]]
    tracked = any(node.factory == "nvtracker" for node in since)
    values = {
        "id": since[0].properties["unique-id"],
        "classes": on.classes,
        "min_size": on.min_size,
        "max_objects": on.max_objects_per_frame,
        "refresh": on.refresh,
        "rate": on.rate,
    }
    given = {key: value for key, value in values.items() if value}
    return json.dumps(given if tracked else {**given, "tracked": False}, ensure_ascii=False)


def _source_options(draft: Draft, stage: InferStage) -> str:
    """pyinfer's ``source-options``; empty if every source has what the stage says."""
    options = {i: source_options(own[str(stage.name)]) for i, own in enumerate(draft.source_infer) if stage.name in own}
    text = source_options_text(options)
    return "" if text == "{}" else text


def source_options(declared: SourceInfer) -> SourceOptions:
    """What a source has otherwise, as the element takes it."""
    return SourceOptions(
        confidence=declared.confidence,
        classes=declared.classes,
        interval=declared.interval,
        region=declared.region,
        model=None if declared.model is None else str(declared.model),
    )


def swap_options(declared: Swap) -> dict[str, Any]:
    """The swap section as the element takes it, without what is its default."""
    values = {**declared.model_dump(), "max_latency": declared.max_latency or 0.0}
    return {key: value for key, value in values.items() if value != getattr(SwapOptions(), key)}


def infer_properties(stage: InferStage) -> dict[str, PropertyValue]:
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
        "compile": stage.compile or None,
        "device": stage.device,
        "unique-id": stage.unique_id,
        "on-error": stage.on_error,
        "reload": None if stage.reload == "off" else stage.reload,
        "swap-options": json.dumps(swap) if (swap := swap_options(stage.swap)) else None,
        "params": _params(stage),
        "postprocess": stage.postprocess,
        "class-offset": stage.class_offset or None,
        "batch-size": stage.batch_size,
        "labels": _labels(stage),
        "task": _declared(stage.task),
        "layout": _declared(stage.layout),
        "letterbox": _declared(stage.letterbox),
        "color": _declared(stage.color),
        "scale": _declared(stage.scale),
        "pad-value": stage.pad,
        "coordinates": _declared(stage.coordinates),
        "input-size": "x".join(str(side) for side in stage.input_size) if stage.input_size else None,
        "rectangular": None if stage.rectangular is None else str(stage.rectangular).lower(),
        "classes": ",".join(str(item) for item in stage.classes) if stage.classes else None,
    }
    return {key: value for key, value in declared.items() if value is not None}


def _params(stage: InferStage) -> str | None:
    params = stage.params.get_secret_value()
    return json.dumps(params, ensure_ascii=False) if params else None


def _labels(stage: InferStage) -> str | None:
    """A path, or names with commas between them."""
    if stage.labels is None:
        return None
    if isinstance(stage.labels, tuple):
        return ",".join(stage.labels) + ","  # with a comma at the end one name is not taken for a path
    return str(stage.labels)


def _declared(value: str) -> str | None:
    return None if value == "auto" else value

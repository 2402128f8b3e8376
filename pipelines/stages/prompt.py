"""The prompt stage as nodes: pyprompt, and the conversion that it needs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from elements.prompting.options import PromptOptions
from pipelines.definition import PromptStage
from pipelines.draft import Draft, Facts
from pipelines.graph import PropertyValue

FORMATS = ("RGB",)  # at the sink pad, memory:NVMM
MUX_FACTORY = "nvstreammux"


def add_prompt(draft: Draft, stage: PromptStage, origin: str, facts: Facts) -> None:
    """Add pyprompt to the chain, behind a queue of its own."""
    name = str(stage.name)
    draft.add_queue(f"{name}-queue", origin)
    draft.convert(FORMATS, f"{name}-convert", origin)
    live = any(node.properties.get("live-source") for node in draft.graph.nodes.values() if node.factory == MUX_FACTORY)
    properties: dict[str, PropertyValue] = {
        "endpoint": stage.endpoint,
        "model": stage.model,
        "text": stage.text,
        "options": json.dumps(_options(stage, live), ensure_ascii=False),
        "source-names": json.dumps(draft.sources, ensure_ascii=False),
    }
    if stage.api_key is not None:
        properties["api-key"] = stage.api_key.get_secret_value()
    if params := stage.params.get_secret_value():
        properties["params"] = json.dumps(params, ensure_ascii=False)
    draft.add(name, "pyprompt", origin, properties, {"api-key", "params"} & set(properties))


def _options(stage: PromptStage, live: bool) -> dict[str, Any]:
    """pyprompt's ``options``: `PromptOptions` as JSON, without what is its default."""
    trigger, age = stage.trigger, stage.trigger.min_age
    values = {
        "per": stage.per,
        "trigger": _given(
            {
                "classes": trigger.classes,
                "min_age": (stage.within if stage.frames > 1 else 0.0) if age is None else age,
                "zones": trigger.zones,
                "events": trigger.events,
                "interval": trigger.interval,
            }
        ),
        "refresh": stage.refresh,
        "frames": stage.frames,
        "within": stage.within,
        "margin": stage.margin,
        "max_side": stage.max_side,
        "answer": stage.answer,
        "answer_schema": stage.answer_schema,
        "attribute": stage.attribute,
        "requests_per_minute": stage.budget.requests_per_minute,
        "tokens_per_minute": stage.budget.tokens_per_minute,
        "max_tokens": stage.max_tokens,
        "timeout": stage.timeout,
        "retries": stage.retries,
        "concurrent": stage.concurrent,
        "queue": stage.queue,
        "overflow": stage.overflow,
        "finish": 0.0 if live else stage.finish,
        "on_error": stage.on_error,
    }
    default = {f.name: f.default for f in fields(PromptOptions)}
    return {key: value for key, value in values.items() if value not in (None, {}, default[key])}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}

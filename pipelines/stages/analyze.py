"""The analyze stage: DeepStream's element and its file, or an operator with rules of ours."""

from __future__ import annotations

from typing import Any

from elements.analytics.rules import Direction, Line, Rules, Settings, Zone
from pipelines.definition import AnalyzeStage
from pipelines.draft import Draft, DrawnRules, Facts
from pipelines.graph import Attachment

FORMATS = ("NV12", "RGBA")  # of nvdsanalytics, memory:NVMM
OPERATOR = "pipelines.operators.analyze:Analyze"
COPY = "pipelines.operators.nvds_analytics:CopyAnalytics"


def add_analyze(draft: Draft, stage: AnalyzeStage, origin: str, facts: Facts) -> None:
    """Add the element, or attach the operator behind a queue."""
    name = str(stage.name)
    draft.add_queue(f"{name}-queue", origin)
    common: dict[str, Any] = {"name": name, "report": "@report"}
    if stage.config is not None:
        draft.convert(FORMATS, f"{name}-convert", origin)
        draft.add(name, "nvdsanalytics", origin, {"config-file": str(stage.config)})
        draft.graph.attach(Attachment(draft.tail, name, COPY, common, origin=origin))
        return
    by_source = {i: rules for i, source in enumerate(draft.sources) if (rules := _rules(stage, source)) != Rules()}
    params = {
        **common,
        "rules": by_source,
        "settings": Settings(stage.anchor, stage.confirm_frames, stage.hold_frames, stage.lost_after),
        "sources": list(draft.sources),
        "padding": draft.padding,
        "mux_size": draft.mux_size,
    }
    draft.graph.attach(Attachment(draft.tail, name, OPERATOR, params, origin=origin))
    if stage.draw:
        draft.drawn_rules.append(DrawnRules(name, by_source))


def _rules(stage: AnalyzeStage, source: str) -> Rules:
    """The rules for one source."""

    def has(rule: Any) -> bool:
        return not rule.sources or source in rule.sources

    return Rules(
        tuple(Zone(z.name, z.polygon, z.classes or (), z.crowded_at) for z in stage.zones if has(z)),
        tuple(Line(n.name, *n.points, n.towards, n.classes or ()) for n in stage.lines if has(n)),
        tuple(Direction(d.name, d.vector, d.tolerance, d.classes or ()) for d in stage.directions if has(d)),
    )

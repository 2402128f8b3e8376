"""The filter stage as a node: pymetafilter, which takes frames as they are."""

from __future__ import annotations

from elements.filtering.rules import FilterRules
from elements.filtering.texts import properties_of
from pipelines.definition import FilterStage
from pipelines.draft import Draft, Facts
from pipelines.graph import PropertyValue


def add_filter(draft: Draft, stage: FilterStage, origin: str, facts: Facts) -> None:
    """Add pymetafilter to the chain."""
    draft.add(str(stage.name), "pymetafilter", origin, _properties(stage))


def _properties(stage: FilterStage) -> dict[str, PropertyValue]:
    nowhere = (0.0, 0.0)
    return properties_of(
        FilterRules(
            rename=stage.rename or {},
            remap=stage.remap or {},
            keep=stage.keep or (),
            drop=stage.drop or (),
            confidence=stage.confidence,
            class_confidence=stage.class_confidence or {},
            min_size=stage.min_size or nowhere,
            max_size=stage.max_size or nowhere,
            min_aspect=stage.min_aspect or 0.0,
            max_aspect=stage.max_aspect or 0.0,
            regions=stage.regions or (),
            exclude=stage.exclude or (),
            min_age=stage.min_age or 0.0,
            merge_iou=stage.merge_iou,
            limit=stage.limit,
        )
    )

"""The track stage as nodes: nvtracker, and the conversion that it needs."""

from __future__ import annotations

from pipelines.definition import TrackStage
from pipelines.draft import Draft, Facts
from pipelines.graph import Attachment, PropertyValue

FORMATS = ("NV12", "RGBA", "I420")  # at the sink pad, memory:NVMM
ANGLE_CARRIER = "pipelines.operators.angles:AngleCarrier"
TRACKER_LIBRARY = "/opt/nvidia/deepstream/deepstream/lib/libnvds_nvmultiobjecttracker.so"


def add_track(draft: Draft, stage: TrackStage, origin: str, facts: Facts) -> None:
    """Add nvtracker to the chain; behind NVIDIA's, what carries the angle of rotated objects."""
    draft.add_queue("track-queue", origin)
    draft.convert(FORMATS, "track-convert", origin)
    turns = _may_turn(draft)
    draft.add("track", "nvtracker", origin, _properties(stage, facts))
    if turns and "nvtracker" not in facts.stand_ins:
        draft.graph.attach(Attachment("track", "angles", ANGLE_CARRIER, {"report": "@report"}))


def _may_turn(draft: Draft) -> bool:
    """Whether objects of an inference stage before may have an angle, as far as its declared task tells."""
    stages = [node for node in draft.graph.nodes.values() if node.factory == "pyinfer"]
    return any(node.properties.get("task", "obb") == "obb" for node in stages)


def _properties(stage: TrackStage, facts: Facts) -> dict[str, PropertyValue]:
    declared: dict[str, PropertyValue | None] = {
        "ll-config-file": str(stage.config) if stage.config else None,
        "ll-lib-file": None if "nvtracker" in facts.stand_ins else TRACKER_LIBRARY,
        "tracker-width": stage.width,
        "tracker-height": stage.height,
        "operate-on-class-ids": ";".join(str(class_id) for class_id in stage.classes) if stage.classes else None,
        "display-tracking-id": False,  # the draw stage writes the labels
    }
    return {key: value for key, value in declared.items() if value is not None}

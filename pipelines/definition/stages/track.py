"""The track stage."""

from __future__ import annotations

from typing import ClassVar

from pipelines.definition.fields import FilePath
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.types import ClassId, TrackerPixels


class TrackStage(OneKey):
    """Follow objects from frame to frame and give them ids (nvtracker)."""

    KEY: ClassVar[str] = "track"

    config: FilePath | None = option(
        None, description="Tracker configuration file (DeepStream's YAML); default: built in."
    )
    width: TrackerPixels | None = option(None, description="Width that the tracker works at, pixels.")
    height: TrackerPixels | None = option(None, description="Height that the tracker works at, pixels.")
    classes: tuple[ClassId, ...] | None = option(
        None, min_length=1, description="Class ids to follow; others pass untouched; default: all."
    )

"""The analyze stage."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipelines.definition.analytics import DirectionRule, LineRule, ZoneRule
from pipelines.definition.fields import Boolean, Duration, FilePath, Integer
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.types import StageName


class AnalyzeStage(OneKey):
    """Judge what tracked objects do: zones, lines, directions; or by DeepStream's nvdsanalytics and its file."""

    KEY: ClassVar[str] = "analyze"

    name: StageName | None = option(None, description="Name of this stage; default: analyze, analyze-2 …")
    config: FilePath | None = option(
        None, description="Configuration file of DeepStream's nvdsanalytics, in place of the rules here."
    )
    zones: tuple[ZoneRule, ...] = option((), description="Areas to count in: entries, exits, dwell times, crowds.")
    lines: tuple[LineRule, ...] = option((), description="Lines to count crossings of, both ways.")
    directions: tuple[DirectionRule, ...] = option((), description="Directions to watch for.")
    anchor: Literal["bottom", "center"] = option(
        "bottom", description="The point of a box that counts: the middle of its lower side, or its centre."
    )
    confirm_frames: Integer = option(3, ge=1, description="A track counts once it was seen in so many frames.")
    hold_frames: Integer = option(
        3, ge=1, description="A change (of side, of zone) counts once it was seen in so many frames in a row."
    )
    lost_after: Duration = option(
        "2s", ge=0, description="A track that was not seen for so long (stream time) has left its zones."
    )
    draw: Boolean = option(True, description="Draw zones, lines and counts, where there is a draw stage.")

    @property
    def rules(self) -> tuple[tuple[str, tuple[ZoneRule | LineRule | DirectionRule, ...]], ...]:
        """The rules with the keys that they are written under."""
        return ("zones", self.zones), ("lines", self.lines), ("directions", self.directions)

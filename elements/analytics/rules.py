"""What to look for: rules of one source. Places are shares of the picture, from 0 to 1 (x to the right, y down)."""

from __future__ import annotations

from dataclasses import dataclass

from elements.analytics.geometry import BOTTOM, Point

Classes = tuple[str | int, ...]
"""Names or numbers of classes; none: all."""


@dataclass(frozen=True, slots=True)
class Zone:
    """An area that objects enter, stay in and leave; from ``crowded_at`` objects on it is overcrowded."""

    name: str
    polygon: tuple[Point, ...]
    classes: Classes = ()
    crowded_at: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line that objects cross; who comes to the side of the point ``towards`` goes in, who leaves it goes out."""

    name: str
    start: Point
    end: Point
    towards: Point
    classes: Classes = ()


@dataclass(frozen=True, slots=True)
class Direction:
    """Objects that move along a vector (dx, dy), give or take ``tolerance`` degrees."""

    name: str
    towards: Point
    tolerance: float = 45.0
    classes: Classes = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one source."""

    zones: tuple[Zone, ...] = ()
    lines: tuple[Line, ...] = ()
    directions: tuple[Direction, ...] = ()

    @property
    def class_names(self) -> set[str]:
        """Class names that the rules speak of."""
        rules: tuple[Zone | Line | Direction, ...] = (*self.zones, *self.lines, *self.directions)
        return {name for rule in rules for name in rule.classes if isinstance(name, str)}


@dataclass(frozen=True, slots=True)
class Settings:
    """When something counts.

    Attributes:
        anchor: see `elements.analytics.geometry.anchors`.
        confirm_frames: a track counts from the frame on in which it has been seen so often; what it did before counts
            then, too.
        hold_frames: a new state (inside, on the other side, in motion) counts when it was seen so often in a row; its
            time is that of the first of these frames.
        lost_after: seconds of stream time without being seen after which a track is gone.
    """

    anchor: str = BOTTOM
    confirm_frames: int = 3
    hold_frames: int = 3
    lost_after: float = 2.0

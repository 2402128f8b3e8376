"""The rules of a filter, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Point = tuple[float, float]
Polygon = tuple[Point, ...]


LARGEST_CLASS = 2**31 - 1
"""DeepStream's field is an int."""


@dataclass(frozen=True, slots=True)
class FilterRules:
    """What a filter does with the objects of a frame, in the order of the attributes.

    Classes are meant by name or by number; a rule for a name holds before one for a number.

    Attributes:
        rename: new class name by old name or number.
        remap: new class number by old name or number.
        keep: classes that stay; empty: all.
        drop: classes that go.
        confidence: lowest confidence that stays. An object that only the tracker continued has none and stays.
        class_confidence: the same for single classes, in place of ``confidence``.
        min_size, max_size: (width, height) in source pixels; 0: no limit. For rotated objects, of the unrotated box.
        min_aspect, max_aspect: width divided by height; 0: no limit.
        regions: polygons in source-relative coordinates (0 to 1); objects stay if the middle of their lower edge (for
            rotated objects, their centre) is inside of one; empty: everywhere.
        exclude: polygons in which objects go.
        min_age: seconds of stream time since a track's first frame here; objects that are younger, or not tracked, go.
        merge_iou: objects of one class from different models that overlap by this much or more are one: that of the
            highest confidence stays; 0: no merging.
        limit: most objects per frame, those of the highest confidence; 0: all.

    Raises:
        ValueError: if nothing could pass.
    """

    rename: Mapping[str | int, str] = field(default_factory=dict)
    remap: Mapping[str | int, int] = field(default_factory=dict)
    keep: tuple[str | int, ...] = ()
    drop: tuple[str | int, ...] = ()
    confidence: float = 0.0
    class_confidence: Mapping[str | int, float] = field(default_factory=dict)
    min_size: tuple[float, float] = (0.0, 0.0)
    max_size: tuple[float, float] = (0.0, 0.0)
    min_aspect: float = 0.0
    max_aspect: float = 0.0
    regions: tuple[Polygon, ...] = ()
    exclude: tuple[Polygon, ...] = ()
    min_age: float = 0.0
    merge_iou: float = 0.0
    limit: int = 0

    @property
    def names(self) -> set[str]:
        """Class names that the rules expect of objects, before or after they are renamed."""
        spoken = {*self.rename, *self.remap, *self.keep, *self.drop, *self.class_confidence}
        return {name for name in spoken if isinstance(name, str)}

    def __post_init__(self) -> None:
        for what, least, most in (
            ("width", self.min_size[0], self.max_size[0]),
            ("height", self.min_size[1], self.max_size[1]),
            ("aspect", self.min_aspect, self.max_aspect),
        ):
            if 0 < most < least:
                raise ValueError(f"the smallest {what} {least:g} is above the largest, {most:g}: nothing could pass")

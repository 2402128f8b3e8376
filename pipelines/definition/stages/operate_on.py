"""What an infer stage works on, if it is not whole frames."""

from __future__ import annotations

from pydantic import Field

from pipelines.definition.fields import Auto, Duration, Integer, Name, PerSecond
from pipelines.definition.sections import Section, option
from pipelines.definition.stages.types import ClassFilter


class OperateOn(Section):
    """Objects of an earlier infer stage that the model is given, each cut out of its frame."""

    stage: Name = Field(description="Name of the infer stage whose objects they are.")
    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Their classes, names or ids; default: all."
    )
    min_size: Integer = option(
        0, ge=0, description="Objects with a shorter side below this are left out, source pixels."
    )
    max_objects_per_frame: Auto[Integer] = option(
        "auto", ge=1, description="Most objects of a frame that the model is given; auto: all."
    )
    refresh: Auto[Duration] = option(
        "auto", description="Time after which a tracked object is looked at again; auto: once per track."
    )
    rate: Auto[PerSecond] = option(
        "auto", description="Most objects that the model is given, per source: 20/s, 90/min; auto: all."
    )

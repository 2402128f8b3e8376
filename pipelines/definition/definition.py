"""The whole definition of a pipeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, PrivateAttr

from pipelines.definition import sources as source_models
from pipelines.definition import stages as stage_models
from pipelines.definition.fields import Name
from pipelines.definition.mux import Mux
from pipelines.definition.outputs import Output
from pipelines.definition.problems import KeyPath, Place, format_path
from pipelines.definition.runtime import Runtime
from pipelines.definition.sections import Section, option
from pipelines.definition.sources import Source
from pipelines.definition.stages import Stage


class Definition(Section):
    """A gstorch pipeline: sources, stream mux, stages in order, outputs."""

    pipeline: Name = Field(description="Name of the pipeline, in events and logs.")
    sources: Annotated[tuple[Source, ...], AfterValidator(source_models.with_names)] = Field(
        min_length=1, description="Videos and cameras to read; each is a path, an address or a mapping."
    )
    mux: Mux = option({}, title="Mux", description="How frames of all sources become one batch.")
    stages: Annotated[tuple[Stage, ...], AfterValidator(stage_models.with_names)] = option(
        (), description="What happens to each batch, in order."
    )
    outputs: tuple[Output, ...] = option((), description="What is written and shown; none: frames are only processed.")
    runtime: Runtime = option({}, title="Runtime", description="Choice of elements, and limits of a run.")

    _places: dict[KeyPath, Place] = PrivateAttr(default_factory=dict)

    def where(self, origin: str) -> str:
        """``stages.0`` as ``door.yaml:12: stages[0]``, for messages about what was made of it."""
        path = tuple(int(part) if part.isdigit() else part for part in origin.split("."))
        known = (self._places.get(path[:length]) for length in range(len(path), 0, -1))
        place = next((place for place in known if place is not None), None)
        return format_path(path) if place is None else f"{place.shown()}: {format_path(path)}"

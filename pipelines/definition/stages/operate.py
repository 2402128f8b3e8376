"""The operate stage."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from pipelines.definition.fields import Integer
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.types import ImportPath, Params, StageName


class OperateStage(OneKey):
    """Call a metadata operator of your own on every frame."""

    KEY: ClassVar[str] = "operate"

    operator: ImportPath = Field(description="Function or class that gets each frame, as package.module:name.")
    params: Params = option(None, description="Parameters of the function or of the class's constructor.")
    name: StageName | None = option(None, description="Name of this stage; default: operate, operate-2 …")
    run: Literal["inline", "background"] = option(
        "inline",
        description="inline: in the stream, which waits for it; background: on a thread of its own, for slow work.",
    )
    queue: Integer = option(64, ge=1, le=100_000, description="Frames that may wait for the background thread.")
    overflow: Literal["drop-oldest", "drop-newest"] = option(
        "drop-oldest", description="Which frame goes (and is counted) when no more may wait."
    )
    on_error: Literal["stop", "skip"] = option(
        "stop", description="When the operator fails on a frame: stop the run, or skip the frame and count it."
    )

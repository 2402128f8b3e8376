"""The runtime: which elements are used, and how a run ends."""

from __future__ import annotations

from typing import Literal

from pipelines.definition.fields import Duration
from pipelines.definition.sections import Section, option


class Runtime(Section):
    """Which elements are used, and how a run is stopped."""

    prefer: Literal["auto", "deepstream", "portable"] = option(
        "auto", description="Which pyservicemaker and elements to use; auto: NVIDIA's where they are installed."
    )
    stop_timeout: Duration = option("8s", gt=0, description="Longest time to drain and finish files when stopping.")
    stall_timeout: Duration = option("30s", gt=0, description="The run fails when nothing moves for so long.")
    on_source_error: Literal["continue", "stop"] = option(
        "continue", description="When a source fails: continue with the others, or stop the run."
    )

"""The stream mux: how frames of all sources become one batch."""

from __future__ import annotations

from pipelines.definition.fields import Auto, BatchSize, Boolean, Duration, Pixels
from pipelines.definition.sections import Section, option


class Mux(Section):
    """The stream mux: frames of all sources are brought to one size and batched."""

    width: Auto[Pixels] = option("auto", description="Width of every frame, pixels; auto: from the sources.")
    height: Auto[Pixels] = option("auto", description="Height of every frame, pixels; auto: from the sources.")
    batch_size: Auto[BatchSize] = option("auto", description="Frames per batch; auto: one per source.")
    timeout: Duration = option("40ms", gt=0, description="Longest wait for a full batch after its first frame.")
    padding: Boolean = option(True, description="Keep the aspect ratio with black borders; false stretches.")
    live: Auto[Boolean] = option(
        "auto",
        description="Batch by arrival, as cameras need: one frame of each source per batch, none is waited for longer "
        "than `timeout`. A file beside cameras loses no frame and plays as fast as batches leave. "
        "auto: when a source is live.",
    )

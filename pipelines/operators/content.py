"""What a message stage tells, as plain data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from elements.messages.config import MessageConfig

Schema = Literal["events", "minimal", "full"]
When = Literal["always", "objects", "events"]


@dataclass(frozen=True, slots=True)
class Content:
    """What a message stage tells.

    Attributes:
        schema: ``events``: ours, a message per frame; DeepStream's ``minimal``, one per frame, and ``full``, one per
            object.
        when: which frames: ``always``, those with ``objects``, or those with ``events``.
        frame_interval: every Nth frame of each source; with the schema ``events``, frames with events are sent besides.
        classes: names and ids of the classes to tell of; none: all.
        component_ids: unique ids of the models whose objects to tell of; none: all.
        embeddings: whether objects of the schema ``events`` carry their embeddings.
        config: nvmsgconv's configuration file.
        config_by_source: sensors, places and analytics modules by source id; they win over the file's.
    """

    schema: Schema = "events"
    when: When = "always"
    frame_interval: int = 1
    classes: Collection[int | str] = ()
    component_ids: Collection[int] = ()
    embeddings: bool = False
    config: Path | None = None
    config_by_source: MessageConfig = field(default_factory=MessageConfig)

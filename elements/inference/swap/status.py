"""What is known of a swap: for logs, bus messages, properties and whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class SwapState(StrEnum):
    """How far a new model has come.

    ``loading`` -> ``shadow`` (if asked for) -> ``active``; instead of ``active`` it may be ``rejected`` (it cannot be
    used, or failed its shadow run) or ``superseded`` (another one was asked for meanwhile). An ``active`` model may
    be ``rolled-back`` while the old one is kept.
    """

    LOADING = "loading"
    SHADOW = "shadow"
    ACTIVE = "active"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"
    ROLLED_BACK = "rolled-back"


@dataclass(frozen=True, slots=True)
class SwapStatus:
    """One step of a swap.

    Attributes:
        state: what happened to the new model.
        model: the new model as it was asked for.
        version: of the new model; empty while it is not known.
        in_force: version of the model that now serves.
        reason: why, where the state is not the ordinary course.
        source_id: the source whose model it is; ``None``: the stage's.
    """

    state: SwapState
    model: str
    version: str = ""
    in_force: str = ""
    reason: str = ""
    source_id: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the new model does not serve because of something that is wrong with it."""
        return self.state in (SwapState.REJECTED, SwapState.ROLLED_BACK)

    def __str__(self) -> str:
        return self.text()

    def text(self, sources: Sequence[str] = ()) -> str:
        """In words. ``sources``: their names by id; one that has none is called by its id."""
        of = ""
        if self.source_id is not None:
            known = self.source_id < len(sources)
            of = f"source '{sources[self.source_id]}': " if known else f"source {self.source_id}: "
        text = f"{of}model '{self.version or self.model}' is {self.state}"
        if self.failed:
            text += f": {self.reason}; '{self.in_force}' goes on"
        elif self.reason:
            text += f": {self.reason}"
        return text

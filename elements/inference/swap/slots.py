"""Who serves whom: the records that `Swapper` keeps."""

from __future__ import annotations

from dataclasses import dataclass

from elements.inference.swap.health import Health
from elements.inference.swap.loader import SwapRequest
from elements.inference.swap.served import ServedModel
from elements.inference.swap.shadow import Comparison

NEVER = 1 << 62  # frames since the last object, where there was none yet


@dataclass(frozen=True, slots=True)
class Group:
    """Frames of a batch that one model does.

    Attributes:
        served: the model; held until `Swapper.release`.
        places: positions of its frames in the batch.
    """

    served: ServedModel
    places: list[int]


@dataclass(eq=False, slots=True)
class Slot:
    """A model in force, the stage's or one source's, and the one before it.

    ``borrowed``: the one before it is the stage's, so that on the way back the source follows the stage again.
    """

    source_id: int | None
    active: ServedModel
    request: SwapRequest | None = None
    kept: ServedModel | None = None
    keep_until: float = 0.0
    borrowed: bool = False
    health: Health | None = None
    empty_frames: int = NEVER


@dataclass(eq=False, slots=True)
class Trial:
    """A new model on its shadow run."""

    request: SwapRequest
    served: ServedModel
    comparison: Comparison

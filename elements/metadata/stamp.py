"""Which model made the results of a frame: JSON metadata on the frame, by stage."""

from __future__ import annotations

import functools
import json
from typing import Any

from elements.metadata.edit import read_json, rewrite_json_text

MODELS = "models"
"""Name of the metadata: ``{"infer": "people.onnx@3fa9c1d2a0b1"}``."""


def stamp_model(frame_meta: Any, stage: str, version: str) -> None:
    """Note that the model of this version did the frame in a stage.

    Raises:
        EditError: see `elements.metadata.edit`.
    """
    rewrite_json_text(frame_meta, MODELS, lambda before: _stamped(before, stage, version))


@functools.lru_cache(maxsize=256)
def _stamped(before: str | None, stage: str, version: str) -> str:
    """The same for every frame until a model is exchanged."""
    return json.dumps({**(json.loads(before) if before else {}), stage: version})


def models_of(frame_meta: Any) -> dict[str, str]:
    """The version of the model that did the frame, by stage; stages that skipped it are not in it.

    Raises:
        EditError: see `elements.metadata.edit`.
    """
    return read_json(frame_meta, MODELS) or {}

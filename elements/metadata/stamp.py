"""Which model made the results of a frame: JSON metadata on the frame, by stage."""

from __future__ import annotations

from typing import Any

from elements.metadata.edit import attach_json, read_json

MODELS = "models"
"""Name of the metadata: ``{"infer": "people.onnx@3fa9c1d2a0b1"}``."""


def stamp_model(frame_meta: Any, stage: str, version: str) -> None:
    """Note that the model of this version did the frame in a stage.

    Raises:
        EditError: see `elements.metadata.edit`.
    """
    attach_json(frame_meta, MODELS, {**models_of(frame_meta), stage: version})


def models_of(frame_meta: Any) -> dict[str, str]:
    """The version of the model that did the frame, by stage; stages that skipped it are not in it.

    Raises:
        EditError: see `elements.metadata.edit`.
    """
    return read_json(frame_meta, MODELS) or {}

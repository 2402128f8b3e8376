"""Whether a new model is fit for the frames that come, found out before it gets one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elements.inference.answer import ask
from elements.inference.errors import ModelError, brief
from elements.inference.frame import ArrayFrame
from elements.inference.names import class_ids_of
from elements.inference.source_options import SourceOptions
from elements.inference.swap.served import ANY_ERROR, ServedModel

GREY = 114


def warm_up(served: ServedModel, sizes: Mapping[int, tuple[int, int]]) -> None:
    """Run a model once on a grey picture of every source, so that its first batch is as fast as any.

    Args:
        served: the model.
        sizes: (width, height) of the pictures, by source id.

    Raises:
        ModelError: if it fails, or what it gives is not finite numbers.
    """
    if not sizes:
        return
    model, path = served.model, served.config.path
    grey = {size: np.full((size[1], size[0], 3), GREY, np.uint8) for size in set(sizes.values())}
    frames = [ArrayFrame(grey[size], source_id) for source_id, size in sizes.items()]
    try:
        _, broken = ask(model, frames, str(path))
    except ANY_ERROR as error:
        raise ModelError(f"model '{path}' fails in its first run: {brief(error)}") from error
    if broken:
        raise ModelError(f"model '{path}' gives boxes or scores that are not finite numbers in its first run")
    if hasattr(model, "forget"):  # a class of one's own may keep something for each source
        for source_id in sizes:
            model.forget(source_id)


def check_classes(served: ServedModel, sources: Mapping[int, SourceOptions]) -> None:
    """Whether a model has the classes that sources want.

    Raises:
        ModelError: if it lacks one.
    """
    for source_id, options in sources.items():
        try:
            class_ids_of(options.classes or (), served.names)
        except ModelError as error:
            raise ModelError(f"model '{served.config.path}', source {source_id}: {error}") from None


def task_of(served: ServedModel) -> str:
    """As the model tells; a class of one's own that does not, and of which the stage says nothing, detects."""
    task = getattr(served.model, "task", None) or served.config.task
    return "detect" if task == "auto" else str(task)


def check_task(served: ServedModel, wanted: str, why: str, source_id: int | None = None) -> None:
    """Whether a model does what its stage does.

    Args:
        served: the model.
        wanted: the stage's task.
        why: what stands against it.
        source_id: the source whose own model it is to be.

    Raises:
        ModelError: if it does something else.
    """
    task = task_of(served)
    if task != wanted:
        of = "" if source_id is None else f"source {source_id}: "
        raise ModelError(f"{of}model '{served.config.path}' does '{task}' and the stage '{wanted}': {why}")

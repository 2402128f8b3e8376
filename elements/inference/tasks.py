"""What a model can do."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal, get_args

from elements.inference.errors import ModelError

Task = Literal["detect", "obb", "segment", "pose", "classify", "embed"]
TASKS: tuple[Task, ...] = get_args(Task)


def task_of(declared: str, metadata: Mapping[str, str]) -> Task | None:
    """The task that the user declares or the file's metadata names (``task``, as ultralytics writes it).

    Returns:
        ``None`` if neither tells, so that the outputs' shapes must.

    Raises:
        ModelError: if the two differ, or the metadata names a task that nothing here does.
    """
    stated = metadata.get("task") or None
    if stated is not None and stated not in TASKS:
        raise ModelError(f"its metadata says task '{stated}': only {', '.join(TASKS)} can be used here")
    if declared == "auto":
        return next((task for task in TASKS if task == stated), None)
    if stated is not None and stated != declared:
        raise ModelError(f"task: {declared} is declared, but its metadata says '{stated}': leave 'task' out")
    return next(task for task in TASKS if task == declared)


def keypoint_shape(metadata: Mapping[str, str]) -> tuple[int, int] | None:
    """Number of key points and of values for each, 2 or 3 (``kpt_shape``, as ultralytics writes it).

    Raises:
        ModelError: if the entry is there and is not two such numbers.
    """
    text = metadata.get("kpt_shape")
    if not text:
        return None
    try:
        count, values = (int(number) for number in ast.literal_eval(text))
        if count < 1 or values not in (2, 3):
            raise ValueError("out of range")
    except (ValueError, SyntaxError, TypeError) as error:
        raise ModelError(f"its metadata entry 'kpt_shape' is not [points, 2 or 3]: {text[:80]!r}") from error
    return count, values

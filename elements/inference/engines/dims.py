"""Shapes as TensorRT gives them."""

from __future__ import annotations

from typing import Any


def dims_of(dims: Any) -> tuple[int, ...]:
    """A TensorRT ``Dims`` as a tuple, read by index: ``tuple(dims)`` crashes the process where PyGObject is loaded."""
    return tuple(int(dims[index]) for index in range(len(dims)))

"""The end of a pipeline's operators."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterable
from typing import Any

from elements.base import ElementError, trace_of


def close_operators(operators: Iterable[Any]) -> tuple[str, str]:
    """End all operators, then close each. Returns text and trace of the first failure, empty if there is none."""
    first = "", ""
    ending = list(operators)
    for operator in ending:
        getattr(operator, "end", lambda: None)()
    for operator in ending:
        try:
            getattr(operator, "close", lambda: None)()
        except Exception as error:
            text = str(error) if isinstance(error, ElementError) else f"{type(operator).__name__}: {error}"
            first = first if first[0] else (text, trace_of(error))
    return first


def busy_operators(operators: Iterable[Any]) -> str:
    """Which operators hold the stream up, as the end of a sentence; empty if none does."""
    return "".join(f"; {busy}" for operator in operators if (busy := getattr(operator, "busy", "")))


def threads_in_python() -> str:
    """Where each thread that runs Python code, or waits in it, is at: its name and stack."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = ((names.get(ident, "unnamed"), frame) for ident, frame in sys._current_frames().items())
    return "\n".join(f"Thread '{name}':\n{''.join(traceback.format_stack(frame))}" for name, frame in stacks)

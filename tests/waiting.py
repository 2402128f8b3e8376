"""Waiting for what has to come. The limit only ends a test that fails: no test may depend on the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_S = 300.0
SOON_S = 60.0  # where a test is about an end that comes soon, and not after minutes or never
_PAUSE_S = 0.01
T = TypeVar("T")


def wait_for(condition: Callable[[], T], limit_s: float = LIMIT_S) -> T:
    """The first result of ``condition`` that is true.

    Raises:
        AssertionError: there is none within the limit.
    """
    until = time.monotonic() + limit_s
    while not (result := condition()):
        assert time.monotonic() < until, f"not so within {limit_s:g} s"
        time.sleep(_PAUSE_S)
    return result

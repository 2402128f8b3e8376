"""A state that flickers, steadied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Held(Generic[T]):
    """A state that counts when it was seen in several frames in a row.

    >>> side = Held()
    >>> [side.see(s, time, 2) for time, s in enumerate("AABAABB")]
    [False, True, False, False, False, False, True]
    >>> side.value, side.since
    ('B', 5)

    Attributes:
        value: the state that counts; ``None`` until there is one.
        newest: what was seen last.
        since: time of the first frame in a row with ``newest``.
    """

    value: T | None = None
    newest: T | None = None
    since: float = 0.0
    _frames: int = 0

    def see(self, value: T, time_s: float, hold: float) -> bool:
        """Take what one frame shows; whether, after ``hold`` frames in a row, a new state counts from now on."""
        if value != self.newest:
            self.newest, self.since, self._frames = value, time_s, 0
        self._frames += 1
        if value == self.value or self._frames < hold:
            return False
        self.value = value
        return True

"""How much may be asked: requests and tokens in any 60 seconds of wall-clock time.

The clock is the wall's, since it is the endpoint that the budget protects: a file may run faster than its stream time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WINDOW_S = 60.0


@dataclass(slots=True, eq=False)
class Spent:
    """One request: when it began, and the tokens that it cost, as far as is known."""

    time_s: float
    tokens: int


class Budget:
    """A sliding window: unlike a token bucket, it lets no 60 seconds see more than the limit. Not thread-safe.

    What a request will cost is taken to be what the last one cost, until its answer tells. A request that is larger
    than the whole budget is let through when nothing else is in the window.

    Args:
        requests: most in any 60 s; 0: any number.
        tokens: the same for tokens.
    """

    def __init__(self, requests: int = 0, tokens: int = 0) -> None:
        self._requests, self._tokens = requests, tokens
        self._spent: deque[Spent] = deque()
        self._expected = 0

    def wait_s(self, now_s: float) -> float:
        """Seconds until one more request may begin; 0: now."""
        while self._spent and self._spent[0].time_s <= now_s - WINDOW_S:
            self._spent.popleft()
        free_at = now_s
        if self._requests and len(self._spent) >= self._requests:
            free_at = self._spent[-self._requests].time_s + WINDOW_S
        if self._tokens:
            left = sum(spent.tokens for spent in self._spent)
            for spent in self._spent:
                if left + self._expected <= self._tokens:
                    break
                left -= spent.tokens
                free_at = max(free_at, spent.time_s + WINDOW_S)
        return free_at - now_s

    def begin(self, now_s: float) -> Spent:
        """A request begins."""
        spent = Spent(now_s, self._expected)
        self._spent.append(spent)
        return spent

    def settle(self, spent: Spent, tokens: int) -> None:
        """A request has ended and cost so many tokens (0: it failed)."""
        spent.tokens = tokens
        if tokens:
            self._expected = tokens

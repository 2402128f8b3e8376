"""Notices that a file has new content, and not before that content is complete."""

from __future__ import annotations

from collections.abc import Callable

from elements.inference.swap.version import FileMark, mark_of

POLL_S = 0.5
STABLE_POLLS = 2
SETTLE_POLLS = 20  # 10 s: a copy should be complete, and a file that was removed be there again


class FileWatch:
    """One watched file, polled. A change counts when the file has looked the same for `STABLE_POLLS` more polls.

    So a file that is being copied into place is not taken half-written, as long as the copy does not pause for longer
    than a poll. A rename into place (``mv new.onnx people.onnx`` on one file system) is never half-written.

    Attributes:
        problem: why the file is not taken, at the one poll at which it has been unfit for `SETTLE_POLLS`; else empty.
    """

    def __init__(self, path: str, mark: Callable[[str], FileMark | None] = mark_of) -> None:
        self.path = path
        self.problem = ""
        self._mark_of = mark
        self._known = mark(path)
        self._seen: FileMark | None = None
        self._stable_polls = self._unfit_polls = 0

    def poll(self) -> bool:
        """Look at the file; whether it now has complete new content. Each change is told once."""
        mark = self._mark_of(self.path)
        complete = self._is_complete(mark)
        self._unfit_polls = 0 if complete or mark == self._known else self._unfit_polls + 1
        self.problem = _unfit(mark) if self._unfit_polls == SETTLE_POLLS else ""
        if complete:
            self._known, self._seen = mark, None
        return complete

    def _is_complete(self, mark: FileMark | None) -> bool:
        if mark is None or mark.size == 0 or mark == self._known:
            self._seen = None
            return False
        if mark != self._seen:
            self._seen, self._stable_polls = mark, 0
            return False
        self._stable_polls += 1
        return self._stable_polls >= STABLE_POLLS


def _unfit(mark: FileMark | None) -> str:
    state = "not there" if mark is None else "empty" if mark.size == 0 else "still being written"
    return f"its file is {state} after {SETTLE_POLLS * POLL_S:g} s; it is loaded when the file is complete"

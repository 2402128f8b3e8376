"""Notices that a file has new content, and not before that content is complete."""

from __future__ import annotations

from collections.abc import Callable

from elements.inference.swap.version import FileMark, mark_of

POLL_S = 0.5
STABLE_POLLS = 2


class FileWatch:
    """One watched file, polled. A change counts when the file has looked the same for `STABLE_POLLS` more polls.

    So a file that is being copied into place is not taken half-written, as long as the copy does not pause for longer
    than a poll. A rename into place (``mv new.onnx people.onnx`` on one file system) is never half-written.
    """

    def __init__(self, path: str, mark: Callable[[str], FileMark | None] = mark_of) -> None:
        self.path = path
        self._mark_of = mark
        self._known = mark(path)
        self._seen: FileMark | None = None
        self._polls = 0

    def poll(self) -> bool:
        """Look at the file; whether it now has complete new content. Each change is told once."""
        mark = self._mark_of(self.path)
        if mark is None or mark.size == 0 or mark == self._known:
            self._seen = None
            return False
        if mark != self._seen:
            self._seen, self._polls = mark, 0
            return False
        self._polls += 1
        if self._polls < STABLE_POLLS:
            return False
        self._known, self._seen = mark, None
        return True

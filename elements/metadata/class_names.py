"""Class names in rules that no object ever has: most likely misspelt."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable

log = logging.getLogger("gstorch.metadata")

SURE_AFTER = 1000
"""So many objects are looked at before a name that none of them had is told; at the end it is told in any case."""
ALIKE = 0.75  # difflib's ratio: persn and person, not cat and car
MOST_NAMES = 1000  # names that are remembered: some models give names without end


class UnseenNames:
    """Watches objects' class names and tells once which names of a rule none of them had.

    Args:
        where: what the rules belong to, for the message.
        wanted: class names that the rules speak of.
    """

    def __init__(self, where: str, wanted: Iterable[str]) -> None:
        self._where = where
        self._wanted = set(wanted)
        self._missing = set(self._wanted)
        self._seen: set[str] = set()
        self._objects = 0
        self._told = False

    def see(self, names: Collection[str]) -> None:
        """The class names of some objects."""
        if self._told or not self._missing:
            return
        self._objects += len(names)
        self._missing.difference_update(names)
        if len(self._seen) < MOST_NAMES:
            self._seen.update(names)
        if self._objects >= SURE_AFTER:
            self.tell()

    def tell(self) -> None:
        """Say which names were not seen, if that was not said before and there were objects at all.

        It is a warning where objects had a name that looks like it; a class may just have been absent.
        """
        if self._told or not self._missing or not self._objects:
            return
        self._told = True
        others = sorted(self._seen - self._wanted)
        for name in sorted(self._missing):
            near = difflib.get_close_matches(name, others, n=1, cutoff=ALIKE)
            hint = f": did you mean '{near[0]}'?" if near else ""
            level = logging.WARNING if near else logging.INFO
            log.log(level, "%s: none of %d objects was of class '%s'%s", self._where, self._objects, name, hint)

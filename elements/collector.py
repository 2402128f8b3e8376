"""Python's collector of reference cycles, and what it need not look at while a pipeline runs.

With many objects per frame it visits all that was imported and loaded every few dozen batches, which stops every thread
for tens of milliseconds, to find nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


def spare() -> None:
    """Let the collector pass over all that is there by now, until the end of `resuming`. Takes no time."""
    gc.freeze()


@contextlib.contextmanager
def resuming() -> Iterator[None]:
    """At the end, let it look at everything again."""
    try:
        yield
    finally:
        gc.unfreeze()


def collect_spared() -> None:
    """Look at it now, if it is passed over: something large has gone, such as a model."""
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
        gc.freeze()

"""Memory of models that are gone, given back to the system."""

from __future__ import annotations

import ctypes
import os

_M_ARENA_MAX = -8  # malloc.h

_malloc = ctypes.CDLL(None)


def limit_arenas() -> None:
    """Let all threads of this process share a few arenas of glibc's allocator. Call it before threads start.

    An arena keeps what was freed at its end, up to 64 MiB, and by default there are 8 arenas for each core: models that
    come and go would leave hundreds of MiB behind. Here they are one for two cores, at least two.
    Elsewhere than on glibc this does nothing.
    """
    if hasattr(_malloc, "mallopt") and hasattr(_malloc, "gnu_get_libc_version"):
        _malloc.mallopt(_M_ARENA_MAX, max(2, len(os.sched_getaffinity(0)) // 2))


def trim() -> None:
    """Give freed memory back to the system. Elsewhere than on glibc this does nothing."""
    if hasattr(_malloc, "malloc_trim"):
        _malloc.malloc_trim(0)

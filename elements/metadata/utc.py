"""Times as text."""

from __future__ import annotations

import functools
from datetime import UTC, datetime


@functools.lru_cache(64)  # the frames of a batch were batched at one time
def utc_text(nanoseconds: int) -> str | None:
    """Nanoseconds since 1970 as ISO 8601 with milliseconds and ``Z``; ``None`` where the time is not known (0).

    >>> utc_text(1_700_000_000_123_000_000)
    '2023-11-14T22:13:20.123Z'
    """
    if not nanoseconds or nanoseconds >= 2**63:
        return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

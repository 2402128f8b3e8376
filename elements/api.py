"""The pyservicemaker in use."""

from __future__ import annotations

import importlib
from typing import Any


def pyservicemaker() -> Any:
    """NVIDIA's module, or the portable one where there is none (or where the runtime put it in its place)."""
    try:
        return importlib.import_module("pyservicemaker")
    except ImportError:
        return importlib.import_module("elements.portable.pyservicemaker")

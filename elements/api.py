"""The pyservicemaker in use."""

from __future__ import annotations

import importlib
from typing import Any

from elements.base import ElementError

API = "pyservicemaker"
PORTABLE_API = "elements.portable.pyservicemaker"


def pyservicemaker() -> Any:
    """NVIDIA's module, or the portable one where there is none (or where the runtime put it in its place).

    Raises:
        ElementError: if NVIDIA's is installed and cannot be imported.
    """
    try:
        return importlib.import_module(API)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == API:
            return importlib.import_module(PORTABLE_API)
        raise ElementError(
            f"NVIDIA's pyservicemaker is installed and cannot be imported ({type(error).__name__}: {error}): repair "
            "the DeepStream SDK (it must be for this Python, and its libraries must be found), remove it, or set "
            "runtime.prefer to 'portable'"
        ) from error

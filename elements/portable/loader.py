"""For the stubs in ``python/``, which GStreamer's Python loader reads: outside of the app, as in gst-launch-1.0."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

REAL_ELEMENTS = "GSTORCH_REAL_ELEMENTS"  # set by elements/env.sh: names of NVIDIA's elements on this machine
_RANKS = {"nvv4l2decoder": 256 + 100}  # GST_RANK_PRIMARY + 100, so that decodebin takes it before libav's decoders
_ENV = Path(__file__).resolve().parents[1] / "env.sh"


def offer(stub: dict[str, Any], factory: str, module: str = "") -> None:
    """Set ``__gstelementfactory__`` in a stub's globals, unless NVIDIA's element is installed or an import fails.

    ``module`` is the module of `elements.portable` that has the stand-in; by default its name is the factory's.
    """
    try:
        if factory in _real_elements():
            return
        element = importlib.import_module(f"elements.portable.{module or factory}").FACTORIES[factory]
    except ImportError as error:
        message = f"gstorch: {factory} is not available ({error}): run 'source {_ENV}' in this shell, then again"
        print(message, file=sys.stderr)
    else:
        stub["__gstelementfactory__"] = (factory, _RANKS.get(factory, 0), element)


def _real_elements() -> list[str]:
    """Those of NVIDIA's that stay: see `elements.portable.register`."""
    real = os.environ.get(REAL_ELEMENTS, "").split()
    if "nvstreammux" in real:
        return real
    from elements.portable import cuda

    return [name for name in real if name == "nvv4l2decoder" and cuda.device_count()]

"""Which pyservicemaker and which elements this machine has; registers the stand-ins for those it lacks."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import cv2

from elements.base import Gst

log = logging.getLogger("gstorch.runtime")

API = "pyservicemaker"
PORTABLE_API = "elements.portable.pyservicemaker"
LOADER_PATH = Path(__file__).resolve().parent.parent / "elements"


class RuntimeUnavailableError(RuntimeError):
    """The runtime that the definition asks for is not on this machine."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The pyservicemaker module in use, and the factories that are stand-ins on this machine.

    ``gpu_decoding``: nvurisrcbin, a stand-in, decodes with NVIDIA's elements to frames in GPU memory.
    """

    api: ModuleType
    portable: bool
    stand_ins: frozenset[str]
    gpu_decoding: bool = False

    def describe(self) -> str:
        """One line for the log and `gstorch doctor`."""
        if not self.portable and not self.stand_ins:
            return "DeepStream runtime: NVIDIA's pyservicemaker and elements"
        kind, api = ("portable", "portable") if self.portable else ("mixed", "NVIDIA's")
        if self.gpu_decoding:
            kind += " (GPU decode, no SDK: NVIDIA's nvv4l2decoder and, in nvurisrcbin, nvvideoconvert)"
        return f"{kind} runtime: {api} pyservicemaker; stand-ins: {', '.join(sorted(self.stand_ins))}"


def deepstream_available() -> bool:
    """Whether NVIDIA's pyservicemaker can be imported."""
    loaded = sys.modules.get(API)
    if loaded is not None:
        return loaded.__name__ == API
    return importlib.util.find_spec(API) is not None


def load_runtime(prefer: str = "auto") -> Runtime:
    """Initialise GStreamer, choose the pyservicemaker, register pyinfer and the stand-ins.

    Args:
        prefer: ``auto`` (NVIDIA's where it can be imported), ``deepstream`` or ``portable``.

    Raises:
        RuntimeUnavailableError: if ``deepstream`` is asked for and not installed.
    """
    deepstream = prefer != "portable" and deepstream_available()
    if prefer == "deepstream" and not deepstream:
        raise RuntimeUnavailableError(
            "runtime.prefer is 'deepstream', but NVIDIA's pyservicemaker cannot be imported by "
            f"{sys.executable}: install it from the DeepStream SDK, or use 'auto' or 'portable'"
        )
    stand_ins = register_elements()
    if deepstream:
        api = importlib.import_module(API)
    else:
        cv2.setNumThreads(1)  # frames are worked on in parallel, each on one core
        api = importlib.import_module(PORTABLE_API)
        sys.modules[API] = api
    return Runtime(api, not deepstream, stand_ins, _decodes_on_gpu(stand_ins))


def register_elements() -> frozenset[str]:
    """Initialise GStreamer, register pyinfer and the stand-ins; returns which factories are stand-ins.

    A second call registers nothing more.
    """
    hide_loader_stubs()
    Gst.init(None)
    # element classes can only be made once GStreamer is initialised
    from elements.portable.register import register_stand_ins
    from elements.pyinfer import register as register_pyinfer

    stand_ins = register_stand_ins()
    register_pyinfer()
    return frozenset(stand_ins)


def _decodes_on_gpu(stand_ins: frozenset[str]) -> bool:
    from elements.portable import nvidia

    return "nvurisrcbin" in stand_ins and nvidia.decodes_on_gpu()


def hide_loader_stubs() -> None:
    """Take our own loader stubs out of ``GST_PLUGIN_PATH``: in this process the elements are registered directly.

    Must run before ``Gst.init``. Without it a shell that sourced ``elements/env.sh`` would load each element twice.
    """
    paths = os.environ.get("GST_PLUGIN_PATH", "").split(":")
    kept = [p for p in paths if p and not Path(p).resolve().is_relative_to(LOADER_PATH)]
    if kept != paths:
        os.environ["GST_PLUGIN_PATH"] = ":".join(kept)
        os.environ.pop("GST_REGISTRY", None)

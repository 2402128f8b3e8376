"""Which pyservicemaker and which elements this machine has; registers the stand-ins for those it lacks."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import cv2

from elements.api import API, PORTABLE_API, pyservicemaker
from elements.base import ElementError, Gst
from elements.messages import adaptors
from pipelines.own_elements import hide_python_elements

log = logging.getLogger("gstorch.runtime")

_USED = ("Pipeline", "Probe", "Buffer", "BatchMetadataOperator")  # of pyservicemaker


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
        RuntimeUnavailableError: if ``deepstream`` is asked for and not installed, or what is there cannot be used.
    """
    deepstream = prefer != "portable" and deepstream_available()
    if prefer == "deepstream" and not deepstream:
        raise RuntimeUnavailableError(
            "runtime.prefer is 'deepstream', but NVIDIA's pyservicemaker cannot be imported by "
            f"{sys.executable}: install it from the DeepStream SDK, or use 'auto' or 'portable'"
        )
    stand_ins = register_elements()
    if deepstream:
        api = _nvidias()
    else:
        cv2.setNumThreads(1)  # frames are worked on in parallel, each on one core
        api = importlib.import_module(PORTABLE_API)
        sys.modules[API] = api
    return Runtime(api, not deepstream, stand_ins, _decodes_on_gpu(stand_ins))


def _nvidias() -> ModuleType:
    try:
        api: ModuleType = pyservicemaker()
    except ElementError as error:
        raise RuntimeUnavailableError(str(error)) from error
    missing = [name for name in _USED if not hasattr(api, name)]
    if missing:
        raise RuntimeUnavailableError(
            f"the module '{API}' in {api.__file__} is not NVIDIA's, it has no {missing[0]}: take it from Python's "
            "path, or set runtime.prefer to 'portable'"
        )
    return api


def register_elements() -> frozenset[str]:
    """Initialise GStreamer, register our own elements and the stand-ins; returns which factories are stand-ins.

    A second call registers nothing more.
    """
    hide_python_elements()
    Gst.init(None)
    # element classes can only be made once GStreamer is initialised
    from elements.filtering.pymetafilter import register as register_pymetafilter
    from elements.portable.register import register_stand_ins
    from elements.prompting.pyprompt import register as register_pyprompt
    from elements.pyinfer import register as register_pyinfer

    stand_ins = register_stand_ins()
    adaptors.provide(_open_broker)
    register_pyinfer()
    register_pymetafilter()
    register_pyprompt()
    return frozenset(stand_ins)


def _open_broker(*where: Any) -> adaptors.Adaptor:
    from pipelines.delivery.direct import open_direct  # with its libraries only where it is needed

    return open_direct(*where)


def _decodes_on_gpu(stand_ins: frozenset[str]) -> bool:
    from elements.portable import nvidia

    return "nvurisrcbin" in stand_ins and nvidia.decodes_on_gpu()

"""Registers the stand-ins that this machine needs.

Batches of our nvstreammux and of NVIDIA's are different things under the same caps. So either NVIDIA's stream mux is
installed, and only what is missing gets a stand-in; or it is not, and then every element gets one, except for what
`elements.portable.nvidia` can use.
"""

from __future__ import annotations

import importlib

from elements.base import ElementError, Gst
from elements.portable import nvidia

_MODULES = {  # factory -> module of this package that offers it in FACTORIES
    "nvurisrcbin": "nvurisrcbin",
    "nvv4l2decoder": "nvv4l2decoder",
    "nvvideoconvert": "nvvideoconvert",
    "nvstreammux": "nvstreammux",
    "nvstreamdemux": "nvstreamdemux",
    "nvtracker": "nvtracker",
    "nvdsanalytics": "nvdsanalytics",
    "nvmultistreamtiler": "nvmultistreamtiler",
    "nvdsosd": "nvdsosd",
    "nvosdbin": "nvdsosd",
    "nvv4l2h264enc": "encoders",
    "nvv4l2h265enc": "encoders",
    "nvmsgconv": "nvmsgconv",
    "nvmsgbroker": "nvmsgbroker",
    "nveglglessink": "nveglglessink",
}


def register_stand_ins() -> list[str]:
    """Register a stand-in for each factory that needs one in this process; a second call adds nothing.

    Only the modules that are needed are imported. Ranks are NONE: nothing is autoplugged that nobody named.

    Returns:
        The factories that are stand-ins in this process.

    Raises:
        ElementError: if GStreamer refuses one.
        ImportError: if a stand-in's module cannot be imported.
    """
    if not _is_real("nvstreammux"):
        nvidia.keep()
    real = {factory for factory in _MODULES if _is_real(factory)}
    if "nvstreammux" not in real:
        real &= {nvidia.DECODER} if nvidia.decodes_on_gpu() else set()
    stand_ins = [factory for factory in _MODULES if factory not in real]
    for factory in stand_ins:
        if Gst.ElementFactory.find(factory) is None or _is_real(factory):
            element = importlib.import_module(f"elements.portable.{_MODULES[factory]}").FACTORIES[factory]
            if not Gst.Element.register(None, factory, Gst.Rank.NONE, element):
                raise ElementError(f"GStreamer did not register the stand-in for {factory} ({element.__name__})")
    return stand_ins


def _is_real(factory: str) -> bool:
    found = Gst.ElementFactory.find(factory)
    return found is not None and not nvidia.is_ours(found)

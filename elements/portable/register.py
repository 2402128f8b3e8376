"""Registers the stand-ins that this machine needs."""

from __future__ import annotations

import importlib

from elements.base import ElementError, Gst

_MODULES = {  # factory -> module of this package that offers it in FACTORIES
    "nvurisrcbin": "nvurisrcbin",
    "nvv4l2decoder": "nvv4l2decoder",
    "nvvideoconvert": "nvvideoconvert",
    "nvstreammux": "nvstreammux",
    "nvstreamdemux": "nvstreamdemux",
    "nvtracker": "nvtracker",
    "nvmultistreamtiler": "nvmultistreamtiler",
    "nvdsosd": "nvdsosd",
    "nvosdbin": "nvdsosd",
    "nvv4l2h264enc": "encoders",
    "nvv4l2h265enc": "encoders",
    "nveglglessink": "nveglglessink",
}
_LOADER = "python"  # name of the plugin that holds the elements of GStreamer's Python loader, which are stand-ins too


def register_stand_ins() -> list[str]:
    """Register a stand-in for each factory that the GStreamer registry lacks; a second call adds nothing.

    Only the modules that are needed are imported. Ranks are NONE: nothing is autoplugged that nobody named.

    Returns:
        The factories that are stand-ins in this process.

    Raises:
        ElementError: if GStreamer refuses one.
        ImportError: if a stand-in's module cannot be imported.
    """
    for factory, module in _MODULES.items():
        if Gst.ElementFactory.find(factory) is None:
            element = importlib.import_module(f"elements.portable.{module}").FACTORIES[factory]
            if not Gst.Element.register(None, factory, Gst.Rank.NONE, element):
                raise ElementError(f"GStreamer did not register the stand-in for {factory} ({element.__name__})")
    return [factory for factory in _MODULES if _is_stand_in(factory)]


def _is_stand_in(factory: str) -> bool:
    """Elements registered in process belong to no plugin."""
    return Gst.ElementFactory.find(factory).get_plugin_name() in (None, _LOADER)

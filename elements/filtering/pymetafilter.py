"""pymetafilter: keeps, drops, renames and merges the objects of a batch, in place, behind any detector."""

from __future__ import annotations

import logging
from typing import Any

from elements.api import pyservicemaker
from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    Gst,
    GstBase,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    sink_and_src,
)
from elements.filtering.batch import BatchFilter
from elements.filtering.options import PROPERTIES, rules_of
from elements.frames import mux_pads

log = logging.getLogger("gstorch.pymetafilter")

FACTORY = "pymetafilter"


class PyMetaFilter(PropertyTable, GstBase.BaseTransform):
    """Metadata in, metadata out; pixels are not looked at."""

    __gtype_name__ = "PyMetaFilter"
    __gstmetadata__ = ("Metadata filter", "Filter/Video", "Keeps, drops, renames and merges objects of a batch", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ NV12, RGB, RGBA, I420 }}")
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._filter: BatchFilter | None = None

    @guarded(False)
    def do_start(self) -> bool:
        self.values.update({"objects-seen": 0, "objects-removed": 0})
        self._api = pyservicemaker()
        try:
            self._filter = BatchFilter(rules_of(self.values), name=self.get_name())
        except ValueError as error:
            raise ElementError(str(error)) from None
        return True

    def property_changed(self, name: str, value: Any) -> None:
        if self._filter is None:
            return
        try:
            self._filter.change(rules_of(self.values))
        except ValueError as error:
            log.error("%s: %s: the rules stay as they were", self.get_name(), error)

    @guarded(False)
    def do_stop(self) -> bool:
        if self._filter is not None:
            self._filter.close()
        self._filter = None
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        assert self._filter is not None
        batch = self._api.Buffer(buffer).batch_meta
        if not batch.n_frames:
            raise ElementError("the buffer carries no batch metadata; put an nvstreammux before this element")
        if self._filter.padding is None:
            self._filter.padding = mux_pads(self)
        self._filter.apply(batch)
        self.values["objects-seen"], self.values["objects-removed"] = self._filter.seen, self._filter.removed
        return Gst.FlowReturn.OK


def register() -> None:
    """Make the factory ``pymetafilter`` known in this process. Harmless if it is known already."""
    if Gst.ElementFactory.find(FACTORY) is None:
        Gst.Element.register(None, FACTORY, Gst.Rank.NONE, PyMetaFilter)

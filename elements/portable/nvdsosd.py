"""Stand-ins for DeepStream's ``nvdsosd`` and ``nvosdbin``: draw the metadata on the pictures."""

from __future__ import annotations

import re
import time
from typing import Any

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    GstBase,
    Property,
    PropertyTable,
    enum_type,
    gproperties,
    guarded,
    keep_floating,
    sink_and_src,
)
from elements.portable import osd
from elements.portable.carrier import writable_batch
from elements.portable.overlay import Clock, Overlay

_CLOCK_FORMAT = "%Y-%m-%d %H:%M:%S"


class _Osd(PropertyTable, GstBase.BaseTransform):
    """Paints each frame's objects and display metas on that frame's own picture.

    NVIDIA's element paints the metadata of the whole batch on the first picture, and so needs a demuxer or a tiler
    before it; here a batch of several frames comes out right, too.
    """

    PROPERTIES = (
        Property(
            "process-mode",
            enum_type("GstorchNvDsOsdMode", {0: "MODE_CPU", 1: "MODE_GPU"}),
            1,
            "Where to draw; always on the CPU here",
            effect=False,
        ),
        Property("display-text", bool, True, "Draw texts"),
        Property("display-bbox", bool, True, "Draw boxes"),
        Property("display-mask", bool, True, "Draw masks; off until it is set"),
        Property("display-clock", bool, False, "Draw the time of day"),
        Property("clock-font", str, None, "Font of the clock", effect=False),
        Property("clock-font-size", "uint", 12, "Font size of the clock in points", 0, 60),
        Property("x-clock-offset", "uint", 0, "Left edge of the clock"),
        Property("y-clock-offset", "uint", 0, "Top edge of the clock"),
        Property("clock-color", "uint", 0xFF0000FF, "Colour of the clock, 0xRRGGBBAA"),
        Property("gpu-id", "uint", 0, "GPU", effect=False),
        Property("blur-on-gie-class-ids", str, "", "Objects to blur: 'component,class;component,class'"),
        Property("blur-bbox", "uint", 0, "Blur boxes", 0, 2, effect=False),
    )

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.values["display-mask"] = False  # NVIDIA's too: True by its specification, False as made
        self.set_in_place(True)
        self._overlay: Overlay | None = None  # None: to be made from the properties

    @guarded(False)
    def do_start(self) -> bool:
        self.warn_of_ignored_properties()
        self._overlay = self._read_properties()
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        overlay = self._overlay = self._overlay or self._read_properties()
        clock = self._clock()
        batch = writable_batch(buffer)
        for frame in batch.frames:
            if clock or not overlay.is_empty(frame):
                overlay.draw(batch.surfaces[frame.batch_id].rgb(write=True), frame, clock)
        return Gst.FlowReturn.OK

    def property_changed(self, name: str, value: Any) -> None:
        self._overlay = None

    def _read_properties(self) -> Overlay:
        values = self.values
        return Overlay(
            text=values["display-text"],
            boxes=values["display-bbox"],
            masks=values["display-mask"],
            blurred=_blurred_classes(values["blur-on-gie-class-ids"]),
        )

    def _clock(self) -> Clock | None:
        values = self.values
        if not values["display-clock"]:
            return None
        red, green, blue, alpha = (part / 255 for part in values["clock-color"].to_bytes(4, "big"))
        place = (values["x-clock-offset"], values["y-clock-offset"])
        text = time.strftime(_CLOCK_FORMAT)
        return Clock(text, place, values["clock-font-size"], osd.Color(red, green, blue, alpha))


class NvDsOsd(_Osd):
    """``nvdsosd``: takes what NVIDIA's takes, NV12 and RGBA."""

    __gtype_name__ = "NvDsOsd"
    __gstmetadata__ = ("NvDsOsd (portable)", "Filter/Video", "Draws boxes, texts and shapes on frames", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ NV12, RGBA }}")
    __gproperties__ = gproperties(_Osd.PROPERTIES)


class NvOsdBin(_Osd):
    """``nvosdbin``: NVIDIA's is a converter before an nvdsosd; here drawing needs none, so any format passes."""

    __gtype_name__ = "NvOsdBin"
    __gstmetadata__ = ("NvOsdBin (portable)", "Filter/Video", "Draws boxes, texts and shapes on frames", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM})")
    __gproperties__ = gproperties(_Osd.PROPERTIES)


def _blurred_classes(text: str | None) -> frozenset[tuple[int, int]]:
    pairs = [part for part in re.split(r"\s*;\s*", (text or "").strip()) if part]
    matches = [re.fullmatch(r"(\d+)\s*,\s*(\d+)", pair) for pair in pairs]
    if not all(matches):
        raise ElementError(f'blur-on-gie-class-ids="{text}": pairs "component,class" are needed, as in "1,0;1,2"')
    return frozenset((int(match[1]), int(match[2])) for match in matches if match)


FACTORIES: dict[str, type[Gst.Element]] = {"nvdsosd": NvDsOsd, "nvosdbin": NvOsdBin}

GObject.type_register(NvDsOsd)
GObject.type_register(NvOsdBin)

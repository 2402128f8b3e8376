"""Frames in system memory under the caps feature ``memory:NVMM``: what stand-ins hand each other."""

from __future__ import annotations

from elements.base import AUTHOR, NVMM, GObject, Gst, GstBase, caps, keep_floating, sink_and_src

_SYSTEM = "memory:SystemMemory"


def with_feature(source: Gst.Caps, feature: str) -> Gst.Caps:
    """A copy of ``source`` whose structures all carry ``feature``."""
    result = Gst.Caps.new_empty()
    for index in range(source.get_size()):
        result.append_structure_full(source[index].copy(), Gst.CapsFeatures.from_string(feature))
    return result


class Relabel(GstBase.BaseTransform):
    """Passes buffers through untouched; the caps say system memory on one side and NVMM on the other.

    Only caps negotiation runs in Python: a passthrough transform without ``transform_ip`` costs nothing per buffer.
    """

    __gtype_name__ = "GstorchRelabel"
    __gstmetadata__ = ("Relabel", "Filter/Video", "Declares frames in system memory to be NVMM", AUTHOR)
    __gsttemplates__ = sink_and_src("video/x-raw", f"video/x-raw({NVMM})")

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.set_passthrough(True)

    def do_transform_caps(self, direction: Gst.PadDirection, source: Gst.Caps, allowed: Gst.Caps | None) -> Gst.Caps:
        feature = NVMM if direction == Gst.PadDirection.SINK else _SYSTEM
        result = caps(f"video/x-raw({feature})") if source.is_any() else with_feature(source, feature)
        return allowed.intersect_full(result, Gst.CapsIntersectMode.FIRST) if allowed else result


GObject.type_register(Relabel)

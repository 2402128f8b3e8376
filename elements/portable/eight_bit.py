"""Frames of 10 bit in GPU memory, under the name of 8 bit."""

from __future__ import annotations

from elements.base import AUTHOR, NVMM, GObject, Gst, GstBase, caps, keep_floating, sink_and_src

EIGHT, TEN = "NV12", "P010_10LE"


class EightBit(GstBase.BaseTransform):
    """Passes buffers through untouched; behind it P010 is called NV12.

    Its samples lie in the upper bits of two bytes each, so their upper bytes are NV12, which `elements.portable.nvmm`
    reads where they lie: value >> 2, as the CPU path has it. NVIDIA's converter would make other values.
    """

    __gtype_name__ = "GstorchEightBit"
    __gstmetadata__ = ("Eight bit", "Filter/Video", "Declares P010 in GPU memory to be NV12", AUTHOR)
    __gsttemplates__ = sink_and_src(
        f"video/x-raw({NVMM}), format={{ {EIGHT}, {TEN} }}", f"video/x-raw({NVMM}), format={EIGHT}"
    )

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.set_passthrough(True)

    def do_transform_caps(self, direction: Gst.PadDirection, source: Gst.Caps, allowed: Gst.Caps | None) -> Gst.Caps:
        formats = [EIGHT] if direction == Gst.PadDirection.SINK else [EIGHT, TEN]
        result = Gst.Caps.new_empty()
        for index in range(source.get_size()):
            for name in formats:
                structure = source[index].copy()
                structure.set_value("format", name)
                result.append_structure_full(structure, Gst.CapsFeatures.from_string(NVMM))
        if source.is_any():
            result = caps(f"video/x-raw({NVMM}), format={{ {', '.join(formats)} }}")
        return allowed.intersect_full(result, Gst.CapsIntersectMode.FIRST) if allowed else result


GObject.type_register(EightBit)

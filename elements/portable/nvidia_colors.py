"""Frames through NVIDIA's nvvideoconvert with their samples as they are.

It computes new samples when the colour space of its output is another than that of its input, also where nothing but
the mark differs; there are spaces that it does not know; and NV12 to I420 is never a mere copy. What its input is in,
it takes from a number in the frame: the decoder writes BT.601 where the stream says nothing, whatever the size. What
its output is in, it takes from the caps. So for it, and for it only, every frame is NV12 in BT.709.
"""

from __future__ import annotations

from elements.base import NVMM, Gst
from elements.portable.nvmm import mark_as_bt709

_INSIDE = "bt709"
_FIELD = "colorimetry"
_ALL_FRAMES = 100  # more than a decoder has


class UnchangedColors:
    """Makes a converter believe that its frames are in BT.709, and tells what follows it what the stream says."""

    def __init__(self, converter: Gst.Element, following: Gst.Element) -> None:
        """``following`` comes next, on the same thread. Both have a pad "sink"."""
        self._colors: str | None = None
        self._entering = False
        events = Gst.PadProbeType.EVENT_DOWNSTREAM
        converter.get_static_pad("sink").add_probe(events, self._enter)
        following.get_static_pad("sink").add_probe(events, self._leave)

    def _enter(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        event = info.get_event()
        if event.type != Gst.EventType.CAPS or self._entering:
            return Gst.PadProbeReturn.OK
        caps = event.parse_caps()
        if caps.get_features(0).contains(NVMM):
            pad.add_probe(Gst.PadProbeType.BUFFER, _Marker().look)
        self._colors, self._entering = caps[0].get_string(_FIELD), True
        try:
            return _with_colors(pad, caps, _INSIDE)
        finally:
            self._entering = False

    def _leave(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        event = info.get_event()
        if event.type != Gst.EventType.CAPS:
            return Gst.PadProbeReturn.OK
        return _with_colors(pad, event.parse_caps(), self._colors)


def _with_colors(pad: Gst.Pad, caps: Gst.Caps, colors: str | None) -> Gst.PadProbeReturn:
    """Let the pad have the caps with these colours, or with none; the verdict on those on their way to it."""
    if caps[0].get_string(_FIELD) == colors:
        return Gst.PadProbeReturn.OK
    structure = caps[0].copy()
    structure.remove_field(_FIELD)
    if colors:
        structure.set_value(_FIELD, colors)
    changed = Gst.Caps.new_empty()
    changed.append_structure_full(structure, caps.get_features(0).copy())
    pad.send_event(Gst.Event.new_caps(changed))  # if it is refused, the next frame finds a pad without caps and fails
    return Gst.PadProbeReturn.DROP


class _Marker:
    """Marks a decoder's frames. It uses few, again and again, and leaves the mark, so soon there is none without."""

    def __init__(self) -> None:
        self._marked_in_a_row = 0

    def look(self, _pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        self._marked_in_a_row = 0 if mark_as_bt709(info.get_buffer()) else self._marked_in_a_row + 1
        return Gst.PadProbeReturn.REMOVE if self._marked_in_a_row > _ALL_FRAMES else Gst.PadProbeReturn.OK

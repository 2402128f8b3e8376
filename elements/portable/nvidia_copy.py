"""NVIDIA's nvvideoconvert as a plain copy: it hands out the samples that come in, whatever they mean.

It computes new samples when the colour space of its output is another than that of its input, also where nothing but
the mark differs; there are spaces that it does not know; NV12 to I420 is never a mere copy, nor is a turned picture.
What its input is in, it takes from a number in the frame: the decoder writes BT.601 where the stream says nothing,
whatever the size. What its output is in, it takes from the caps. So for it, and for it only, every frame is NV12 in
BT.709 and upright. The caps behind it say what the stream says, and `elements.portable.nvmm` reads the frame as it
stands upright.
"""

from __future__ import annotations

from collections.abc import Callable

from elements.base import NVMM, Gst
from elements.portable.nvmm import mark_as_bt709
from elements.portable.orientation import ORIENTATIONS
from elements.portable.video_buffer import ORIENTATION_FIELD

_INSIDE = "bt709"
_COLORS = "colorimetry"
_ALL_FRAMES = 100  # more than a decoder has


class ExactCopy:
    """Keeps what a stream says of its colours and orientation from a converter, and tells it to what follows."""

    def __init__(self, converter: Gst.Element, following: Gst.Element) -> None:
        """``following`` comes next, on the same thread. Both have a pad "sink"."""
        self._colors: str | None = None
        self._orientation = "rotate-0"
        self._before, self._behind = _CapsRewriter(self._hide), _CapsRewriter(self._tell)
        events = Gst.PadProbeType.EVENT_DOWNSTREAM
        converter.get_static_pad("sink").add_probe(events, self._enter)
        following.get_static_pad("sink").add_probe(events, self._leave)

    def _enter(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        event = info.get_event()
        verdict = self._before.look(pad, event)
        if verdict == Gst.PadProbeReturn.DROP and event.parse_caps().get_features(0).contains(NVMM):
            pad.add_probe(Gst.PadProbeType.BUFFER, _Marker().look)
        return verdict

    def _leave(self, pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        event = info.get_event()
        if event.type == Gst.EventType.TAG:
            found, orientation = event.parse_tag().get_string(Gst.TAG_IMAGE_ORIENTATION)
            if found and orientation in ORIENTATIONS and orientation != self._orientation:
                self._orientation = orientation
                self._behind.again(pad)
        return self._behind.look(pad, event)

    def _hide(self, stream: Gst.Structure) -> None:
        self._colors = stream.get_string(_COLORS)
        stream.set_value(_COLORS, _INSIDE)

    def _tell(self, stream: Gst.Structure) -> None:
        if self._colors is None:
            stream.remove_field(_COLORS)
        else:
            stream.set_value(_COLORS, self._colors)
        orientation = ORIENTATIONS[self._orientation]
        width, height = orientation.size(stream.get_int("width")[1], stream.get_int("height")[1])
        stream.set_value("width", width)
        stream.set_value("height", height)
        stream.set_value(ORIENTATION_FIELD, self._orientation)


class _CapsRewriter:
    """Lets a pad have other caps than those on their way to it. If it refuses them, the next frame fails.

    It keeps no pad: a probe that does keeps its pipeline for ever.
    """

    def __init__(self, rewrite: Callable[[Gst.Structure], None]) -> None:
        self._rewrite = rewrite
        self._original: Gst.Caps | None = None
        self._sending = False

    def look(self, pad: Gst.Pad, event: Gst.Event) -> Gst.PadProbeReturn:
        """A probe's verdict on an event; caps are dropped, and others sent instead."""
        if event.type != Gst.EventType.CAPS or self._sending:
            return Gst.PadProbeReturn.OK
        self._original = event.parse_caps()
        self.again(pad)
        return Gst.PadProbeReturn.DROP

    def again(self, pad: Gst.Pad) -> None:
        """Send the caps that came last once more, rewritten afresh; nothing if none came."""
        if self._original is None:
            return
        structure = self._original[0].copy()
        self._rewrite(structure)
        rewritten = Gst.Caps.new_empty()
        rewritten.append_structure_full(structure, self._original.get_features(0).copy())
        self._sending = True
        try:
            pad.send_event(Gst.Event.new_caps(rewritten))
        finally:
            self._sending = False


class _Marker:
    """Marks a decoder's frames. It uses few, again and again, and leaves the mark, so soon there is none without."""

    def __init__(self) -> None:
        self._marked_in_a_row = 0

    def look(self, _pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        self._marked_in_a_row = 0 if mark_as_bt709(info.get_buffer()) else self._marked_in_a_row + 1
        return Gst.PadProbeReturn.REMOVE if self._marked_in_a_row > _ALL_FRAMES else Gst.PadProbeReturn.OK

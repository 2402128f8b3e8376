"""From decoders to the stream mux where NVIDIA's decoder is among them."""

from __future__ import annotations

from elements.base import AUTHOR, NVMM, GObject, Gst, caps, keep_floating
from elements.portable.decoding import chain, make
from elements.portable.eight_bit import EIGHT, TEN, EightBit
from elements.portable.nvidia_copy import ExactCopy
from elements.portable.relabel import Relabel

_HOST = caps("video/x-raw")
_COPIED = {name: caps(f"video/x-raw({NVMM}), format={name}") for name in (EIGHT, TEN)}


class DecodedFrames(Gst.Bin):
    """Hands on frames of any decoder as the stream mux takes them. Pads: "sink" and "src".

    Those in GPU memory are copied by NVIDIA's converter. Those of software decoders stay in host memory as on the CPU:
    upright, and labelled NVMM. An upload by the converter would change samples of some of them.
    """

    __gtype_name__ = "GstorchDecodedFrames"
    __gstmetadata__ = ("Decoded frames", "Filter/Video", "Frames in GPU or host memory for the stream mux", AUTHOR)

    def __init__(self, converter: Gst.Element) -> None:
        super().__init__()
        keep_floating(self)
        copied, eight_bit = make("capsfilter", caps=_COPIED[EIGHT]), EightBit()
        ExactCopy(converter, copied)
        self._routes = {
            True: (converter, copied, eight_bit),
            False: (make("videoflip", video_direction="auto", qos=False), Relabel()),
        }
        for route in self._routes.values():
            chain(self, *route)
        sink = Gst.GhostPad.new("sink", converter.get_static_pad("sink"))
        sink.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, _choose)
        sink.set_query_function_full(_answer)
        self.add_pad(sink)
        self.add_pad(Gst.GhostPad.new("src", eight_bit.get_static_pad("src")))

    @property
    def converter_input(self) -> Gst.Pad:
        """The converter's sink pad."""
        return self._routes[True][0].get_static_pad("sink")

    def route(self, on_gpu: bool, format: str) -> None:
        """Send what comes next, of that format, through the elements for GPU or for host memory."""
        first, *_, last = self._routes[on_gpu]
        if on_gpu:
            copied, wanted = self._routes[True][1], _COPIED[TEN if format == TEN else EIGHT]
            if not copied.get_property("caps").is_equal(wanted):
                copied.set_property("caps", wanted)
        if self.get_static_pad("sink").get_target().get_parent_element() is not first:
            self.get_static_pad("sink").set_target(first.get_static_pad("sink"))
            self.get_static_pad("src").set_target(last.get_static_pad("src"))


def _answer(pad: Gst.Pad, parent: DecodedFrames, query: Gst.Query) -> bool:
    """Frames of both kinds are welcome, whichever way is open now."""
    if query.type == Gst.QueryType.CAPS:
        wanted = query.parse_caps()
        both = Gst.Caps.new_empty()
        for some in (parent.converter_input.query_caps(wanted), wanted.intersect(_HOST) if wanted else _HOST):
            for index in range(some.get_size()):
                both.append_structure_full(some[index].copy(), some.get_features(index).copy())
        query.set_caps_result(both)
        return True
    if query.type == Gst.QueryType.ACCEPT_CAPS:
        offered = query.parse_accept_caps()
        query.set_accept_caps_result(offered.can_intersect(_HOST) or parent.converter_input.query_accept_caps(offered))
        return True
    return bool(pad.query_default(parent, query))


def _choose(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    event = info.get_event()
    if event.type == Gst.EventType.CAPS:
        told = event.parse_caps()
        pad.get_parent_element().route(told.get_features(0).contains(NVMM), told[0].get_string("format"))
    return Gst.PadProbeReturn.OK


GObject.type_register(DecodedFrames)

"""Stand-in for nvv4l2decoder: software decoders behind NVIDIA's name, chosen by the caps."""

from __future__ import annotations

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    Property,
    PropertyTable,
    enum_type,
    gproperties,
    guarded,
    keep_floating,
    post_error,
    sink_and_src,
)
from elements.media_problems import decoder_missing
from elements.portable.decoding import chain, frames_to_nvmm, keep_each, make, set_up_decoder

_MPEG4 = ("avdec_mpeg4",)

# Caps name -> decoders, best first. Those that are not installed are passed over.
_DECODERS = {
    "video/x-h264": ("avdec_h264", "openh264dec"),
    "video/x-h265": ("avdec_h265", "libde265dec"),
    "video/x-vp8": ("vp8dec", "avdec_vp8"),
    "video/x-vp9": ("vp9dec", "avdec_vp9"),
    "video/x-av1": ("dav1ddec", "av1dec", "avdec_av1"),
    "video/x-divx": _MPEG4,
    "image/jpeg": ("jpegdec", "avdec_mjpeg"),
}
_SINK_CAPS = (
    "image/jpeg; video/x-h264, stream-format=byte-stream, alignment=au; "
    "video/x-h265, stream-format=byte-stream, alignment=au; "
    "video/mpeg, mpegversion={1, 2, 4}, systemstream=false, parsed=true; video/x-divx, divxversion={4, 5}; "
    "video/x-av1, stream-format=obu-stream, alignment=frame; video/x-vp8; video/x-vp9"
)


def decoders_for(stream: Gst.Structure) -> tuple[str, ...]:
    """Names of the software decoders for a compressed stream, best first."""
    if stream.get_name() == "video/mpeg":
        return _MPEG4 if stream.get_int("mpegversion")[1] == 4 else ("avdec_mpeg2video", "mpeg2dec")
    return _DECODERS.get(stream.get_name(), ())


class NvV4l2Decoder(PropertyTable, Gst.Bin):
    """``identity ! <decoder> ! videoconvert ! capsfilter ! relabel``; the decoder is added when caps arrive."""

    __gtype_name__ = "NvV4l2Decoder"
    __gstmetadata__ = (
        "nvv4l2decoder (CPU)",
        "Codec/Decoder/Video/Hardware",
        "Decodes video in software to NVMM frames",
        AUTHOR,
    )
    __gsttemplates__ = sink_and_src(_SINK_CAPS, f"video/x-raw({NVMM})")
    PROPERTIES = (
        Property("drop-frame-interval", "uint", 0, "Keep each Nth frame only; 0: all", 0, 30),
        Property(
            "skip-frames",
            enum_type("GstorchDecoderSkip", {0: "decode_all", 1: "decode_non_ref", 2: "decode_key"}),
            0,
            "Frames that the decoder skips",
        ),
        Property("qos", bool, True, "Drop late frames", effect=False),
        Property("max-errors", int, -1, "Errors in a row before giving up", effect=False),
        Property("discard-corrupted-frames", bool, False, "Drop damaged frames"),
        Property("gpu-id", "uint", 0, "GPU", effect=False),
        Property(
            "cudadec-memtype",
            enum_type("GstorchDecoderMemory", {0: "memtype_device", 1: "memtype_pinned", 2: "memtype_unified"}),
            0,
            "Memory of the frames",
            effect=False,
        ),
        Property("num-extra-surfaces", "uint", 0, "Extra surfaces", 0, 55, effect=False),
        Property("low-latency-mode", bool, False, "Low latency decoding", effect=False),
        Property("disable-dpb", bool, False, "No picture buffer", effect=False),
        *(
            Property(
                name,
                enum_type("GstorchDecoderIoMode", {0: "auto", 2: "mmap", 5: "dmabuf-import"}),
                0,
                "V4L2 buffers",
                effect=False,
            )
            for name in ("capture-io-mode", "output-io-mode")
        ),
        Property("extract-sei-type5-data", bool, False, "Read SEI user data", effect=False),
        Property("attach-sei-timestamps", bool, False, "Attach SEI times", effect=False),
        Property("sei-uuid", str, None, "UUID of the SEI user data", effect=False),
        Property("device", str, "", "Device file", effect=False, writable=False),
        Property("device-fd", int, -1, "Device", effect=False, writable=False),
        Property("device-name", str, "", "Device name", effect=False, writable=False),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self._decoder: Gst.Element | None = None
        self._entry = make("identity", silent=True)
        self._tail = frames_to_nvmm(for_source=False)
        self.add(self._entry)
        chain(self, *self._tail)
        sink, src = self._entry.get_static_pad("sink"), self._tail[-1].get_static_pad("src")
        self.add_pad(Gst.GhostPad.new_from_template("sink", sink, self.get_pad_template("sink")))
        self.add_pad(Gst.GhostPad.new_from_template("src", src, self.get_pad_template("src")))
        # A module-level function: a bound method on a child's pad would be a cycle that keeps the element alive.
        self._entry.get_static_pad("src").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, _choose_decoder)

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self.warn_of_ignored_properties()
        return Gst.Bin.do_change_state(self, transition)

    def use_decoder_for(self, stream: Gst.Structure) -> None:
        """Link in a decoder for the stream, unless it is there already.

        Raises:
            ElementError: if none is installed.
        """
        names = decoders_for(stream)
        if self._decoder is not None:
            if self._decoder.get_factory().get_name() in names:
                return
            self._decoder.set_state(Gst.State.NULL)
            self.remove(self._decoder)
        name = next((n for n in names if Gst.ElementFactory.find(n)), None)
        if name is None:
            raise ElementError(f"{stream.get_name()}: {decoder_missing([' or '.join(names) or stream.get_name()])}")
        self._decoder = decoder = make(name)
        set_up_decoder(decoder, threads=1, skip=int(self.values["skip-frames"]))
        if self.values["discard-corrupted-frames"] and decoder.find_property("output-corrupt"):
            decoder.set_property("output-corrupt", False)
        keep_each(decoder.get_static_pad("src"), self.values["drop-frame-interval"])
        self.add(decoder)
        decoder.link(self._tail[0])
        self._entry.link(decoder)
        decoder.sync_state_with_parent()


def _choose_decoder(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    event = info.get_event()
    if event.type != Gst.EventType.CAPS:
        return Gst.PadProbeReturn.OK
    decoder = pad.get_parent_element().get_parent()
    try:
        decoder.use_decoder_for(event.parse_caps()[0])
    except ElementError as error:
        post_error(decoder, str(error), domain=Gst.StreamError, code=Gst.StreamError.CODEC_NOT_FOUND)
    return Gst.PadProbeReturn.OK


GObject.type_register(NvV4l2Decoder)

FACTORIES: dict[str, type[Gst.Element]] = {"nvv4l2decoder": NvV4l2Decoder}

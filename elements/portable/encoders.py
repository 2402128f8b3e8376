"""Stand-ins for nvv4l2h264enc and nvv4l2h265enc: x264, openh264 or x265 behind NVIDIA's names and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    GstVideo,
    Property,
    PropertyTable,
    enum_type,
    gproperties,
    guarded,
    keep_floating,
    sink_and_src,
)
from elements.portable.decoding import chain, make
from elements.portable.download import Download
from elements.portable.encoder_properties import (
    COMMON_PROPERTIES,
    CONSTANT_QP,
    H264_PROFILES,
    H265_PROFILES,
    HIGH_QUALITY,
    LOSSLESS,
    UNSET_INTERVAL,
    VARIABLE_BITRATE,
)

# preset-id P1 (fastest) … P7 (slowest)
_PRESETS = {1: "veryfast", 2: "faster", 3: "fast", 4: "medium", 5: "slow", 6: "slower", 7: "veryslow"}
_SINK_CAPS = f"video/x-raw({NVMM}), format={{ I420, NV12 }}"

# Frames that x264 may look ahead with tuning-info-id=1. With its threads this stays under the second that a queue
# holds, so branches of a tee cannot wait for each other.
_LOOKAHEAD = 10


class _Encoder(PropertyTable):
    """``download ! capsfilter ! <encoder> ! capsfilter``: 8-bit 4:2:0 of even size in, byte-stream out.

    A mixin, not a Gst.Bin: while GStreamer makes an object of a second-level Python type, its class is still the first
    level's, without pad templates and properties.
    """

    MEDIA = ""
    PROFILES: Mapping[int, str] = MappingProxyType({})
    BACKENDS: Mapping[str, Callable[[_Encoder, Gst.Element], None]] = MappingProxyType({})

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        backend = next((name for name in self.BACKENDS if Gst.ElementFactory.find(name)), next(iter(self.BACKENDS)))
        self._encoder = make(backend)
        self._output = make("capsfilter")
        download = Download(even=True)
        chain(self, download, make("capsfilter", caps="video/x-raw, format=I420"), self._encoder, self._output)
        for name, pad in (("sink", download.get_static_pad("sink")), ("src", self._output.get_static_pad("src"))):
            template = self.get_pad_template(name)  # type: ignore[attr-defined]
            self.add_pad(Gst.GhostPad.new_from_template(name, pad, template))  # type: ignore[attr-defined]

    @guarded(Gst.StateChangeReturn.FAILURE)
    def change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        """Body of the classes' ``do_change_state``."""
        if transition == Gst.StateChange.READY_TO_PAUSED:
            self.warn_of_ignored_properties()
            self._configure()
        return Gst.Bin.do_change_state(self, transition)

    def property_changed(self, name: str, value: Any) -> None:
        if name == "bitrate":
            self.set_bitrate(value)
        elif name in ("force-idr", "force-intra") and value:
            event = GstVideo.video_event_new_upstream_force_key_unit(Gst.CLOCK_TIME_NONE, True, 0)
            self._encoder.get_static_pad("src").send_event(event)

    def set_bitrate(self, bits_per_second: int) -> None:
        """Tell the encoder, also while it runs. x264 and x265 count in kbit/s."""
        in_bits = self._encoder.get_factory().get_name() == "openh264enc"
        self._encoder.set_property("bitrate", bits_per_second if in_bits else max(1, bits_per_second // 1000))

    def _configure(self) -> None:
        output = f"{self.MEDIA}, stream-format=byte-stream, alignment=au"
        if "profile" in self.user_set:  # NVIDIA's default, Baseline, would only make the file bigger here
            number = int(self.values["profile"])
            if number not in self.PROFILES:
                raise ElementError(f"profile {number} is not 8-bit 4:2:0, which is all that this encoder makes")
            output += f", profile={self.PROFILES[number]}"
        self._output.set_property("caps", Gst.Caps.from_string(output))
        self.set_bitrate(self.values["bitrate"])
        self.BACKENDS[self._encoder.get_factory().get_name()](self, self._encoder)

    @property
    def key_interval(self) -> int | None:
        """Frames from one key frame to the next; None: the encoder decides."""
        for name, unset in (("iframeinterval", (0, UNSET_INTERVAL)), ("idrinterval", (0,))):
            if name in self.user_set and self.values[name] not in unset:
                return int(self.values[name])
        return None

    @property
    def quantizer(self) -> int | None:
        """The constant quantizer that is asked for, or None.

        Raises:
            ElementError: if ``constqp`` is not a number or ``I:P:B``.
        """
        if self.values["tuning-info-id"] == LOSSLESS or self.values["enable-lossless"]:
            return 0
        if self.values["control-rate"] != CONSTANT_QP:
            return None
        text = self.values["constqp"] or "23"
        try:
            return int(text.replace(",", ":").split(":")[0])
        except ValueError:
            raise ElementError(
                f"constqp='{text}' is not a quantizer; write for example 23 or 23:23:23 (I:P:B)"
            ) from None


def _set(encoder: Gst.Element, **properties: Any) -> None:
    for name, value in properties.items():
        Gst.util_set_object_arg(encoder, name.replace("_", "-"), str(value))


def _configure_x264(self: _Encoder, encoder: Gst.Element) -> None:
    values = self.values
    _set(encoder, speed_preset=_PRESETS[values["preset-id"]], aud=values["insert-aud"], bframes=values["num-B-Frames"])
    _set(encoder, cabac=not values["disable-cabac"], key_int_max=self.key_interval or 0)
    if values["tuning-info-id"] == HIGH_QUALITY:
        _set(encoder, tune="0", rc_lookahead=_LOOKAHEAD, sync_lookahead=0)
    else:
        _set(encoder, tune="zerolatency", rc_lookahead=0, sync_lookahead=0)
    if values["num-Ref-Frames"]:
        _set(encoder, ref=values["num-Ref-Frames"])
    if values["vbvbufsize"]:
        _set(encoder, vbv_buf_capacity=min(10000, max(1, values["vbvbufsize"] * 1000 // max(1, values["bitrate"]))))
    if self.quantizer is not None:
        encoder.set_property("pass", 4)  # "quant"
        _set(encoder, quantizer=self.quantizer)
    elif values["control-rate"] == VARIABLE_BITRATE:
        encoder.set_property("pass", 5)  # "qual": constant quality, the bitrate is its upper limit
        _set(encoder, quantizer=values["cq"] or 21)


def _configure_openh264(self: _Encoder, encoder: Gst.Element) -> None:
    _set(encoder, complexity="low" if self.values["preset-id"] < 4 else "high", gop_size=self.key_interval or 90)
    _set(encoder, rate_control="bitrate", enable_frame_skip=False)
    if self.quantizer is not None:
        _set(encoder, rate_control="off", qp_min=self.quantizer, qp_max=self.quantizer)


def _configure_x265(self: _Encoder, encoder: Gst.Element) -> None:
    values = self.values
    _set(encoder, speed_preset=_PRESETS[values["preset-id"]], key_int_max=self.key_interval or 0)
    _set(encoder, tune="4" if values["tuning-info-id"] != HIGH_QUALITY else "0", log_level="error")
    options = [f"bframes={values['num-B-Frames']}"]
    if values["tuning-info-id"] == HIGH_QUALITY:
        options.append(f"rc-lookahead={_LOOKAHEAD}")
    if self.quantizer is not None:
        _set(encoder, qp=self.quantizer)
    encoder.set_property("option-string", ":".join(options))


class NvV4l2H264Enc(_Encoder, Gst.Bin):
    """H.264 by x264, or openh264 where that is missing. ``bitrate`` may change while playing."""

    __gtype_name__ = "NvV4l2H264Enc"
    __gstmetadata__ = ("nvv4l2h264enc (CPU)", "Codec/Encoder/Video", "Encodes H.264 in software", AUTHOR)
    __gsttemplates__ = sink_and_src(_SINK_CAPS, "video/x-h264, stream-format=byte-stream, alignment={ au, nal }")
    MEDIA = "video/x-h264"
    PROFILES = H264_PROFILES
    BACKENDS = MappingProxyType({"x264enc": _configure_x264, "openh264enc": _configure_openh264})
    PROPERTIES = (
        *COMMON_PROPERTIES,
        Property(
            "profile",
            enum_type(
                "GstorchH264Profile",
                {
                    0: "Baseline",
                    1: "Constrained-Baseline",
                    2: "Main",
                    4: "High",
                    5: "High10",
                    6: "High422",
                    7: "High444",
                    8: "High10Intra",
                    9: "High422Intra",
                    17: "Constrained-High",
                },
            ),
            0,
            "H.264 profile; unless it is set the encoder decides",
        ),
        Property("disable-cabac", bool, False, "Use CAVLC"),
    )
    __gproperties__ = gproperties(PROPERTIES)
    do_change_state = _Encoder.change_state


class NvV4l2H265Enc(_Encoder, Gst.Bin):
    """H.265 by x265."""

    __gtype_name__ = "NvV4l2H265Enc"
    __gstmetadata__ = ("nvv4l2h265enc (CPU)", "Codec/Encoder/Video", "Encodes H.265 in software", AUTHOR)
    __gsttemplates__ = sink_and_src(_SINK_CAPS, "video/x-h265, stream-format=byte-stream, alignment={ au, nal }")
    MEDIA = "video/x-h265"
    PROFILES = H265_PROFILES
    BACKENDS = MappingProxyType({"x265enc": _configure_x265})
    PROPERTIES = (
        *COMMON_PROPERTIES,
        Property(
            "profile",
            enum_type("GstorchH265Profile", {0: "Main", 1: "Main10", 3: "FREXT"}),
            0,
            "H.265 profile; unless it is set the encoder decides",
        ),
        Property("bit-packetization", bool, False, "Packet by bits", effect=False),
    )
    __gproperties__ = gproperties(PROPERTIES)
    do_change_state = _Encoder.change_state


for _class in (NvV4l2H264Enc, NvV4l2H265Enc):
    GObject.type_register(_class)

FACTORIES: dict[str, type[Gst.Element]] = {"nvv4l2h264enc": NvV4l2H264Enc, "nvv4l2h265enc": NvV4l2H265Enc}

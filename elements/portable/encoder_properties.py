"""The property tables of nvv4l2h264enc and nvv4l2h265enc, as in DeepStream 9."""

from __future__ import annotations

from typing import Any

from elements.base import Property, enum_type

VARIABLE_BITRATE, CONSTANT_BITRATE, CONSTANT_QP = 0, 1, 2
HIGH_QUALITY, LOW_LATENCY, ULTRA_LOW_LATENCY, LOSSLESS = 1, 2, 3, 4
UNSET_INTERVAL = 4294967295

# The profiles that hold 8-bit 4:2:0, in GStreamer's names
H264_PROFILES = {0: "baseline", 1: "constrained-baseline", 2: "main", 4: "high", 17: "constrained-high"}
H265_PROFILES = {0: "main"}

_IO_MODE = enum_type("GstorchDecoderIoMode", {0: "auto", 2: "mmap", 5: "dmabuf-import"})


def _none(name: str, kind: Any, default: Any, blurb: str) -> Property:
    """A property without effect on a CPU."""
    return Property(name, kind, default, blurb, effect=False)


COMMON_PROPERTIES = (
    Property("bitrate", "uint", 4000000, "Bits per second; may change while playing"),
    Property(
        "control-rate",
        enum_type("GstorchControlRate", {0: "variable_bitrate", 1: "constant_bitrate", 2: "constantQP"}),
        CONSTANT_BITRATE,
        "Rate control",
    ),
    Property("iframeinterval", "uint", UNSET_INTERVAL, "Frames from one key frame to the next"),
    Property("idrinterval", "uint", 256, "The same, where iframeinterval is not set"),
    Property("insert-aud", bool, False, "Write access unit delimiters"),
    Property("preset-id", "uint", 1, "1 (fastest) to 7 (best)", 1, 7),
    Property(
        "tuning-info-id",
        enum_type(
            "GstorchTuning",
            {
                1: "HighQualityPreset",
                2: "LowLatencyPreset",
                3: "UltraLowLatencyPreset",
                4: "LosslessPreset",
            },
        ),
        LOW_LATENCY,
        "HighQualityPreset looks ahead some frames, the others give each frame at once",
    ),
    Property("num-B-Frames", "uint", 0, "B-frames between others", 0, 2),
    Property("num-Ref-Frames", "uint", 0, "Reference frames; 0: the encoder decides", 0, 8),
    Property("cq", "uint", 0, "Quality of variable_bitrate, lower is better; 0: the encoder decides", 0, 51),
    Property("constqp", str, None, "Quantizer of constantQP, as 23 or I:P:B"),
    Property("vbvbufsize", "uint", 0, "Rate control buffer, bits"),
    Property("enable-lossless", bool, False, "Lossless"),
    Property("force-idr", bool, False, "Setting it makes the next frame a key frame"),
    Property("force-intra", bool, False, "Setting it makes the next frame a key frame"),
    _none("maxbitrate", "uint", 0, "Upper limit of variable_bitrate"),
    _none("insert-sps-pps", bool, False, "Repeat headers (always done here)"),
    _none("insert-vui", bool, True, "Write VUI"),
    _none("aq", "uint", 0, "Spatial adaptive quantization"),
    _none("temporalaq", bool, False, "Temporal adaptive quantization"),
    _none("qp-range", str, None, "Quantizer limits"),
    _none("initqp", str, None, "First quantizer"),
    _none("vbvinit", "uint", 0, "First fill of the rate control buffer"),
    _none("intra-refresh", str, "1,30,1", "Intra refresh"),
    _none("copy-meta", bool, False, "Write metadata as SEI"),
    _none("sei-uuid", str, "NVDS_CUSTOMMETA", "UUID of that SEI"),
    _none("gpu-id", "uint", 0, "GPU"),
    _none(
        "cudaenc-memtype",
        enum_type("GstorchEncoderMemory", {0: "memtype_device", 1: "memtype_pinned", 2: "memtype_unified"}),
        0,
        "Memory of the encoder",
    ),
    _none("capture-io-mode", _IO_MODE, 0, "V4L2 buffers"),
    _none("output-io-mode", _IO_MODE, 0, "V4L2 buffers"),
    Property("device", str, "/dev/v4l2-nvenc", "Device file", effect=False, writable=False),
)

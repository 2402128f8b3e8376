"""The property table of nvurisrcbin, as in DeepStream 9."""

from __future__ import annotations

from typing import Any

from elements.base import Property, enum_type

RTP_DEFAULT = 7

# select-rtp-protocol -> GstRTSPLowerTrans flags; http and tls are carried over TCP
RTP_TRANSPORTS = {1: 0x1, 2: 0x2, 4: 0x4, 7: 0x7, 10: 0x10, 20: 0x24}

SOURCE_AUTO, SOURCE_URI, SOURCE_RTSP = 0, 1, 2

_enum = enum_type


def _none(
    name: str, kind: Any, default: Any, blurb: str, low: float | None = None, high: float | None = None
) -> Property:
    """A property without effect on a CPU."""
    return Property(name, kind, default, blurb, low, high, effect=False)


PROPERTIES = (
    Property("uri", str, None, "URI of a file or stream: file:///, http(s)://, rtsp://"),
    Property(
        "type",
        _enum("GstorchUriSourceType", {0: "auto", 1: "uri", 2: "rtsp"}),
        SOURCE_AUTO,
        "How to read the URI; auto goes by its scheme",
    ),
    Property(
        "source-id", int, -1, "Id that the stream mux gives the frames; -1: the number of the mux pad", -1, 2**31 - 1
    ),
    Property("drop-frame-interval", "uint", 0, "Keep each Nth frame only; 0: all", 0, 30),
    Property(
        "dec-skip-frames",
        _enum("GstorchDecoderSkip", {0: "decode_all", 1: "decode_non_ref", 2: "decode_key"}),
        0,
        "Frames that the decoder skips",
    ),
    Property("disable-audio", bool, True, "Leave audio streams alone"),
    Property("file-loop", bool, False, "Play a file again and again, with rising timestamps and no end of stream"),
    Property(
        "leaky",
        _enum("GstorchSourceLeaky", {0: "no-leak", 1: "upstream-leak", 2: "downstream-leak"}),
        0,
        "Which frames the queue after the decoder drops when it is full; the queue exists when this or "
        "max-size-buffers is set",
    ),
    Property("max-size-buffers", "uint", 200, "Frames that the queue after the decoder holds"),
    Property(
        "frames-dropped",
        "uint64",
        0,
        "Not a DeepStream property: frames that the queue after the decoder has dropped",
        writable=False,
    ),
    # rtsp
    Property(
        "buffer-mode",
        _enum("GstorchRtspBufferMode", {0: "unknown", 1: "slave", 2: "buffer", 3: "auto", 4: "synced"}),
        3,
        "How rtspsrc turns sender time into timestamps",
    ),
    Property("latency", "uint", 100, "Jitter buffer of a live source, ms"),
    Property(
        "select-rtp-protocol",
        _enum(
            "GstorchRtpProtocol",
            {
                0: "rtp-unknown",
                1: "rtp-udp",
                2: "rtp-udp-mcast",
                4: "rtp-tcp",
                7: "rtp-udp-udpmcast-tcp",
                10: "rtp-http",
                20: "rtp-tls",
            },
        ),
        RTP_DEFAULT,
        "Transport of RTP packets; unless it is set, TCP",
    ),
    Property("udp-buffer-size", "uint", 524288, "Kernel receive buffer for RTP over UDP, bytes"),
    Property("drop-on-latency", bool, True, "Drop the oldest packets when the jitter buffer is full"),
    Property(
        "rtsp-reconnect-interval",
        "uint",
        0,
        "Seconds without a frame after which a live source is lost and reconnected; 0: never reconnect",
    ),
    Property(
        "init-rtsp-reconnect-interval", "uint", 0, "The same, until the first frame came; 0: as rtsp-reconnect-interval"
    ),
    Property(
        "rtsp-reconnect-attempts", int, -1, "Attempts to reconnect before giving up; -1 and 0: for ever", -1, 2**31 - 1
    ),
    Property(
        "gstorch-reconnect-backoff-min",
        float,
        1.0,
        "Not a DeepStream property: pause before the first attempt to reconnect, seconds; doubles with each",
        0.0,
        3600.0,
    ),
    Property(
        "gstorch-reconnect-backoff-max",
        float,
        30.0,
        "Not a DeepStream property: longest pause between two attempts to reconnect, seconds",
        0.0,
        3600.0,
    ),
    # accepted, no effect on a CPU
    _none("gpu-id", "uint", 0, "GPU of the decoder"),
    _none(
        "cudadec-memtype",
        _enum("GstorchDecoderMemory", {0: "memtype_device", 1: "memtype_pinned", 2: "memtype_unified"}),
        0,
        "Memory of the decoder",
    ),
    _none("num-extra-surfaces", "uint", 1, "Extra surfaces of the decoder"),
    _none("low-latency-mode", bool, False, "Low latency decoding"),
    _none("extract-sei-type5-data", bool, False, "Read SEI user data"),
    _none("sei-uuid", str, None, "UUID of the SEI user data"),
    _none("disable-passthrough", bool, False, "Always convert"),
    _none(
        "smart-record",
        _enum("GstorchSmartRecord", {0: "smart-rec-disable", 1: "smart-rec-cloud", 2: "smart-rec-multi"}),
        0,
        "Recording on events",
    ),
    _none("smart-rec-dir-path", str, None, "Folder of recordings"),
    _none("smart-rec-file-prefix", str, "Smart_Record", "Prefix of the names of recordings"),
    _none("smart-rec-cache", "uint", 20, "Seconds kept for a recording's past"),
    _none("smart-rec-video-cache", "uint", 20, "Old name of smart-rec-cache"),
    _none(
        "smart-rec-container",
        _enum("GstorchSmartRecordContainer", {0: "smart-rec-mp4", 1: "smart-rec-mkv"}),
        0,
        "Container of recordings",
    ),
    _none(
        "smart-rec-mode",
        _enum("GstorchSmartRecordMode", {0: "smart-rec-mode-av", 1: "smart-rec-mode-video", 2: "smart-rec-mode-audio"}),
        0,
        "What is recorded",
    ),
    _none("smart-rec-default-duration", "uint", 20, "Seconds of a recording that nobody stops"),
    Property("smart-rec-status", bool, False, "Whether a recording runs", effect=False, writable=False),
    _none("ipc-socket-path", str, None, "Socket of an ipc:// source"),
    _none("ipc-buffer-timestamp-copy", bool, False, "Take timestamps from the ipc peer"),
    _none("ipc-connection-attempts", int, -1, "Attempts to connect to the ipc peer"),
    _none("ipc-connection-interval", "uint64", 1000000, "Microseconds between those attempts"),
    _none("simulate-fps-interval-ms", "uint", 0, "Pause between frames, ms", 0, 1000),
)

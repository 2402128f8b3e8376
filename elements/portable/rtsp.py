"""What nvurisrcbin's properties mean to rtspsrc."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from elements.base import GLib, Gst
from elements.portable.source_properties import RTP_TRANSPORTS

_SCHEMES = ("rtsp", "rtsps", "rtspt", "rtspu", "rtsph")
_TCP = 4


def is_rtsp(uri: str) -> bool:
    """Whether rtspsrc reads the URI."""
    return uri.partition(":")[0] in _SCHEMES


def set_up_rtspsrc(
    source: Gst.Element, values: Mapping[str, Any], user_set: Collection[str], credentials: tuple[str, str]
) -> None:
    """Apply nvurisrcbin's property values and the credentials (user, password).

    RTP goes over TCP unless the user chose a transport.
    """
    chosen = int(values["select-rtp-protocol"]) if "select-rtp-protocol" in user_set else _TCP
    source.set_property("protocols", RTP_TRANSPORTS.get(chosen, _TCP))
    source.set_property("user-id", credentials[0] or None)
    source.set_property("user-pw", credentials[1] or None)
    source.set_property("buffer-mode", int(values["buffer-mode"]))
    for name in ("latency", "udp-buffer-size", "drop-on-latency"):
        source.set_property(name, values[name])


def camera_problem(error: GLib.Error) -> str | None:
    """An error of rtspsrc as a text that completes "<location>: …"; None for errors that are not of the network."""
    if error.domain != GLib.quark_to_string(Gst.ResourceError.quark()):
        return None
    return _PROBLEMS.get(error.code)


_PROBLEMS = {
    int(Gst.ResourceError.OPEN_READ_WRITE): "cannot be reached (it is off, or the address or port is wrong)",
    int(Gst.ResourceError.NOT_FOUND): "has no stream of that name (the path in the address is wrong)",
    int(Gst.ResourceError.READ): "does not answer",
    int(Gst.ResourceError.WRITE): "does not answer",
}


def is_pushing(pad: Gst.Pad) -> bool:
    """Whether a buffer is on its way through ``pad``, so that what follows is slow or paused."""
    idle: list[bool] = []

    def note(*_: Any) -> Gst.PadProbeReturn:
        idle.append(True)
        return Gst.PadProbeReturn.REMOVE

    probe = pad.add_probe(Gst.PadProbeType.IDLE, note)  # called at once when nothing is being pushed
    if not idle:
        pad.remove_probe(probe)
    return not idle

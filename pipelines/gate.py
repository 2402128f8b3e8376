"""Holds the first batch back until pyservicemaker's operators are called."""

from __future__ import annotations

from elements.base import GLib, Gst


def hold_until_loop_runs(mux: Gst.Element) -> None:
    """Block the mux's src pad until a main loop runs on GLib's default context. Call before the pipeline starts.

    NVIDIA's pyservicemaker plays first and runs its loop afterwards, and its probes call no operator before that: the
    first frames would be missing from events and counts.
    """
    pad = mux.get_static_pad("src")
    blocking = Gst.PadProbeType.BLOCK | Gst.PadProbeType.BUFFER
    probe = pad.add_probe(blocking, lambda _pad, _info: Gst.PadProbeReturn.OK)

    def release() -> bool:
        pad.remove_probe(probe)
        return False  # once

    GLib.idle_add(release)

"""Ends one stream from outside of it."""

from __future__ import annotations

import threading

from elements.base import Gst


def end_pad(pad: Gst.Pad, stream: str) -> None:
    """EOS on a sink pad, from outside of its stream.

    A busy source holds the pad's stream lock nearly all the time, so its own thread sends the EOS, before its next
    buffer. A silent one never comes by; for it a thread of ours does.
    """

    def end() -> None:
        if not pad.is_linked():
            pad.send_event(Gst.Event.new_stream_start(stream))
        pad.send_event(Gst.Event.new_eos())

    def on_buffer(_pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        end()
        return Gst.PadProbeReturn.DROP

    pad.add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    threading.Thread(target=end, name=f"end-{stream}", daemon=True).start()

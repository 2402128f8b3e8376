"""Events about one stream of a batch, which travel downstream between the batches.

NVIDIA's STREAM_EOS has an event type of its own, which PyGObject cannot make; stand-ins use a custom downstream event.
"""

from __future__ import annotations

from elements.base import GObject, Gst, structure_of

_STREAM_EOS = "gstorch-stream-eos"
_STREAM_ID = "stream-id"


def stream_eos(pad_index: int) -> Gst.Event:
    """Serialized event: pad ``pad_index`` of the mux has ended."""
    structure = Gst.Structure.new_empty(_STREAM_EOS)
    structure.set_value(_STREAM_ID, GObject.Value(GObject.TYPE_UINT, pad_index))
    return Gst.Event.new_custom(Gst.EventType.CUSTOM_DOWNSTREAM, structure)


def ended_stream(event: Gst.Event) -> int | None:
    """The pad index that a `stream_eos` event names; ``None`` for any other event."""
    if event.type != Gst.EventType.CUSTOM_DOWNSTREAM:
        return None
    structure = structure_of(event)
    return structure.get_value(_STREAM_ID) if structure.get_name() == _STREAM_EOS else None


def stream_eos_message(mux: Gst.Element, pad_index: int) -> Gst.Event:
    """Event that a sink turns into the element message ``stream-eos`` {stream-id: uint}, as NVIDIA's mux sends it."""
    structure = Gst.Structure.new_empty("stream-eos")
    structure.set_value(_STREAM_ID, GObject.Value(GObject.TYPE_UINT, pad_index))
    return Gst.Event.new_sink_message("stream-eos", Gst.Message.new_element(mux, structure))

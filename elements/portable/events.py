"""Events about one stream of a batch, as DeepStream's ``gst-nvevent`` defines them: made by the mux, read by others."""

from __future__ import annotations

from elements.base import Gst

PAD_ADDED = "nv-pad-added"
PAD_DELETED = "nv-pad-deleted"
STREAM_EOS = "nv-stream-eos"
STREAM_RESET = "nv-stream-reset"

_KINDS = frozenset({PAD_ADDED, PAD_DELETED, STREAM_EOS, STREAM_RESET})
_FIELD = "source-id"


def stream_event(kind: str, pad_index: int) -> Gst.Event:
    """A serialized downstream event about the stream of mux pad ``sink_<pad_index>``."""
    structure = Gst.Structure.new_from_string(f"{kind}, {_FIELD}=(uint){pad_index}")
    return Gst.Event.new_custom(Gst.EventType.CUSTOM_DOWNSTREAM, structure)


def parse_stream_event(event: Gst.Event) -> tuple[str, int] | None:
    """(kind, pad index) if ``event`` is about one stream, else None."""
    structure = event.get_structure()
    if structure is None or structure.get_name() not in _KINDS:
        return None
    found, pad_index = structure.get_uint(_FIELD)
    return (structure.get_name(), pad_index) if found else None

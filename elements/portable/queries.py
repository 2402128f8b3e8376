"""Custom queries that stand-ins put to each other; both sides of each are here. Every answer is one number."""

from __future__ import annotations

import ctypes

from elements.base import Gst, structure_of

SOURCE_ID = "gstorch-source-id"  # to nvurisrcbin: its source-id
FRAMES_HELD = "gstorch-frames-held"  # to nvstreammux: frames of one source that it and what follows hold at a time
_FIELD = "value"
_INT_TYPE = 6 << 2  # G_TYPE_INT, a fundamental type

_gst = ctypes.PyDLL("libgstreamer-1.0.so.0")
_gst.gst_query_writable_structure.argtypes = [ctypes.c_void_p]
_gst.gst_query_writable_structure.restype = ctypes.c_void_p
_gst.gst_structure_set_value.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_gst.gst_structure_set_value.restype = None


class _GValue(ctypes.Structure):
    """GValue of gvalue.h holding an int."""

    _fields_ = (("g_type", ctypes.c_size_t), ("data", ctypes.c_int64 * 2))


def ask_source_id(sink_pad: Gst.Pad) -> int | None:
    """The source id that an nvurisrcbin upstream of ``sink_pad`` was given, or None."""
    return _ask(sink_pad, SOURCE_ID)


def ask_frames_held(src_pad: Gst.Pad) -> int | None:
    """How many frames the elements behind ``src_pad`` hold at a time, or None if there is no stream mux."""
    return _ask(src_pad, FRAMES_HELD)


def _ask(pad: Gst.Pad, question: str) -> int | None:
    query = Gst.Query.new_custom(Gst.QueryType.CUSTOM, Gst.Structure.new_empty(question))
    if not pad.peer_query(query):
        return None
    answered, value = structure_of(query).get_int(_FIELD)
    return value if answered else None


def asks_for(query: Gst.Query, question: str) -> bool:
    """Whether this is one of the queries named above."""
    return bool(query.type == Gst.QueryType.CUSTOM and structure_of(query).get_name() == question)


def answer(query: Gst.Query, number: int) -> bool:
    """Write the answer into the query; False if it cannot be written.

    PyGObject hands out copies of structures, so the value is set through ctypes.
    """
    structure = _gst.gst_query_writable_structure(hash(query))
    if not structure:
        return False
    value = _GValue(_INT_TYPE, (ctypes.c_int64 * 2)(number, 0))
    _gst.gst_structure_set_value(structure, _FIELD.encode(), ctypes.byref(value))
    return True

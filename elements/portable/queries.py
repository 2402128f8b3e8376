"""Custom queries that stand-ins put to each other; both sides of each are here."""

from __future__ import annotations

import ctypes

from elements.base import Gst, structure_of

_SOURCE_ID = "gstorch-source-id"
_FIELD = "source-id"
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
    query = Gst.Query.new_custom(Gst.QueryType.CUSTOM, Gst.Structure.new_empty(_SOURCE_ID))
    if not sink_pad.peer_query(query):
        return None
    answered, source_id = structure_of(query).get_int(_FIELD)
    return source_id if answered else None


def is_source_id_query(query: Gst.Query) -> bool:
    """Whether `ask_source_id` made this query."""
    return bool(query.type == Gst.QueryType.CUSTOM and structure_of(query).get_name() == _SOURCE_ID)


def answer_source_id(query: Gst.Query, source_id: int) -> bool:
    """Write the answer into the query; False if it cannot be written.

    PyGObject hands out copies of structures, so the value is set through ctypes.
    """
    structure = _gst.gst_query_writable_structure(hash(query))
    if not structure:
        return False
    value = _GValue(_INT_TYPE, (ctypes.c_int64 * 2)(source_id, 0))
    _gst.gst_structure_set_value(structure, _FIELD.encode(), ctypes.byref(value))
    return True

"""Setting and getting element properties by pyservicemaker's rules."""

from __future__ import annotations

import ctypes
import logging
from typing import Any

from elements.base import GObject, Gst

log = logging.getLogger("gstorch.pyservicemaker")

_gobject = ctypes.CDLL("libgobject-2.0.so.0")
_gobject.g_object_set_property.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_gobject.g_object_set_property.restype = None

_SIMPLE = {str: GObject.TYPE_STRING, bool: GObject.TYPE_BOOLEAN, int: GObject.TYPE_INT, float: GObject.TYPE_FLOAT}
_WIDE = {
    GObject.TYPE_INT64: (GObject.TYPE_INT64, -(1 << 63), 1 << 63),
    GObject.TYPE_LONG: (GObject.TYPE_INT64, -(1 << 63), 1 << 63),
    GObject.TYPE_UINT64: (GObject.TYPE_UINT64, 0, 1 << 64),
    GObject.TYPE_ULONG: (GObject.TYPE_UINT64, 0, 1 << 64),
}
_WHOLE = {GObject.TYPE_INT, GObject.TYPE_UINT, GObject.TYPE_ENUM, GObject.TYPE_FLAGS, *_WIDE}


def set_properties(element: Gst.Element, properties: dict[str, Any]) -> None:
    """Set properties; ``child::property`` names go through GstChildProxy.

    Values are str, int, bool or float, exactly (no subclasses), and are handed over as GValues of STRING, INT, BOOLEAN
    and FLOAT: GLib converts or warns, so an enum takes its number, not its nick. Caps and structures take their text.
    A name that the element does not have is logged, no more. 64 bit properties take any int that fits; NVIDIA's module
    takes larger ints than 32 bit only as float.

    Raises:
        RuntimeError: for a value of another type, or an int that does not fit; nothing is set then.
    """
    for name, value in properties.items():
        _check_type(name, value)
    for name, value in properties.items():
        owner, spec = _find(element, name)
        if spec is None:
            log.warning("Property %s is not supported by object %s", name, element.get_name())
            continue
        gvalue = _gvalue(spec, name, value)
        if gvalue is not None:
            _gobject.g_object_set_property(hash(owner), spec.name.encode(), hash(gvalue))


def get_property(element: Gst.Element, name: str) -> Any:
    """Value of a number, enum, flags (as int), boolean or text property (NULL is ""), None (and a log line) for others.

    Integers of 64 bit come out right; NVIDIA's module gives 0.
    """
    owner, spec = _find(element, name)
    if spec is None:
        log.warning("Property %s is not supported by object %s", name, element.get_name())
        return None
    kind = GObject.type_fundamental(spec.value_type)
    if kind in _WHOLE:
        return int(owner.get_property(spec.name))
    if kind in (GObject.TYPE_FLOAT, GObject.TYPE_DOUBLE):
        return float(owner.get_property(spec.name))
    if kind == GObject.TYPE_BOOLEAN:
        return bool(owner.get_property(spec.name))
    if kind == GObject.TYPE_STRING:
        return owner.get_property(spec.name) or ""
    log.warning("Property %s of %s: values of type %s cannot be read", name, element.get_name(), spec.value_type.name)
    return None


def _find(element: Gst.Element, name: str) -> tuple[Any, GObject.ParamSpec | None]:
    if "::" not in name:
        return element, element.find_property(name)
    if isinstance(element, Gst.ChildProxy):
        _found, child, spec = Gst.ChildProxy.lookup(element, name)
        return child, spec
    return element, None


def _check_type(name: str, value: Any) -> None:
    if type(value) not in _SIMPLE:
        log.error("Type not supported for value: %s", type(value).__name__)
        raise RuntimeError(
            f"Unable to cast Python instance of type {type(value)} to C++ type 'Value' (property '{name}': "
            "str, int, bool or float is needed)"
        )


def _gvalue(spec: GObject.ParamSpec, name: str, value: Any) -> GObject.Value | None:
    if isinstance(value, str) and spec.value_type in (Gst.Caps.__gtype__, Gst.Structure.__gtype__):
        return _parsed(spec, name, value)
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        return _wide_integer(spec, name, value)
    if isinstance(value, float):
        value = ctypes.c_float(value).value
    return GObject.Value(_SIMPLE[type(value)], value)


def _parsed(spec: GObject.ParamSpec, name: str, text: str) -> GObject.Value | None:
    if spec.value_type == Gst.Caps.__gtype__:
        parsed = Gst.Caps.from_string(text)
    else:
        try:
            parsed = Gst.Structure.new_from_string(text)
        except TypeError:
            parsed = None
    if parsed is None:
        log.warning("Property %s keeps its value: cannot parse %r", name, text)
        return None
    return GObject.Value(spec.value_type, parsed)


def _wide_integer(spec: GObject.ParamSpec, name: str, value: int) -> GObject.Value:
    kind, low, high = _WIDE.get(GObject.type_fundamental(spec.value_type), (None, 0, 0))
    if not low <= value < high:
        raise RuntimeError(
            f"Unable to cast Python instance of type <class 'int'> to C++ type 'int' (property '{name}': {value} "
            "does not fit)"
        )
    return GObject.Value(kind, value)

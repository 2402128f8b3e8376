"""What every GStreamer element written in Python here shares: properties, guards, caps and pads."""

from __future__ import annotations

import ctypes
import functools
import logging
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstBase", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib as GLib  # noqa: E402
from gi.repository import GObject as GObject  # noqa: E402
from gi.repository import Gst as Gst  # noqa: E402
from gi.repository import GstBase as GstBase  # noqa: E402
from gi.repository import GstVideo as GstVideo  # noqa: E402

log = logging.getLogger("gstorch.elements")

# A name of Gst takes PyGObject a microsecond to find, each time. These are asked for with every frame or buffer.
for _name in ("SECOND", "CLOCK_TIME_NONE", "FlowReturn", "EventType", "PadProbeReturn"):
    setattr(Gst, _name, getattr(Gst, _name))

NVMM = "memory:NVMM"
AUTHOR = "gstorch developers"

_gobject = ctypes.CDLL("libgobject-2.0.so.0")
_gobject.g_object_ref.argtypes = [ctypes.c_void_p]
_gobject.g_object_ref.restype = ctypes.c_void_p
_gobject.g_object_force_floating.argtypes = [ctypes.c_void_p]
_gobject.g_object_force_floating.restype = None
_gobject.g_object_unref.argtypes, _gobject.g_object_unref.restype = [ctypes.c_void_p], None

F = TypeVar("F", bound=Callable[..., Any])


# --- pads and caps ----------------------------------------------------------------------------------------------------


def caps(text: str) -> Gst.Caps:
    """Caps from their string form."""
    return Gst.Caps.from_string(text)


def structure_of(carrier: Gst.Event | Gst.Query) -> Gst.Structure:
    """A copy of the structure that an event or query carries. Of caps, ``caps[index]`` gives one.

    From GStreamer 1.26 on, what ``get_structure()`` returns is no structure but a context manager that yields it.
    """
    structure = carrier.get_structure()
    if isinstance(structure, Gst.Structure):
        return structure
    with structure as borrowed:
        return borrowed.copy()


def pad_template(
    name: str,
    direction: Gst.PadDirection,
    presence: Gst.PadPresence,
    allowed: str | Gst.Caps,
    pad_type: GObject.GType | None = None,
) -> Gst.PadTemplate:
    """A pad template; ``pad_type`` is needed for aggregator pads."""
    allowed = caps(allowed) if isinstance(allowed, str) else allowed
    if pad_type is None:
        return Gst.PadTemplate.new(name, direction, presence, allowed)
    return Gst.PadTemplate.new_with_gtype(name, direction, presence, allowed, pad_type)


def sink_and_src(sink: str, src: str | None = None) -> tuple[Gst.PadTemplate, Gst.PadTemplate]:
    """The two always-pads of a filter; the src caps equal the sink caps unless given."""
    always = Gst.PadPresence.ALWAYS
    return (
        pad_template("sink", Gst.PadDirection.SINK, always, sink),
        pad_template("src", Gst.PadDirection.SRC, always, src or sink),
    )


def keep_floating(element: Gst.Element) -> None:
    """Make a Python element leave its factory with a floating reference, as C elements do.

    Call it in ``__init__`` after ``super().__init__()``. Up to 3.48 or so, PyGObject sinks the reference of the wrapper
    it makes, and GStreamer then prints a CRITICAL for each element. The extra reference is the one the wrapper holds;
    forcing the floating flag without it corrupts memory. Later versions hold one of their own beside the floating one.
    """
    if element.is_floating():
        return
    address = hash(element)
    _gobject.g_object_ref(address)
    _gobject.g_object_force_floating(address)


def requested(pad: Gst.Pad) -> Gst.Pad:
    """A pad that ``do_request_new_pad`` has added and returns, less a reference.

    PyGObject adds one for the caller, as that vfunc's result is declared to be his (transfer full), and then GStreamer
    itself adds the caller's. Without this the pad would never be freed.
    """
    _gobject.g_object_unref(hash(pad))
    return pad


def all_of(iterator: Gst.Iterator) -> list[Any]:
    """What a GStreamer iterator gives; it begins again when that changes meanwhile.

    In place of fields as ``Element.pads``, ``srcpads`` or ``Bin.children``: those are read without a lock and without
    references, so that a pad which another thread removes at that moment ends the process.
    """
    found: list[Any] = []
    while True:
        result, item = iterator.next()
        if result == Gst.IteratorResult.OK:
            found.append(item)
        elif result == Gst.IteratorResult.RESYNC:
            iterator.resync()
            found.clear()
        else:
            return found


# --- properties -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Property:
    """One row of an element's property table.

    ``type`` is str, bool, int, float, ``"uint"``, ``"uint64"``, ``"int64"`` or a GEnum type made by `enum_type`.
    ``effect`` is False for properties that exist because DeepStream's element has them and change nothing here.
    """

    name: str
    type: Any
    default: Any
    blurb: str
    minimum: float | None = None
    maximum: float | None = None
    effect: bool = True
    readable: bool = True
    writable: bool = True

    def spec(self) -> tuple[Any, ...]:
        """The tuple that PyGObject's ``__gproperties__`` expects."""
        flags = GObject.ParamFlags(0)
        if self.readable:
            flags |= GObject.ParamFlags.READABLE
        if self.writable:
            flags |= GObject.ParamFlags.WRITABLE
        kind, (low, high) = _NUMBERS.get(self.type, (self.type, (None, None)))
        if low is None:
            return (kind, self.name, self.blurb, self.default, flags)
        low = low if self.minimum is None else self.minimum
        high = high if self.maximum is None else self.maximum
        return (kind, self.name, self.blurb, low, high, self.default, flags)


_NUMBERS: dict[Any, tuple[Any, tuple[float, float]]] = {
    int: (GObject.TYPE_INT, (-(2**31), 2**31 - 1)),
    "uint": (GObject.TYPE_UINT, (0, 2**32 - 1)),
    "int64": (GObject.TYPE_INT64, (-(2**63), 2**63 - 1)),
    "uint64": (GObject.TYPE_UINT64, (0, 2**64 - 1)),
    float: (GObject.TYPE_FLOAT, (-3.4e38, 3.4e38)),
}


def gproperties(table: Iterable[Property]) -> dict[str, tuple[Any, ...]]:
    """``__gproperties__`` for a class body, from its property table."""
    return {p.name: p.spec() for p in table}


class PropertyTable:
    """Mixin that stores property values.

    The class sets ``PROPERTIES`` and ``__gproperties__ = gproperties(PROPERTIES)``.

    Values are read with ``self.values["name"]``. `property_changed` may be overridden to act on a change.
    """

    PROPERTIES: tuple[Property, ...] = ()

    def init_properties(self) -> None:
        """Call in ``__init__`` after ``super().__init__()``."""
        self.values: dict[str, Any] = {p.name: p.default for p in self.PROPERTIES}
        self.user_set: set[str] = set()

    def do_get_property(self, pspec: GObject.ParamSpec) -> Any:
        return self.values[pspec.name]

    def do_set_property(self, pspec: GObject.ParamSpec, value: Any) -> None:
        self.values[pspec.name] = value
        self.user_set.add(pspec.name)
        self.property_changed(pspec.name, value)

    def property_changed(self, name: str, value: Any) -> None:
        """Hook: a property has a new value. Exceptions raised here would be swallowed by GStreamer."""

    def warn_of_ignored_properties(self, working: Collection[str] = ()) -> None:
        """Log once, by name, the properties that the user set and that change nothing here. Call when starting.

        ``working`` are names that have an effect this time, whatever the table says.
        """
        idle = [p.name for p in self.PROPERTIES if not p.effect and p.name in self.user_set.difference(working)]
        if idle:
            self.user_set -= set(idle)
            factory = self.get_factory().get_name() if self.get_factory() else type(self).__name__  # type: ignore[attr-defined]
            log.warning("%s (%s): no effect here: %s", self.get_name(), factory, ", ".join(idle))  # type: ignore[attr-defined]


class _EnumValue(ctypes.Structure):
    """GEnumValue of glib-object.h."""

    _fields_ = [("value", ctypes.c_int), ("name", ctypes.c_char_p), ("nick", ctypes.c_char_p)]


class _EnumClass(ctypes.Structure):
    """GEnumClass of glib-object.h."""

    _fields_ = [
        ("type", ctypes.c_size_t),
        ("minimum", ctypes.c_int),
        ("maximum", ctypes.c_int),
        ("count", ctypes.c_uint),
        ("values", ctypes.POINTER(_EnumValue)),
    ]


_enum_storage: list[Any] = []  # GLib keeps pointers to the tables, so they must outlive every type


def enum_type(name: str, nicks: Mapping[int, str]) -> GObject.GType:
    """Register (once per process) a GEnum; PyGObject's own GEnum subclasses cannot be used as property types."""
    try:
        return GObject.type_from_name(name)
    except RuntimeError:
        pass
    table = (_EnumValue * (len(nicks) + 1))(*(_EnumValue(n, k.encode(), k.encode()) for n, k in nicks.items()))
    _enum_storage.append(table)
    register = _gobject.g_enum_register_static
    register.argtypes, register.restype = [ctypes.c_char_p, ctypes.c_void_p], ctypes.c_size_t
    register(name.encode(), ctypes.addressof(table))
    return GObject.type_from_name(name)


def enum_choices(enum: GObject.GType) -> dict[str, int]:
    """The values of a GEnum by nick, read from GLib: what PyGObject offers differs between its versions."""
    ref = _gobject.g_type_class_ref
    ref.argtypes, ref.restype = [ctypes.c_size_t], ctypes.POINTER(_EnumClass)
    known = ref(hash(enum)).contents
    return {entry.nick.decode(): entry.value for entry in known.values[: known.count]}


# --- errors -----------------------------------------------------------------------------------------------------------


def post_error(element: Gst.Element, text: str, debug: str = "", domain: Any = None, code: int | None = None) -> None:
    """Post a bus ERROR from ``element``. Default domain and code: STREAM/FAILED."""
    domain = domain or Gst.StreamError
    code = int(Gst.StreamError.FAILED) if code is None else int(code)
    error = GLib.Error.new_literal(domain.quark(), text, code)
    element.post_message(Gst.Message.new_error(element, error, debug))


def post_warning(element: Gst.Element, text: str, debug: str = "") -> None:
    """Post a bus WARNING (STREAM/FAILED) from ``element``."""
    error = GLib.Error.new_literal(Gst.StreamError.quark(), text, int(Gst.StreamError.FAILED))
    element.post_message(Gst.Message.new_warning(element, error, debug))


def guarded(failure: Any) -> Callable[[F], F]:
    """Decorator for every vfunc: an exception becomes a bus ERROR with its trace, and ``failure`` is returned.

    Without it GStreamer swallows the exception and counts the call as a success. ``SystemExit`` is caught too, since
    it would hang the streaming thread. So is a result that should be a flow return, as ``failure`` is, and is none.

    >>> @guarded(Gst.FlowReturn.ERROR)
    ... def do_transform_ip(self, buffer): ...
    """

    flows = isinstance(failure, Gst.FlowReturn)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def guard(self: Gst.Element, *args: Any) -> Any:
            try:
                result = function(self, *args)
                if flows and not isinstance(result, Gst.FlowReturn):
                    raise TypeError(f"{function.__name__} must return a Gst.FlowReturn, such as OK, not {result!r}")
                return result
            except BaseException as error:
                post_error(self, f"{self.get_name()}: {_words(error)}", trace_of(error))
                return failure

        return guard  # type: ignore[return-value]

    return decorate


class ElementError(Exception):
    """An error whose text is complete for the user: what, where and what to do.

    Only its cause, if it is raised ``from`` one, is worth a trace.
    """


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, ElementError) else f"{type(error).__name__}: {error}"


def trace_of(error: BaseException) -> str:
    """The trace to show for ``error``: that of the code that failed, none for an `ElementError` without a cause."""
    cause = error.__cause__ if isinstance(error, ElementError) else error
    return "".join(traceback.format_exception(cause)) if cause is not None else ""

"""Probes: operators on the src pads of elements, and the registry that makes them by name."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Mapping
from typing import Any

from elements.base import Gst, all_of
from elements.portable.carrier import own_batch_at
from elements.portable.pyservicemaker.buffer import Buffer
from elements.portable.pyservicemaker.handles import STALE
from elements.portable.pyservicemaker.metadata import BatchMetadata
from elements.portable.pyservicemaker.operators import (
    BatchMetadataOperator,
    BufferObserver,
    BufferOperator,
    call_with_properties,
    report_failure,
)

log = logging.getLogger("gstorch.pyservicemaker")

# GstPadProbeInfo of gstpad.h on 64 bit: type, id, data, offset, size, then the union that holds the flow return.
# PyGObject does not show that union, and its `get_buffer` takes as long as all that an operator does with few frames.
_DATA_OFFSET = 16
_FLOW_RETURN_OFFSET = 40
_unref = ctypes.PyDLL("libgstreamer-1.0.so.0").gst_mini_object_unref
_unref.argtypes, _unref.restype = [ctypes.c_void_p], None

PARAM_TYPES: dict[str, type] = {"integer": int, "string": str, "path": str, "boolean": bool}
ParamSpec = Mapping[str, tuple[Any, ...]]


class Object:
    """A named object with properties that can be attached to a node.

    With a parameter specification only its names exist, with its types; without one any name is accepted.
    """

    def __init__(self, name: str, spec: Mapping[str, type] | None = None) -> None:
        self.name = name
        self._spec = spec
        self._properties: dict[str, Any] = {"gpu-id": 0}

    def set(self, properties: dict[str, Any], /) -> None:
        """Set properties. A name that the specification lacks is logged, no more.

        Raises:
            RuntimeError: "Value type mismatch".
        """
        for key, value in properties.items():
            wanted = (self._spec or {}).get(key)
            if self._spec is not None and wanted is None and key not in self._properties:
                log.warning("Property %s is not supported by object %s", key, self.name)
                continue
            if wanted is not None and type(value) is not wanted:
                raise RuntimeError("Value type mismatch")
            self._properties[key] = value

    def _attach(self, element: Gst.Element, tips: str) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name})"


class Probe(Object):
    """Calls an operator for the buffers of a src pad, on the streaming thread.

    Unlike NVIDIA's, which skips buffers while the pipeline's main loop does not run, it sees every buffer.

    Raises:
        TypeError: if the operator is neither a BatchMetadataOperator nor a BufferOperator.
    """

    def __init__(self, name: str, operator: BatchMetadataOperator | BufferOperator, /) -> None:
        if not isinstance(name, str) or not isinstance(operator, BatchMetadataOperator | BufferOperator):
            raise TypeError(
                "Probe(): incompatible constructor arguments: a name and a BatchMetadataOperator or BufferOperator are "
                f"needed, not {name!r} and {operator!r}"
            )
        super().__init__(name)
        self._operator: Any = operator

    @staticmethod
    def create(plugin: str, name: str) -> Probe:
        """A probe of a class that was registered with `register_probe`.

        Raises:
            RuntimeError: "Signal creation failed" if no class has that name.
        """
        if plugin not in _registry:
            log.error("no probe is registered as '%s'; there are: %s", plugin, ", ".join(sorted(_registry)) or "none")
            raise RuntimeError("Signal creation failed")
        operator_class, spec, defaults = _registry[plugin]
        created = Probe.__new__(Probe)
        Object.__init__(created, name, spec)
        created._operator = operator_class()
        created._properties |= defaults
        return created

    def _attach(self, element: Gst.Element, tips: str) -> None:
        pad = element.get_static_pad(tips) if tips else next(reversed(all_of(element.iterate_src_pads())), None)
        if pad is None or pad.direction != Gst.PadDirection.SRC:
            log.error("probe '%s': %s has no src pad '%s'", self.name, element.get_name(), tips or "src")
            raise RuntimeError("Probe failure")
        on_batch = isinstance(self._operator, BatchMetadataOperator)
        pad.add_probe(Gst.PadProbeType.BUFFER, _on_batch if on_batch else _on_buffer, self)


def _on_batch(pad: Gst.Pad, info: Gst.PadProbeInfo, probe: Probe) -> Gst.PadProbeReturn:
    """Call a BatchMetadataOperator, if the buffer carries a batch."""
    address = ctypes.c_void_p.from_address(hash(info) + _DATA_OFFSET).value or 0
    metadata = BatchMetadata(None)
    try:
        batch = own_batch_at(address)
        if batch is not None:
            metadata = BatchMetadata(batch)
            call_with_properties(probe._properties, probe._operator.handle_metadata, metadata)
        return Gst.PadProbeReturn.OK
    except BaseException as error:
        report_failure(pad.get_parent_element(), probe.name, probe._operator, error, metadata._position())
        return _stop_flow(info, address)
    finally:
        metadata._meta = STALE


def _on_buffer(pad: Gst.Pad, info: Gst.PadProbeInfo, probe: Probe) -> Gst.PadProbeReturn:
    """Call a BufferOperator, whose result says whether the buffer goes on, or a BufferObserver."""
    buffer = info.get_buffer()
    try:
        keep = call_with_properties(probe._properties, probe._operator.handle_buffer, Buffer(buffer))
        if keep or isinstance(probe._operator, BufferObserver):
            return Gst.PadProbeReturn.OK
        return Gst.PadProbeReturn.DROP
    except BaseException as error:
        report_failure(pad.get_parent_element(), probe.name, probe._operator, error)
        return _stop_flow(info, hash(buffer))


def _stop_flow(info: Gst.PadProbeInfo, address: int) -> Gst.PadProbeReturn:
    """Make the push of this buffer return FLOW_ERROR. A handled buffer is the probe's to release."""
    ctypes.c_int.from_address(hash(info) + _FLOW_RETURN_OFFSET).value = int(Gst.FlowReturn.ERROR)
    _unref(address)
    return Gst.PadProbeReturn.HANDLED


_registry: dict[str, tuple[type, dict[str, type], dict[str, Any]]] = {}


def register_probe(name: str, cls: type, params: ParamSpec | None = None) -> type:
    """Make an operator class available to ``Pipeline.attach`` by name; the first registration of a name wins.

    Args:
        name: for ``attach``.
        cls: subclass of an operator; made without arguments, once per attach.
        params: ``{property: (type, default[, brief])}`` with type integer, string, path or boolean.

    Returns:
        ``cls``.

    Raises:
        RuntimeError: "Unsupported type …".
    """
    for kind, *_ in (params or {}).values():
        if kind not in PARAM_TYPES:
            raise RuntimeError(f"Unsupported type {kind}")
    spec = {key: PARAM_TYPES[kind] for key, (kind, *_) in (params or {}).items()}
    defaults = {key: default for key, (_, default, *_) in (params or {}).items()}
    _registry.setdefault(name, (cls, spec, defaults))
    return cls


def probe(name: str, params: ParamSpec | None = None) -> Callable[[type], type]:
    """Class decorator for `register_probe`."""
    return lambda cls: register_probe(name, cls, params)

"""What users subclass, and the errors of what they wrote."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path
from typing import Any

from elements.base import ElementError, Gst, post_error
from elements.portable.pyservicemaker.buffer import Buffer
from elements.portable.pyservicemaker.metadata import BatchMetadata

_callback = threading.local()  # .properties: those of the probe whose operator runs on this thread


class _Overridable(type):
    """Refuses objects whose class overrides ``__init__`` without calling ``super().__init__()``, as pybind11 does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if not hasattr(made, "_initialised"):
            raise TypeError(f"{cls.__module__}.{cls.__name__}.__init__() must be called when overriding __init__")
        return made


class Operator(metaclass=_Overridable):
    """Base of the operators."""

    def __init__(self) -> None:
        self._initialised = True

    def get_property(self, name: str) -> Any:
        """A property of the probe that the operator runs in; None outside of the callback or if it is not set."""
        return (getattr(_callback, "properties", None) or {}).get(name)


class BatchMetadataOperator(Operator):
    """Gets the metadata of each batch. It is not called for buffers without a batch."""

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Override it. The return value is ignored."""
        raise _pure_virtual("BatchMetadataOperator::handle_metadata")


class BufferOperator(Operator):
    """Gets each buffer and decides whether it goes on."""

    def handle_buffer(self, buffer: Buffer) -> bool:
        """Override it. A falsy result, None included, drops the buffer."""
        raise _pure_virtual("BufferOperator::handle_buffer")


class BufferObserver(Operator):
    """Gets each buffer. Usable only through `register_probe`."""

    def handle_buffer(self, buffer: Buffer) -> None:
        """Override it. The return value is ignored."""
        raise _pure_virtual("BufferObserver::handle_buffer")


class BufferRetriever(Operator):
    """Takes the samples of an appsink, through a `Receiver`."""

    def consume(self, buffer: Buffer) -> int:
        """Override it. Return 1 to go on; 0 waits a second; below 0 is a flow error."""
        raise _pure_virtual("BufferRetriever::consume")


class BufferProvider(Operator):
    """Makes the buffers of an appsrc, through a `Feeder`."""

    def generate(self, size: int) -> Buffer:
        """Override it. ``Buffer()`` ends the stream, ``Buffer([])`` says "none now"; ``size`` is a hint in bytes."""
        raise _pure_virtual("BufferProvider::generate")


def _pure_virtual(name: str) -> RuntimeError:
    return RuntimeError(f'Tried to call pure virtual function "{name}"')


def call_with_properties(properties: dict[str, Any], function: Any, argument: Any) -> Any:
    """Call an operator's hook so that its ``get_property`` sees ``properties``."""
    _callback.properties = properties
    try:
        return function(argument)
    finally:
        _callback.properties = None


def report_failure(element: Gst.Element, name: str, operator: Any, error: BaseException, where: str = "") -> None:
    """Post what an operator raised as a bus ERROR of the element that it is attached to, with the trace as debug text.

    NVIDIA's pyservicemaker lets the exception leave a native thread, which aborts the process.

    Args:
        element: source of the message.
        name: of the probe, receiver or feeder.
        operator: the user's object.
        error: what it raised.
        where: source and frame, if known.
    """
    line = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error) if isinstance(error, ElementError) else f"{type(error).__name__}: {error}"
    at = f" at {where}" if where else ""
    post_error(
        element,
        f"{element.get_name()}: operator '{name}' ({type(operator).__name__}) failed{at}: {text} "
        f"[{Path(line.filename).name}:{line.lineno}]",
        "".join(traceback.format_exception(error)),
    )

"""Receiver and Feeder: the ends of a pipeline where the application takes or makes buffers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from elements.base import GObject, Gst
from elements.portable.pyservicemaker.buffer import Buffer
from elements.portable.pyservicemaker.operators import BufferProvider, BufferRetriever, report_failure
from elements.portable.pyservicemaker.probes import Object

log = logging.getLogger("gstorch.pyservicemaker")

_NOTHING_CONSUMED_S = 1.0
_NO_DATA_S = 0.2


class Receiver(Object):
    """Hands the samples of an appsink (``emit-signals`` true, tips ``new-sample``) to a `BufferRetriever`."""

    def __init__(self, name: str, retriever: BufferRetriever, /) -> None:
        if not isinstance(retriever, BufferRetriever):
            raise TypeError(f"Receiver(): incompatible constructor arguments: a BufferRetriever, not {retriever!r}")
        super().__init__(name)
        self._retriever = retriever

    def _attach(self, element: Gst.Element, tips: str) -> None:
        _connect(self, element, tips, {"new-sample": _on_new_sample})


def _on_new_sample(appsink: Gst.Element, receiver: Receiver) -> Gst.FlowReturn:
    try:
        sample = appsink.emit("pull-sample")
        if sample is None:
            return Gst.FlowReturn.EOS
        result = receiver._retriever.consume(Buffer(sample.get_buffer()))
        if not isinstance(result, int):
            raise TypeError(f"consume() returned {result!r}: an int is needed")
    except BaseException as error:
        report_failure(appsink, receiver.name, receiver._retriever, error)
        return Gst.FlowReturn.ERROR
    if result == 0:
        time.sleep(_NOTHING_CONSUMED_S)
    return Gst.FlowReturn.OK if result >= 0 else Gst.FlowReturn.ERROR


class Feeder(Object):
    """Fills an appsrc (tips ``need-data/enough-data``) from a `BufferProvider`, on the appsrc's streaming thread."""

    def __init__(self, name: str, provider: BufferProvider, /) -> None:
        if not isinstance(provider, BufferProvider):
            raise TypeError(f"Feeder(): incompatible constructor arguments: a BufferProvider, not {provider!r}")
        super().__init__(name)
        self._provider = provider

    def _attach(self, element: Gst.Element, tips: str) -> None:
        _connect(self, element, tips, {"need-data": _on_need_data, "enough-data": _on_enough_data})


def _on_need_data(appsrc: Gst.Element, size: int, feeder: Feeder) -> None:
    """Push one buffer, or end the stream. It returns without either only when the pipeline stops."""
    try:
        while appsrc.get_static_pad("src").is_active():
            buffer = feeder._provider.generate(size)
            if not isinstance(buffer, Buffer):
                raise TypeError(f"generate() returned {buffer!r}: a Buffer is needed")
            if buffer._buffer is None:
                appsrc.emit("end-of-stream")
                return
            if buffer._buffer.get_size():
                appsrc.emit("push-buffer", buffer._buffer)
                return
            time.sleep(_NO_DATA_S)
    except BaseException as error:
        report_failure(appsrc, feeder.name, feeder._provider, error)
        appsrc.emit("end-of-stream")


def _on_enough_data(appsrc: Gst.Element, feeder: Feeder) -> None:
    """Nothing to stop: `_on_need_data` pushes one buffer for each call."""


def _connect(owner: Object, element: Gst.Element, tips: str, handlers: dict[str, Callable[..., object]]) -> None:
    signals: Iterable[str] = tips.split("/")
    for signal in signals:
        if signal not in handlers or not GObject.signal_lookup(signal, type(element)):
            log.error("%s: %s has no signal '%s' to connect; tips name it", owner.name, element.get_name(), signal)
            raise RuntimeError("Signal connect failure")
    for signal in signals:
        element.connect(signal, handlers[signal], owner)

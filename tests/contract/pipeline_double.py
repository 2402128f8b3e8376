"""A double of NVIDIA's pyservicemaker as far as a pipeline's life goes, over the portable one, with NVIDIA's traps.

Read from its source (release 9.1 and later): it does not show its GStreamer pipeline; ``start`` never fails; a thread
plays and then runs a main loop that only an end of stream quits; ``wait`` joins that thread; ``stop`` does nothing to
a pipeline that is NULL; probes call nobody while the loop does not run; integers have 32 bits; what an operator
raises ends the process (here: `crashes`).
"""

from __future__ import annotations

import threading
import time
from types import ModuleType
from typing import Any

from elements.base import GLib, Gst
from elements.portable import pyservicemaker as portable

LOOP_DELAY_S = 0.3  # between playing and the loop: far longer than on a real machine
_QUITS = ("Reconnection attempts exceeded for all sources or EOS received.", "Output window was closed")

crashes: list[BaseException] = []


class Pipeline:
    """NVIDIA's has the same private attribute, for something that Python cannot look into."""

    def __init__(self, name: str) -> None:
        self._instance = portable.Pipeline(name)
        self._loop = GLib.MainLoop()
        self._thread = threading.Thread(target=self._run, name="pyservicemaker", daemon=True)

    def add(self, type_name: str, name: str, properties: dict[str, Any] | None = None) -> Pipeline:
        for value in (properties or {}).values():
            if type(value) is int and not -(1 << 31) <= value < 1 << 31:
                raise RuntimeError(f"Unable to cast Python instance of type {type(value)} to C++ type 'int'")
        self._instance.add(type_name, name, properties)
        return self

    def link(self, *args: Any) -> Pipeline:
        self._instance.link(*args)
        return self

    def attach(self, target: str, what: Probe, name: str = "", tips: str = "") -> Pipeline:
        what._operator.loop = self._loop
        self._instance.attach(target, what, name, tips)
        return self

    def start(self) -> Pipeline:
        self._thread.start()
        return self

    def _run(self) -> None:
        bus = self._instance.gst_pipeline.get_bus()
        bus.add_watch(GLib.PRIORITY_DEFAULT, self._on_message)
        if self._instance.gst_pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE:
            bus.remove_watch()
            return
        time.sleep(LOOP_DELAY_S)
        self._loop.run()
        bus.remove_watch()

    def _on_message(self, _bus: Gst.Bus, message: Gst.Message) -> bool:
        final = message.type == Gst.MessageType.ERROR and message.parse_error()[0].message in _QUITS
        if message.type == Gst.MessageType.EOS or final:
            self._loop.quit()
        return True

    def wait(self) -> Pipeline:
        if self._thread.is_alive():
            self._thread.join()
        self._instance.gst_pipeline.set_state(Gst.State.NULL)
        return self

    def stop(self) -> Pipeline:
        if self._instance.gst_pipeline.get_state(0).state != Gst.State.NULL:
            self._instance.gst_pipeline.send_event(Gst.Event.new_eos())
        return self


class _WhileTheLoopRuns(portable.BatchMetadataOperator):
    def __init__(self, operator: portable.BatchMetadataOperator) -> None:
        super().__init__()
        self.operator = operator
        self.loop: GLib.MainLoop | None = None

    def handle_metadata(self, batch_meta: Any) -> None:
        if self.loop is None or not self.loop.is_running():
            return
        try:
            self.operator.handle_metadata(batch_meta)
        except BaseException as error:
            crashes.append(error)


class Probe(portable.Probe):
    def __init__(self, name: str, operator: portable.BatchMetadataOperator, /) -> None:
        super().__init__(name, _WhileTheLoopRuns(operator))


def module() -> ModuleType:
    """The double, to be put into ``sys.modules`` as ``pyservicemaker``."""
    double = ModuleType("pyservicemaker")
    vars(double).update({name: getattr(portable, name) for name in dir(portable) if not name.startswith("__")})
    double.Pipeline, double.Probe = Pipeline, Probe  # type: ignore[attr-defined]
    return double

"""pyservicemaker's Pipeline over plain GStreamer."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any, Self

from elements.base import Gst
from elements.portable.pyservicemaker.appdata import Feeder, Receiver
from elements.portable.pyservicemaker.messages import PipelineMessage
from elements.portable.pyservicemaker.node import Node
from elements.portable.pyservicemaker.playback import Playback
from elements.portable.pyservicemaker.probes import Probe

log = logging.getLogger("gstorch.pyservicemaker")

_NULL_TIMEOUT_S = 10.0
OnMessage = Callable[[PipelineMessage], Any]


class Pipeline:
    """A GStreamer pipeline built node by node.

    ``gst_pipeline`` (the Gst.Pipeline) is an extension of this runtime, for watching the bus, querying and setting
    states; NVIDIA's class does not show it.

    Raises:
        RuntimeError: if ``config_file`` is given: pyservicemaker's pipeline files are not read here.
    """

    def __init__(self, name: str, config_file: str | None = None) -> None:
        Gst.init(None)
        if config_file is not None:
            raise RuntimeError(f"{config_file}: the portable runtime does not read pyservicemaker's pipeline files")
        self.gst_pipeline: Gst.Pipeline = Gst.Pipeline.new(name)
        self._nodes: dict[str, Node] = {}
        self._playback = Playback(self.gst_pipeline)

    def __getitem__(self, name: str) -> Node:
        if name not in self._nodes:
            raise RuntimeError(f"{name} Not found")
        return self._nodes[name]

    # --- building -----------------------------------------------------------------------------------------------------

    def add(self, type_name: str, name: str, properties: dict[str, Any] | None = None) -> Self:
        """Make an element and set its properties. If the name is taken, the first element stays and gets them.

        Raises:
            RuntimeError: "Element creation failed" if there is no such factory.
        """
        element = Gst.ElementFactory.make(type_name, name)
        if element is None:
            log.error("no element factory '%s' (for '%s')", type_name, name)
            raise RuntimeError("Element creation failed")
        if name in self._nodes:
            log.warning("'%s' is there already: the new %s is dropped", name, type_name)
        else:
            self.gst_pipeline.add(element)
            self._nodes[name] = Node(element)
        if properties:
            self[name].set(properties)
        return self

    def link(self, *args: Any) -> Self:
        """``link("a", "b", "c")`` in a row, or ``link(("a", "b"), ("src_hint", "sink_hint"))``.

        Raises:
            RuntimeError: see `linking.link`.
        """
        if len(args) < 2:
            raise Exception("Invalid number of arguments")
        if len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], tuple):
            source, target = args[0]
            self[source].link(self[target], args[1])
            return self
        for source, target in itertools.pairwise(args):
            self[source].link(self[target])
        return self

    def attach(
        self, target: str, what: Any, name: str = "", tips: str = "", properties: dict[str, Any] | None = None
    ) -> Self:
        """Attach a Probe, Receiver or Feeder, or a registered probe by its name.

        Args:
            target: name of the node.
            what: the object; or a name, then ``name`` and ``properties`` are those of the probe that is made.
            name: of the new probe.
            tips: src pad of a probe, signal names of a receiver or feeder.
            properties: of the new probe.
        """
        if isinstance(what, Probe | Receiver | Feeder):
            self[target].attach(what, tips)
        elif isinstance(what, str):
            self[target].attach(Probe.create(what, name), tips)
            if properties:
                self[target].find(name).set(properties)  # type: ignore[union-attr]
        else:
            raise Exception("Unsupported object type for Pipeline.attach")
        return self

    # --- running ------------------------------------------------------------------------------------------------------

    def start(self, on_message: OnMessage | None = None) -> Self:
        """Play, on a thread of the pipeline's own; returns at once. A failure shows on the bus and in the log only.

        Args:
            on_message: called on that thread with each `PipelineMessage`.

        Raises:
            RuntimeError: if it was started before; a pipeline runs once.
        """
        self._playback.begin(_checked(on_message))
        self._playback.run()
        return self

    def prepare(self, on_message: OnMessage | None = None) -> Self:
        """First half of `start`: go to PAUSED, on this thread."""
        self._playback.begin(_checked(on_message))
        self._playback.pause()
        return self

    def activate(self) -> Self:
        """Second half of `start`, after `prepare`.

        Raises:
            RuntimeError: without `prepare`.
        """
        self._playback.run()
        return self

    def wait(self) -> Self:
        """Wait for the end of the stream, then take everything down; at most 10 s for the latter.

        As in NVIDIA's module an error on the bus does not end it. Ctrl-C does, unlike there.
        """
        self._playback.join()
        self._shut_down()
        return self

    def stop(self) -> Self:
        """Send end-of-stream and return; `wait` sees the end. Does nothing to a pipeline that does not run."""
        self._playback.stop()
        return self

    def seek(self, seconds: float) -> Self:
        """Go to a position: after a preroll if the pipeline is not started yet, else now. A failure is logged only."""
        self._playback.seek(int(seconds * Gst.SECOND))
        return self

    def _shut_down(self) -> None:
        """Set NULL, with a limit: an element that hangs must not hang the application."""
        closing = threading.Thread(target=self.gst_pipeline.set_state, args=(Gst.State.NULL,), daemon=True)
        closing.start()
        closing.join(_NULL_TIMEOUT_S)
        if closing.is_alive():
            log.error("%s did not stop within %.0f s", self.gst_pipeline.get_name(), _NULL_TIMEOUT_S)


def _checked(on_message: OnMessage | None) -> OnMessage | None:
    if on_message is not None and not callable(on_message):
        raise Exception("Message callback is not callable")
    return on_message

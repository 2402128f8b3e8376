"""Stand-in for nveglglessink: a window by whichever video sink the machine has."""

from __future__ import annotations

import os
from typing import Any

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    pad_template,
    post_error,
)
from elements.portable.decoding import chain, make
from elements.portable.download import Download

_X11_SINKS = ("glimagesink", "xvimagesink", "ximagesink")
_WAYLAND_SINKS = ("glimagesink", "waylandsink")
_CLOSED = "window was closed"  # in the text of GStreamer's own window sinks

# Properties that go to the window sink where it has them
_PASSED_ON = (
    "sync",
    "async",
    "qos",
    "max-lateness",
    "enable-last-sample",
    "ts-offset",
    "throttle-time",
    "force-aspect-ratio",
)


def window_sink(environment: dict[str, str] | os._Environ[str] = os.environ) -> str:
    """Name of the window sink for this desktop.

    Raises:
        ElementError: if there is no display, or no sink for it.
    """
    wayland, x11 = bool(environment.get("WAYLAND_DISPLAY")), bool(environment.get("DISPLAY"))
    if not wayland and not x11:
        raise ElementError(
            "there is no display (DISPLAY and WAYLAND_DISPLAY are not set); use fakesink, or the output 'null' in a "
            "pipeline definition"
        )
    wanted = (_WAYLAND_SINKS if wayland else ()) + (_X11_SINKS if x11 else ())
    for name in wanted:
        if Gst.ElementFactory.find(name):
            return name
    raise ElementError(
        f"none of {', '.join(dict.fromkeys(wanted))} is installed; "
        "install gstreamer1.0-gl (Debian and Ubuntu) or gstreamer1.0-x"
    )


class NvEglGlesSink(PropertyTable, Gst.Bin):
    """``download ! videoconvert ! <window sink>``.

    When the user closes the window, the element message ``window-closed`` appears on the bus and frames are dropped
    from then on, so that other outputs go on.
    """

    __gtype_name__ = "NvEglGlesSink"
    __gstmetadata__ = ("nveglglessink (CPU)", "Sink/Video", "Shows video in a window", AUTHOR)
    __gsttemplates__ = (
        pad_template(
            "sink",
            Gst.PadDirection.SINK,
            Gst.PadPresence.ALWAYS,
            f"video/x-raw({NVMM}), format={{ BGRx, RGBA, I420, NV12, BGR, RGB }}; "
            "video/x-raw, format={ BGRx, RGBA, I420, NV12, BGR, RGB, RGBx, BGRA, GRAY8 }",
        ),
    )
    PROPERTIES = (
        Property("sync", bool, True, "Show frames at their time"),
        Property("async", bool, True, "Wait for a first frame when starting"),
        Property("qos", bool, True, "Tell upstream about late frames"),
        Property("max-lateness", "int64", 5000000, "Frames later than this are not shown, ns; -1: all are", -1),
        Property("enable-last-sample", bool, True, "Keep the last frame"),
        Property("ts-offset", "int64", 0, "Shift of the time to show frames at, ns"),
        Property("throttle-time", "uint64", 0, "Least time between frames, ns"),
        Property("force-aspect-ratio", bool, True, "Keep the picture's shape when the window's changes"),
        Property("create-window", bool, True, "Open a window", effect=False),
        *(
            Property(name, "uint", default, "Place and size of the window", effect=False)
            for name, default in (("window-x", 10), ("window-y", 10), ("window-width", 0), ("window-height", 0))
        ),
        Property("rows", "uint", 1, "Rows of windows", effect=False),
        Property("columns", "uint", 1, "Columns of windows", effect=False),
        Property("winsys", str, "x11", "Window system", effect=False),
        Property("show-latency", bool, False, "Print latency", effect=False),
        Property("profile", "uint", 0, "Profiling", effect=False),
        Property("gpu-id", "uint", 0, "GPU", effect=False),
        Property("ivisurf-id", "uint", 0, "IVI surface", effect=False),
        Property("bufapi-version", bool, True, "Buffer API", effect=False),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self._sink: Gst.Element | None = None
        self._closed = False
        self._download, self._convert = Download(), make("videoconvert")
        chain(self, self._download, self._convert)
        target = self._download.get_static_pad("sink")
        self.add_pad(Gst.GhostPad.new_from_template("sink", target, self.get_pad_template("sink")))

    def property_changed(self, name: str, value: Any) -> None:
        if self._sink is not None:
            self._pass_on(name, value)

    def _pass_on(self, name: str, value: Any) -> None:
        if self._sink is not None and name in _PASSED_ON and self._sink.find_property(name):
            self._sink.set_property(name, value)

    @guarded(Gst.StateChangeReturn.FAILURE)
    def do_change_state(self, transition: Gst.StateChange) -> Gst.StateChangeReturn:
        if transition == Gst.StateChange.NULL_TO_READY:
            self.warn_of_ignored_properties()
            self._closed = False
            try:
                self._open()
            except ElementError as error:
                post_error(self, f"{self.get_name()}: {error}", "", Gst.ResourceError, Gst.ResourceError.OPEN_WRITE)
                return Gst.StateChangeReturn.FAILURE
        return Gst.Bin.do_change_state(self, transition)

    def _open(self) -> None:
        if self._sink is not None:
            return
        self._sink = make(window_sink())
        for name in _PASSED_ON:
            self._pass_on(name, self.values[name])
        self.add(self._sink)
        self._convert.link(self._sink)

    def do_handle_message(self, message: Gst.Message) -> None:
        if message.type == Gst.MessageType.ERROR and _CLOSED in message.parse_error()[0].message:
            if not self._closed:
                self._closed = True
                self._download.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, _drop)
                structure = Gst.Structure.new_empty("window-closed")
                Gst.Bin.do_handle_message(self, Gst.Message.new_element(self, structure))
            return
        Gst.Bin.do_handle_message(self, message)


def _drop(_pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    return Gst.PadProbeReturn.DROP


GObject.type_register(NvEglGlesSink)

FACTORIES: dict[str, type[Gst.Element]] = {"nveglglessink": NvEglGlesSink}

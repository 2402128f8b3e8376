"""nvurisrcbin with a camera: user and password, power loss, silence."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from itertools import pairwise

import pytest
from gi.repository import Gst

from tests.media import Batches, watch
from tests.ports import HOST
from tests.rtsp_server import ROOT, RtspServer
from tests.waiting import SOON_S, wait_for

END = Gst.MessageType.EOS | Gst.MessageType.ERROR


class Viewer:
    """A playing pipeline ``nvurisrcbin ! fakesink``."""

    def __init__(self, uri: str, **properties: object) -> None:
        values = {"gstorch-reconnect-backoff-max": 0.5} | {k.replace("_", "-"): v for k, v in properties.items()}
        text = " ".join(f"{name}={value}" for name, value in values.items())
        self.pipeline = Gst.parse_launch(f'nvurisrcbin name=s uri="{uri}" {text} ! fakesink name=out sync=false')
        self.seen: Batches = watch(self.pipeline, "out")
        self.names: list[str] = []
        self.end: Gst.Message | None = None

    def __enter__(self) -> Viewer:
        self.pipeline.set_state(Gst.State.PLAYING)
        return self

    def __exit__(self, *_: object) -> None:
        self.pipeline.set_state(Gst.State.NULL)

    def read_bus(self) -> None:
        while (message := self.pipeline.get_bus().pop_filtered(END | Gst.MessageType.ELEMENT)) is not None:
            if message.type == Gst.MessageType.ELEMENT:
                self.names.append(message.get_structure().get_name())
            else:
                self.end = self.end or message

    def has(self, name: str) -> bool:
        self.read_bus()
        return name in self.names

    def more_frames(self, count: int = 5) -> bool:
        had = len(self.seen.times)
        return wait_for(lambda: len(self.seen.times) >= had + count)


def test_power_loss_and_silence_are_survived_on_the_same_pad():
    with RtspServer() as server, Viewer(server.uri, rtsp_reconnect_interval=3) as viewer:
        assert viewer.more_frames()
        pad = viewer.pipeline.get_by_name("out").get_static_pad("sink").get_peer()

        server.stop()
        assert wait_for(lambda: viewer.has("source-lost"))
        server.start()
        assert wait_for(lambda: viewer.has("source-recovered"))
        assert viewer.more_frames()

        viewer.names.clear()
        server.freeze()
        assert wait_for(lambda: viewer.has("source-lost"))
        server.thaw()
        assert wait_for(lambda: viewer.has("source-recovered"))
        assert viewer.more_frames()

        viewer.read_bus()
        assert viewer.end is None
        assert viewer.pipeline.get_by_name("out").get_static_pad("sink").get_peer() == pad
        times = viewer.seen.times
        assert all(earlier < later for earlier, later in pairwise(times))


def test_user_and_password():
    with RtspServer("me", "p@ ss:%/ä") as server:
        with Viewer(server.uri) as viewer:
            assert viewer.more_frames()
        with Viewer(server.uri.replace("me:", "you:")) as viewer:
            assert wait_for(lambda: viewer.read_bus() or viewer.end is not None)
            error, debug = viewer.end.parse_error()
            assert error.message == f"rtsp://127.0.0.1:{server.port}/camera: user or password is wrong or missing"
            assert not any(secret in debug for secret in ("p@ ss", "p%40"))


def test_the_end_is_an_error_without_reconnection():
    with RtspServer() as server, Viewer(server.uri) as viewer:
        assert viewer.more_frames()
        server.stop()
        assert wait_for(lambda: viewer.read_bus() or viewer.end is not None)
        assert viewer.end.parse_error()[0].message == f"{server.uri}: lost: the stream ended"


@pytest.mark.parametrize("connected", [True, False])
def test_attempts_run_out(connected: bool):
    server = RtspServer()
    if connected:
        server.start()
    with Viewer(server.uri, rtsp_reconnect_interval=3, rtsp_reconnect_attempts=2) as viewer:
        if connected:
            assert viewer.more_frames()
            server.stop()
        assert wait_for(lambda: viewer.has("reconnect-attempt-exceeded"))
        assert viewer.names.count("source-lost") == 2
        assert wait_for(lambda: viewer.read_bus() or viewer.end is not None)
        # a stream that had begun ends; one that never began fails
        assert viewer.end.type == (Gst.MessageType.EOS if connected else Gst.MessageType.ERROR)


def test_a_state_change_between_two_steps_of_an_attempt_does_not_keep_the_camera_away():
    """A thread of GStreamer may bring the bin to PLAYING when a new decoding element is in it and not yet started."""
    server = RtspServer()
    viewer = Viewer(server.uri, rtsp_reconnect_interval=3, gstorch_reconnect_backoff_min=0.01)
    source = viewer.pipeline.get_by_name("s")
    returned: list[Gst.StateChangeReturn] = []

    def change_state(_bin: Gst.Bin, _new: Gst.Element) -> None:
        if not returned and viewer.has("source-lost") and source.current_state == Gst.State.PLAYING:
            returned.append(source.set_state(Gst.State.PLAYING))

    source.connect("element-added", change_state)
    with viewer:
        assert wait_for(lambda: returned)
        with server:
            assert viewer.more_frames()


def test_an_application_can_end_a_live_source():
    with RtspServer() as server, Viewer(server.uri, rtsp_reconnect_interval=5) as viewer:
        assert viewer.more_frames()
        viewer.pipeline.send_event(Gst.Event.new_eos())
        assert wait_for(lambda: viewer.read_bus() or viewer.end is not None)
        assert viewer.end.type == Gst.MessageType.EOS


def test_the_server_of_a_killed_test_ends():
    code = "import time; from tests.rtsp_server import *; s = RtspServer(); s.start(); print(s.port, flush=True)"
    code += "; time.sleep(999)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as test:
        port = int(test.stdout.readline())
        with socket.create_connection((HOST, port)):
            test.kill()
    wait_for(lambda: is_closed(port), SOON_S)


def is_closed(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == errno.ECONNREFUSED

"""An RTSP camera on 127.0.0.1 for tests: a helper process that can be killed, restarted and frozen.

As a program: ``python -m tests.rtsp_server PORT [USER PASSWORD]``. It ends when its standard input does, so that none
outlives a test that is killed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from tests.ports import HOST, free_port

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT, RATE = 320, 240, 15
LISTENING = "listening"
_MOUNT = "/camera"
_STREAM = (
    f"( videotestsrc is-live=true pattern=ball ! video/x-raw,format=I420,width={WIDTH},height={HEIGHT},"
    f"framerate={RATE}/1 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max={RATE} ! "
    "rtph264pay name=pay0 pt=96 config-interval=1 )"
)


class RtspServer:
    """A camera with a moving ball, 320x240 at 15 frames/s. Use it in a ``with`` statement.

    ``stop`` and ``start`` keep the port, so a client can come back to the same URI.
    """

    def __init__(self, user: str = "", password: str = "") -> None:
        self.port = free_port()
        self._credentials = [user, password] if user else []
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """The URI without user and password."""
        return f"rtsp://127.0.0.1:{self.port}{_MOUNT}"

    @property
    def uri(self) -> str:
        """The URI with user and password, if the server asks for them."""
        login = ":".join(quote(part, safe="") for part in self._credentials)
        return self.address.replace("://", f"://{login}@") if login else self.address

    def start(self) -> None:
        """Start the process and wait until it listens."""
        command = [sys.executable, "-m", "tests.rtsp_server", str(self.port), *self._credentials]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        if self._process.stdout.readline().strip() != LISTENING:
            raise RuntimeError(f"the RTSP server ended with {self._process.wait()}")

    def stop(self) -> None:
        """Kill the process, as when a camera loses its power."""
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin
            self._process.stdin.close()
            self._process = None

    def freeze(self) -> None:
        """Stop sending with all connections open."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on after `freeze`."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> RtspServer:
        self.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()


def serve(port: int, user: str = "", password: str = "") -> None:
    """Serve until killed, or until the standard input ends."""
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer

    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address(HOST)
    server.set_service(str(port))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(_STREAM)
    factory.set_shared(True)
    if user:
        auth = GstRtspServer.RTSPAuth()
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "viewer")
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
        server.set_auth(auth)
        role = Gst.Structure.new_empty("viewer")
        role.set_value("media.factory.access", True)
        role.set_value("media.factory.construct", True)
        factory.add_role_from_structure(role)
    server.get_mount_points().add_factory(_MOUNT, factory)
    if not server.attach(None):
        sys.exit(f"cannot listen on port {port}")
    loop = GLib.MainLoop()
    # by way of the loop: it may not run yet when the input ends
    threading.Thread(target=lambda: (sys.stdin.read(), GLib.idle_add(loop.quit)), daemon=True).start()
    print(LISTENING, flush=True)
    loop.run()


if __name__ == "__main__":
    serve(int(sys.argv[1]), *sys.argv[2:4])

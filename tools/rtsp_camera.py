"""A camera to try things out with: ``python -m tools.rtsp_camera [CLIP] [--port 8554]`` plays a clip for ever.

Without a clip it makes a small one: a street, in the picture the demo's detector was trained for.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import gi

gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, GstRtspServer  # noqa: E402

from pipelines.runtime import register_elements  # noqa: E402
from tools.scenes.make_clips import Clip, make_clip  # noqa: E402

STREET = Clip("street", 38, "street", 640, 360, fps=15, duration=20.0)
MOUNT = "/street"
_STREAM = (
    '( nvurisrcbin uri="{uri}" file-loop=true ! nvvideoconvert ! video/x-raw, format=I420 '
    "! x264enc tune=zerolatency speed-preset=veryfast key-int-max=30 ! rtph264pay name=pay0 pt=96 config-interval=1 )"
)


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clip", type=Path, nargs="?", help="video to play; default: a generated street")
    parser.add_argument("--port", type=int, default=8554)
    options = parser.parse_args()
    if options.clip and not options.clip.is_file():
        parser.error(f"there is no video '{options.clip}'")
    if not 0 < options.port < 1 << 16:
        parser.error(f"--port {options.port}: a port is a number from 1 to 65535")
    clip = options.clip or make_clip(STREET, Path(tempfile.mkdtemp(prefix="gstorch-camera-")))
    serve(clip.resolve(strict=True).as_uri(), options.port)


def serve(uri: str, port: int) -> None:
    """Serve the video at ``uri`` as ``rtsp://0.0.0.0:port/street``; all viewers share one stream."""
    register_elements()
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(_STREAM.format(uri=uri))
    factory.set_shared(True)
    server = GstRtspServer.RTSPServer()
    server.set_address("0.0.0.0")
    server.set_service(str(port))
    server.get_mount_points().add_factory(MOUNT, factory)
    if not server.attach(None):
        raise SystemExit(f"port {port} cannot be opened: is another camera running?")
    print(f"rtsp://localhost:{port}{MOUNT}", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()

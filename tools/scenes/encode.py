"""H.264 in MP4 through GStreamer (`x264enc`, `mp4mux`)."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import gi
import numpy as np
from numpy.typing import NDArray

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

_PIPELINE = (
    "appsrc name=frames format=time block=true max-buffers=4 ! videoconvert ! video/x-raw,format=I420 ! "
    "x264enc pass=qual quantizer=23 speed-preset=superfast threads=1 key-int-max=50 ! h264parse ! "
    "mp4mux faststart=true ! filesink name=file"
)


def write_mp4(path: Path, pictures: Iterable[NDArray[np.uint8]], width: int, height: int, fps: float) -> None:
    """Encodes RGB pictures to 8-bit 4:2:0 H.264.

    Args:
        path: the file to write.
        pictures: frames of (height, width, 3) uint8 RGB.
        width, height: even sizes in pixels.
        fps: frames per second.

    Raises:
        RuntimeError: GStreamer could not encode or write, with its reason.
    """
    Gst.init(None)
    pipeline = Gst.parse_launch(_PIPELINE)
    pipeline.get_by_name("file").set_property("location", str(path))
    source = pipeline.get_by_name("frames")
    rate = Fraction(fps).limit_denominator(1001)
    caps = f"video/x-raw,format=RGB,width={width},height={height},framerate={rate.numerator}/{rate.denominator}"
    source.set_property("caps", Gst.Caps.from_string(caps))
    pipeline.set_state(Gst.State.PLAYING)
    bus = pipeline.get_bus()
    try:
        for index, picture in enumerate(pictures):
            buffer = Gst.Buffer.new_wrapped(_padded(picture).tobytes())
            buffer.pts = int(index * Gst.SECOND / rate)
            buffer.duration = int(Gst.SECOND / rate)
            if source.emit("push-buffer", buffer) != Gst.FlowReturn.OK:
                break
        source.emit("end-of-stream")
        message = bus.timed_pop_filtered(60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        if message is None:
            raise RuntimeError(f"{path}: the encoder did not finish within 60 s")
        if message.type == Gst.MessageType.ERROR:
            error, detail = message.parse_error()
            raise RuntimeError(f"{path}: {error.message} ({detail})")
    finally:
        pipeline.set_state(Gst.State.NULL)


def _padded(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows padded to a multiple of four bytes, which is how GStreamer lays out RGB."""
    row_bytes = picture.shape[1] * 3
    rows = picture.reshape(picture.shape[0], row_bytes)
    return np.pad(rows, ((0, 0), (0, -row_bytes % 4))) if row_bytes % 4 else np.ascontiguousarray(rows)

"""The queue behind a source's decoder, with a count of what it drops."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from elements.base import Gst
from elements.portable.decoding import make

_DROPS_NEW = 1  # values of "leaky"


def frame_queue(frames: int, leaky: int, dropped: Callable[[int], None]) -> Gst.Element:
    """A queue of at most ``frames`` frames, not added yet.

    ``leaky`` is that of GStreamer's queue: 0 none, 1 drops new frames, 2 the oldest. ``dropped`` is told how many
    were, on a streaming thread.
    """
    queue = make("queue", max_size_buffers=frames, max_size_bytes=0, max_size_time=0, leaky=leaky)
    if leaky:
        _count_drops(queue, leaky, dropped)
    return queue


def _count_drops(queue: Gst.Element, leaky: int, dropped: Callable[[int], None]) -> None:
    """Compare the timestamps that enter with those that leave.

    The queue says that it is full, not what it drops, and its level cannot be read at the moment when in and out agree.
    So a drop is told when the next frame that was kept leaves. After the last one only new frames can be missing, which
    the end of the stream shows.
    """
    inside: deque[int] = deque()

    def enter(_pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        inside.append(info.get_buffer().pts)
        return Gst.PadProbeReturn.OK

    def leave(_pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        pts, missing = info.get_buffer().pts, 0
        while inside.popleft() != pts:
            missing += 1
        if missing:
            dropped(missing)
        return Gst.PadProbeReturn.OK

    def end(_pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if info.get_event().type == Gst.EventType.EOS:
            dropped(len(inside))
        return Gst.PadProbeReturn.OK

    queue.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, enter)
    source = queue.get_static_pad("src")
    source.add_probe(Gst.PadProbeType.BUFFER, leave)
    if leaky == _DROPS_NEW:
        source.add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, end)

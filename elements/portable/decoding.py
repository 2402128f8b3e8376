"""What follows every software decoder: upright 8-bit frames, labelled NVMM."""

from __future__ import annotations

import itertools

from elements.base import ElementError, Gst
from elements.portable.relabel import Relabel

# What `elements.portable.surface` reads as it is. Everything else (10 bit, 4:2:2, planar alpha) is converted once here.
FRAME_FORMATS = "{ I420, NV12, RGB, BGR, RGBx, BGRx, RGBA, BGRA, GRAY8 }"

# Name of the property that limits the worker threads of a decoder. One thread is the default: with several sources
# each of them keeps a core busy, and frame threads only add latency and memory.
_THREAD_PROPERTIES = ("max-threads", "threads", "n-threads")

_NEVER_DECODED = (
    "text/",
    "subpicture/",
    "closedcaption/",
    "meta/",
    "application/x-subtitle",
    "application/x-ssa",
)

DECODE_ALL, DECODE_NON_REF, DECODE_KEY = 0, 1, 2


def make(factory: str, **properties: object) -> Gst.Element:
    """A new element; property names are written with underscores, enum values by nick.

    Raises:
        ElementError: naming the factory, if it is not installed.
    """
    element = Gst.ElementFactory.make(factory, None)
    if element is None:
        raise ElementError(
            f"the GStreamer element '{factory}' is not installed (Debian: gstreamer1.0-plugins-base, -good, -bad, "
            "-ugly and gstreamer1.0-libav)"
        )
    for name, value in properties.items():
        if isinstance(value, str):
            Gst.util_set_object_arg(element, name.replace("_", "-"), value)
        else:
            element.set_property(name.replace("_", "-"), value)
    return element


def chain(container: Gst.Bin, *elements: Gst.Element) -> None:
    """Add the elements to ``container`` and link them in order.

    Raises:
        ElementError: naming the two elements that do not link.
    """
    for element in elements:
        container.add(element)
    for upstream, downstream in itertools.pairwise(elements):
        if not upstream.link(downstream):
            raise ElementError(f"{upstream.get_name()} does not link to {downstream.get_name()}")


def is_wanted(stream: Gst.Caps, audio: bool) -> bool:
    """Whether to go on decoding a stream: one that nobody uses must not be able to do harm."""
    kind = stream[0].get_name()
    return audio if kind.startswith("audio/") else not kind.startswith(_NEVER_DECODED)


def is_video_decoder(element: Gst.Element) -> bool:
    """Whether the element's class says that it decodes video."""
    factory = element.get_factory()
    klass = factory.get_metadata("klass") if factory else ""
    return "Decoder" in (klass or "") and "Video" in (klass or "") and not isinstance(element, Gst.Bin)


def set_up_decoder(decoder: Gst.Element, threads: int, skip: int = DECODE_ALL) -> None:
    """Limit a decoder's threads, and keep it from dropping frames because a sink is late.

    ``skip`` is DeepStream's dec-skip-frames: all frames, no frames that others don't refer to, key frames only.
    """
    for name in _THREAD_PROPERTIES:
        if decoder.find_property(name):
            decoder.set_property(name, threads)
    if decoder.find_property("qos"):
        decoder.set_property("qos", False)
    if decoder.find_property("output-corrupt"):
        decoder.set_property("output-corrupt", True)
    if skip == DECODE_NON_REF and decoder.find_property("skip-frame"):
        decoder.set_property("skip-frame", 1)
    if skip == DECODE_KEY:
        decoder.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, _drop_delta_units)


def keep_each(pad: Gst.Pad, interval: int) -> None:
    """Let only the first of every ``interval`` buffers through ``pad``; 0 and 1 let all through."""
    if interval > 1:
        numbers = itertools.count()
        verdicts = {True: Gst.PadProbeReturn.OK, False: Gst.PadProbeReturn.DROP}
        pad.add_probe(Gst.PadProbeType.BUFFER, lambda *_: verdicts[next(numbers) % interval == 0])


def _drop_delta_units(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    delta = info.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT)
    return Gst.PadProbeReturn.DROP if delta else Gst.PadProbeReturn.OK


def frames_to_nvmm(for_source: bool) -> list[Gst.Element]:
    """The elements between a decoder and an NVMM pad, in order, neither added nor linked.

    For a source, they also turn the picture as its orientation tag says, and rewrite the timestamps to running time: it
    begins with 0 where a file's own do not (edit lists of B-frames), and keeps rising over repeats and reconnections.
    """
    elements = [make("videoconvert", qos=False), make("capsfilter", caps=f"video/x-raw, format={FRAME_FORMATS}")]
    if for_source:
        elements += [make("videoflip", video_direction="auto", qos=False), make("identity", single_segment=True)]
    return [*elements, Relabel()]

"""NVIDIA's own decoder and converter among our stand-ins: GPU decoding on machines that have their pip wheel, no SDK.

The elements behind our nvstreammux get our batches, which NVIDIA's elements would take for theirs and crash. So beside
our nvstreammux only two of NVIDIA's are used: nvv4l2decoder, and nvvideoconvert inside of nvurisrcbin, in front of the
stream mux, where buffers hold one real NVMM frame each. For everybody else "nvvideoconvert" is our stand-in then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from elements.base import NVMM, ElementError, Gst
from elements.portable import cuda
from elements.portable.decoded_frames import DecodedFrames
from elements.portable.decoding import FRAME_FORMATS, make
from elements.portable.queries import ask_frames_held

log = logging.getLogger("gstorch.nvidia")

DECODER, CONVERTER = "nvv4l2decoder", "nvvideoconvert"
_PLUGINS = {DECODER: "nvvideo4linux2", CONVERTER: "nvvideoconvert"}

# nvurisrcbin's properties that are the decoder's own
DECODER_PROPERTIES = ("gpu-id", "cudadec-memtype", "num-extra-surfaces", "low-latency-mode")

_TRY, _SKIP = 0, 2  # GstAutoplugSelectResult, a type that is not introspected

_kept: dict[str, Gst.ElementFactory] = {}


def is_ours(factory: Gst.ElementFactory) -> bool:
    """Whether a factory is a stand-in: those registered in process belong to no plugin, others to Python's loader."""
    return factory.get_plugin_name() in (None, "python")


def keep() -> None:
    """Remember NVIDIA's factories before a stand-in of the same name takes the place of one in the registry.

    Their plugins are loaded now: one that is loaded later would take the place back.
    """
    for name, plugin_name in _PLUGINS.items():
        factory = Gst.ElementFactory.find(name)
        if name not in _kept and factory and is_ours(factory):  # Python's loader was first
            plugin = Gst.Registry.get().find_plugin(plugin_name)
            factory = Gst.ElementFactory.find(name) if plugin and plugin.load() else None
        loaded = factory.load() if factory and not is_ours(factory) else None
        if loaded is not None:
            _kept[name] = loaded


def decodes_on_gpu() -> bool:
    """Whether a stand-in for nvurisrcbin decodes with NVIDIA's elements: there are both, and a GPU."""
    if not cuda.device_count():
        return False
    if _PLUGINS.keys() != _kept.keys():
        keep()
    return _PLUGINS.keys() == _kept.keys()


def frames_in_gpu_memory(values: Mapping[str, Any]) -> list[Gst.Element]:
    """The elements between a decoder and a source's NVMM pad, in order, neither added nor linked.

    They give NV12 frames: the decoder's own samples in memory of the converter's, so that decoders do not run out of
    frames while a batch is at work. RGB of the converter's making, and frames that it turns upright, would not be the
    CPU's. Frames of software decoders stay in host memory. ``values`` are nvurisrcbin's properties.
    """
    accepted = f"video/x-raw({NVMM}); video/x-raw, format={FRAME_FORMATS}"
    converter = _kept[CONVERTER].create(None)
    if converter is None:
        raise ElementError(f"NVIDIA's {CONVERTER} is in GStreamer's registry, but cannot be made")
    converter.set_property("gpu-id", values["gpu-id"])
    converter.set_property("disable-passthrough", True)
    converter.get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_DOWNSTREAM, _keep_enough_frames)
    return [
        make("videoconvert", qos=False),
        make("capsfilter", caps=accepted),
        DecodedFrames(converter),
        make("identity", single_segment=True),
    ]


def is_its_decoder(factory: Gst.ElementFactory | None) -> bool:
    """Whether a factory is that of NVIDIA's nvv4l2decoder. Several objects may stand for it."""
    return factory is not None and factory.get_name() == DECODER and not is_ours(factory)


def set_up_decoder(decoder: Gst.Element, values: Mapping[str, Any]) -> None:
    """Hand nvurisrcbin's properties to the decoder, and keep it from dropping frames because a sink is late."""
    decoder.set_property("qos", False)
    decoder.set_property("skip-frames", int(values["dec-skip-frames"]))
    for name in DECODER_PROPERTIES:
        decoder.set_property(name, int(values[name]))


def select_decoder(
    _inner: Gst.Element, _pad: Gst.Pad, caps: Gst.Caps, factory: Gst.ElementFactory, location: str
) -> int:
    """uridecodebin's "autoplug-select": passes over NVIDIA's decoder where it would fail, or be inexact without need.

    Of H.264 it decodes 8 bit 4:2:0 only. A software decoder takes its place, which is said. Of pictures of odd size its
    chroma lies a row lower than it says, and the last row is lost, so that a software decoder is preferred.
    """
    if not is_its_decoder(factory):
        return _TRY
    if _is_decoded_by_it(caps):
        return _SKIP if _is_of_odd_size(caps) and _has_another_decoder(caps) else _TRY
    chroma, depth = _sampling(caps)
    log.warning(
        "%s: this H.264 is %s of %d bit; the GPU decodes 8 bit 4:2:0 only, so that a software decoder is needed; "
        "to do without, re-encode it (ffmpeg -i IN -pix_fmt yuv420p OUT)",
        location,
        chroma,
        depth,
    )
    return _SKIP


def select_any_other_decoder(_inner: Gst.Element, _pad: Gst.Pad, caps: Gst.Caps, factory: Gst.ElementFactory) -> int:
    """The same for looks into files: passes over NVIDIA's decoder also wherever there is another one.

    Opening it takes longer than decoding a frame.
    """
    passed_over = is_its_decoder(factory) and (_has_another_decoder(caps) or not _is_decoded_by_it(caps))
    return _SKIP if passed_over else _TRY


def _is_decoded_by_it(caps: Gst.Caps) -> bool:
    chroma, depth = _sampling(caps)
    return caps[0].get_name() != "video/x-h264" or (chroma in (None, "4:2:0", "4:0:0") and depth in (None, 8))


def _sampling(caps: Gst.Caps) -> tuple[str | None, int | None]:
    """Chroma format and bits per sample, as far as they are told."""
    told, depth = caps[0].get_uint("bit-depth-luma")
    return caps[0].get_string("chroma-format"), depth if told else None


def _is_of_odd_size(caps: Gst.Caps) -> bool:
    return any(caps[0].get_int(side)[1] % 2 for side in ("width", "height"))


def _has_another_decoder(caps: Gst.Caps) -> bool:
    kinds = Gst.ELEMENT_FACTORY_TYPE_DECODER | Gst.ELEMENT_FACTORY_TYPE_MEDIA_VIDEO
    decoders = Gst.ElementFactory.list_get_elements(kinds, Gst.Rank.MARGINAL)
    fitting = Gst.ElementFactory.list_filter(decoders, caps, Gst.PadDirection.SINK, False)
    return any(not is_its_decoder(decoder) for decoder in fitting)


def _keep_enough_frames(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    """Let the stream mux and what follows it hold as many frames as they say; with fewer, batches never fill up."""
    if info.get_event().type == Gst.EventType.CAPS:
        converter = pad.get_parent_element()
        held = ask_frames_held(converter.get_static_pad("src")) or 0
        converter.set_property("output-buffers", max(held, converter.get_property("output-buffers")))
    return Gst.PadProbeReturn.OK

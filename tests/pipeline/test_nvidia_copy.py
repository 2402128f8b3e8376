"""NVIDIA's converter as a plain copy, with plain elements in its place and frames that only look like NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from gi.repository import Gst

from elements.base import AUTHOR, GObject, GstBase, keep_floating, sink_and_src
from elements.portable import cuda, nvidia, nvmm
from elements.portable.decoding import chain
from elements.portable.frames import frames_of
from elements.portable.nvidia_copy import ExactCopy
from elements.portable.orientation import ORIENTATIONS
from elements.portable.video_buffer import VideoLayout, picture_of
from tests.media import finish, watch
from tests.nvmm_memory import CUDA_DEVICE, NV12, NV12_709, P010_709, RGB, NvmmFrame

SIZE = (64, 48)
TAIL = "! identity name=converter ! capsfilter name=copied caps=video/x-raw(ANY),format=NV12 ! identity name=last"


def fields_along(pipeline: Gst.Pipeline) -> list[list[object]]:
    """Colours, width, height and orientation that caps say inside of the converter and behind it, as frames come."""
    elements = [pipeline.get_by_name(name) for name in ("converter", "last")]
    found: list[list[object]] = []

    def look(_pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        for element in elements:
            stream = element.get_static_pad("sink").get_current_caps()[0]
            found.append([stream.get_value(name) for name in ("colorimetry", "width", "height", "orientation")])
        return Gst.PadProbeReturn.REMOVE

    elements[1].get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, look)
    assert finish(pipeline).end == "eos"
    return found


@pytest.mark.parametrize("colors", ["bt601", "bt709", "1:4:16:4", "bt2020", None])
def test_the_converter_sees_bt709_and_what_follows_sees_the_streams_own(colors: str | None) -> None:
    said = f",colorimetry=(string){colors}" if colors else ""
    caps = f"video/x-raw,format=NV12,width=64,height=720,framerate=30/1{said}"
    pipeline = Gst.parse_launch(
        f"videotestsrc num-buffers=3 ! capssetter caps={caps} replace=true {TAIL} ! fakesink name=out"
    )
    ExactCopy(pipeline.get_by_name("converter"), pipeline.get_by_name("copied"))
    seen = watch(pipeline, "out")
    assert fields_along(pipeline) == [["bt709", 64, 720, None], [colors, 64, 720, "rotate-0"]]
    assert len(seen.times) == 3


# --- orientation ------------------------------------------------------------------------------------------------------


def noise(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Y and interleaved Cb, Cr."""
    rng = np.random.default_rng(width)
    return rng.integers(0, 256, (height, width), np.uint8), rng.integers(0, 256, (height // 2, width), np.uint8)


def feed(pipeline: Gst.Pipeline, caps: str, orientation: str, buffer: Gst.Buffer) -> None:
    """One frame and its orientation tag for the appsrc "in"."""
    tags = Gst.TagList.new_empty()
    tags.add_value(Gst.TagMergeMode.REPLACE, Gst.TAG_IMAGE_ORIENTATION, orientation)
    source = pipeline.get_by_name("in")
    source.set_property("caps", Gst.Caps.from_string(caps))
    pad, buffer.pts = source.get_static_pad("src"), 0

    def tag_first(pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        pad.push_event(Gst.Event.new_tag(tags))
        return Gst.PadProbeReturn.REMOVE

    pad.add_probe(Gst.PadProbeType.BUFFER, tag_first)
    source.emit("push-buffer", buffer)
    source.emit("end-of-stream")


def play(
    line: str, caps: str, orientation: str, buffer: Gst.Buffer, look: Callable[[Gst.Buffer, Gst.Caps], None]
) -> None:
    pipeline = Gst.parse_launch(f"appsrc name=in format=time {line} ! fakesink name=out")
    if converter := pipeline.get_by_name("converter"):
        ExactCopy(converter, pipeline.get_by_name("copied"))
    seen = []

    def probe(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        look(info.get_buffer(), pad.get_current_caps())
        seen.append(True)
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, probe)
    feed(pipeline, caps, orientation, buffer)
    outcome = finish(pipeline)
    assert (outcome.end, seen) == ("eos", [True]), outcome.error


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("number", [NV12, P010_709], ids=["8 bit", "10 bit"])
def test_a_frame_stands_upright_as_videoflip_turns_it(
    monkeypatch: pytest.MonkeyPatch, orientation: str, number: int
) -> None:
    """From the tag to a model's picture, on the host and as addresses in GPU memory. Of 10 bit the upper 8 count."""
    luma, chroma = noise(*SIZE)
    plain = "format=NV12,width=64,height=48,framerate=30/1"
    expected: list[np.ndarray] = []

    def keep(buffer: Gst.Buffer, caps: Gst.Caps) -> None:
        picture = picture_of(buffer, VideoLayout.of_caps(caps))
        expected.append(picture.rgb(picture.whole, picture.width, picture.height).copy())
        expected.extend(plane.copy() for plane in picture.planes)

    system = Gst.Buffer.new_wrapped(np.concatenate([luma, chroma]).tobytes())
    play("! videoflip video-direction=auto", f"video/x-raw,{plain}", orientation, system, keep)

    def download(pointer: int, pitch: int, out: np.ndarray, device: int = 0) -> None:
        for row, target in enumerate(out):
            ctypes.memmove(target.ctypes.data, pointer + row * pitch, target.nbytes)

    monkeypatch.setattr(cuda, "download", download)
    frame = NvmmFrame(*SIZE, number, CUDA_DEVICE)
    places = np.s_[:, 1:128:2] if number == P010_709 else np.s_[:, :64]
    frame.planes[0][places], frame.planes[1][places] = luma, chroma

    def compare(buffer: Gst.Buffer, _caps: Gst.Caps) -> None:
        (found,) = frames_of(buffer)
        height, width, _ = expected[0].shape
        assert (found.width, found.height) == (width, height)
        assert np.array_equal(found.resized(width, height), expected[0])
        planes = found.device_planes
        memory = frame.block

        def read(address: int, pitch: int, step: int, height: int, width: int) -> np.ndarray:
            rows, columns = np.mgrid[:height, :width]
            return memory[address - frame.address + rows * pitch + columns * step]

        half = height // 2, width // 2
        assert np.array_equal(read(planes.luma, planes.luma_pitch, planes.luma_step, height, width), expected[1])
        for address, own in ((planes.blue, expected[2][..., 0]), (planes.red, expected[2][..., 1])):
            assert np.array_equal(read(address, planes.chroma_pitch, planes.chroma_step, *half), own)

    mux = "! nvstreammux0.sink_0 nvstreammux name=nvstreammux0 batch-size=1 width=64 height=64"
    play(f"{TAIL} {mux}", f"video/x-raw(memory:NVMM),{plain}", orientation, frame.buffer(), compare)


# --- the way from decoders to the mux ---------------------------------------------------------------------------------


class ConverterDouble(GstBase.BaseTransform):
    """Hands on what comes, and has the properties of NVIDIA's that are set."""

    __gtype_name__ = "GstorchConverterDouble"
    __gstmetadata__ = ("Double of nvvideoconvert", "Filter/Video", "Hands on what comes", AUTHOR)
    __gsttemplates__ = sink_and_src("video/x-raw(ANY)", "video/x-raw(ANY)")

    gpu_id = GObject.Property(type=int)
    disable_passthrough = GObject.Property(type=bool, default=False)
    output_buffers = GObject.Property(type=int, default=4)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)

    def do_transform_ip(self, _buffer: Gst.Buffer) -> Gst.FlowReturn:
        return Gst.FlowReturn.OK


GObject.type_register(ConverterDouble)


@pytest.fixture
def converter_double(monkeypatch: pytest.MonkeyPatch) -> None:
    Gst.Element.register(None, "gstorchconverterdouble", Gst.Rank.NONE, ConverterDouble)
    factory = Gst.ElementFactory.find("gstorchconverterdouble")
    monkeypatch.setitem(nvidia._kept, nvidia.CONVERTER, factory)


def through_the_source_elements(caps: str, buffers: list[Gst.Buffer]) -> list[tuple[str, str, object]]:
    """Caps behind the elements of a source for one stream after another: format, memory feature, orientation."""
    pipeline = Gst.parse_launch("appsrc name=in format=time ! fakesink name=out")
    source, out = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.unlink(out)
    tail = nvidia.frames_in_gpu_memory({"gpu-id": 0})
    chain(pipeline, *tail)
    assert source.link(tail[0])
    assert tail[-1].link(out)
    found = []

    def look(pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        now = pad.get_current_caps()
        stream = now[0]
        found.append((stream.get_string("format"), now.get_features(0).to_string(), stream.get_string("orientation")))
        return Gst.PadProbeReturn.OK

    out.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, look)
    for number, (text, buffer) in enumerate(zip(caps.split(";"), buffers, strict=True)):
        buffer.pts = number * Gst.SECOND
        source.emit("push-sample", Gst.Sample.new(buffer, Gst.Caps.from_string(text), None, None))
    source.emit("end-of-stream")
    outcome = finish(pipeline)
    assert outcome.end == "eos", outcome.error
    return found


@pytest.mark.usefixtures("converter_double")
def test_frames_of_software_decoders_go_past_the_converter_and_others_through_it() -> None:
    size = "width=64,height=48,framerate=30/1"
    eight, ten = (f"video/x-raw(memory:NVMM),format={name},{size}" for name in ("NV12", "P010_10LE"))
    frame, deep = NvmmFrame(*SIZE, NV12), NvmmFrame(*SIZE, P010_709)
    buffers = [Gst.Buffer.new_allocate(None, 64 * 48 * 3 // 2, None), frame.buffer(), deep.buffer(), frame.buffer()]
    system = f"video/x-raw,format=I420,{size}"
    found = through_the_source_elements(f"{system};{eight};{ten};{eight}", buffers)
    assert found == [
        ("I420", "memory:NVMM", None),
        ("NV12", "memory:NVMM", "rotate-0"),
        ("NV12", "memory:NVMM", "rotate-0"),
        ("NV12", "memory:NVMM", "rotate-0"),
    ]


# --- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "expected"), [(6, 33), (7, 33), (34, 33), (36, 33), (29, 38), (37, 38), (40, 38)])
def test_nv12_of_every_colour_space_is_marked_once_and_keeps_its_depth(number: int, expected: int) -> None:
    kept = NvmmFrame(*SIZE, NV12)  # which the buffer does not keep
    buffer = kept.buffer()
    frame = nvmm.surface_in(buffer).frames[0]
    frame.color_format = number
    assert nvmm.mark_as_bt709(buffer)
    assert frame.color_format == expected
    assert not nvmm.mark_as_bt709(buffer)


@pytest.mark.parametrize("number", [RGB, NV12_709])
def test_others_are_left_alone(number: int) -> None:
    kept = NvmmFrame(*SIZE, number)
    assert not nvmm.mark_as_bt709(kept.buffer())

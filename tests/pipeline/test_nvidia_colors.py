"""Colours on their way through NVIDIA's converter, with plain elements in its place."""

from __future__ import annotations

import pytest
from gi.repository import Gst

from elements.portable import nvmm
from elements.portable.nvidia_colors import UnchangedColors
from tests.media import finish, watch
from tests.nvmm_memory import NV12, NV12_709, RGB, NvmmFrame


def colors_along(stream: str) -> list[str | None]:
    """What caps say inside of the converter and behind it, of a stream with these caps; all frames must come."""
    pipeline = Gst.parse_launch(
        f"videotestsrc num-buffers=3 ! capssetter caps=video/x-raw,{stream} replace=true ! identity name=converter "
        "! capsfilter name=copied caps=video/x-raw,format=NV12 ! identity single-segment=true ! fakesink name=out"
    )
    converter, copied, out = (pipeline.get_by_name(name) for name in ("converter", "copied", "out"))
    UnchangedColors(converter, copied)
    seen = watch(pipeline, "out")
    found: list[str | None] = []

    def look(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        for element in (converter, copied, out):
            caps = element.get_static_pad("sink").get_current_caps()
            found.append(caps[0].get_string("colorimetry"))
        return Gst.PadProbeReturn.REMOVE

    out.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, look)
    assert finish(pipeline).end == "eos"
    assert len(seen.times) == 3
    return found


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("width=64,height=48,colorimetry=bt601", "bt601"),
        ("width=64,height=48,colorimetry=bt709", "bt709"),
        ("width=64,height=48,colorimetry=(string)1:4:16:4", "1:4:16:4"),
        ("width=64,height=720,colorimetry=bt2020", "bt2020"),
        ("width=64,height=720", None),
    ],
)
def test_the_converter_sees_bt709_and_what_follows_sees_the_streams_own(stream: str, expected: str | None) -> None:
    assert colors_along(f"format=NV12,framerate=30/1,{stream}") == ["bt709", expected, expected]


@pytest.mark.parametrize("number", [NV12, 7, 34, 36])
def test_frames_of_every_colour_space_are_marked_once(number: int) -> None:
    buffer = NvmmFrame(64, 48, NV12).buffer()
    frame = nvmm._Surface.from_address(nvmm.address_of(buffer)).frames[0]
    frame.color_format = number
    assert nvmm.mark_as_bt709(buffer)
    assert frame.color_format == NV12_709
    assert not nvmm.mark_as_bt709(buffer)


def test_frames_of_10_bit_stay_of_10_bit() -> None:
    buffer = NvmmFrame(64, 48, NV12).buffer()
    frame = nvmm._Surface.from_address(nvmm.address_of(buffer)).frames[0]
    for number in (29, 37, 39, 40):
        frame.color_format = number
        assert nvmm.mark_as_bt709(buffer)
        assert frame.color_format == 38


def test_rgb_is_left_alone() -> None:
    assert not nvmm.mark_as_bt709(NvmmFrame(64, 48, RGB).buffer())

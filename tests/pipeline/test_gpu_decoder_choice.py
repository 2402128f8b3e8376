"""Which decoder a stream gets where there is NVIDIA's: with a double that is preferred and fails on every frame."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gi.repository import Gst

from elements.base import AUTHOR, GObject, pad_template, post_error
from elements.portable import nvidia
from elements.portable.decoding import frames_to_nvmm
from pipelines.media import MediaError, discover
from tests.media import Outcome, finish, watch

NAME, FRAMES = "gstorchgpudecoderdouble", 5
FAILED = "Failed to process frame"


def _fail(_pad: Gst.Pad, parent: Gst.Element, _buffer: Gst.Buffer) -> Gst.FlowReturn:
    post_error(parent, FAILED)
    return Gst.FlowReturn.ERROR


class DecoderDouble(Gst.Element):
    """Takes any H.264, as NVIDIA's does by its caps."""

    __gtype_name__ = "GstorchGpuDecoderDouble"
    __gstmetadata__ = ("Double of nvv4l2decoder", "Codec/Decoder/Video", "Fails", AUTHOR)
    __gsttemplates__ = (
        pad_template("sink", Gst.PadDirection.SINK, Gst.PadPresence.ALWAYS, "video/x-h264"),
        pad_template("src", Gst.PadDirection.SRC, Gst.PadPresence.ALWAYS, "video/x-raw"),
    )

    def __init__(self) -> None:
        super().__init__()
        for name in ("sink", "src"):
            self.add_pad(Gst.Pad.new_from_template(self.get_pad_template(name), name))
        self.get_static_pad("sink").set_chain_function_full(_fail)


GObject.type_register(DecoderDouble)


@pytest.fixture(autouse=True)
def decoder_double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The double in NVIDIA's place: of a higher rank than software decoders, frames need no upload."""
    Gst.Element.register(None, NAME, Gst.Rank.NONE, DecoderDouble)
    Gst.ElementFactory.find(NAME).set_rank(Gst.Rank.PRIMARY + 200)
    monkeypatch.setattr(nvidia, "DECODER", NAME)
    monkeypatch.setattr(nvidia, "is_ours", lambda factory: factory.get_name() != NAME)
    monkeypatch.setattr(nvidia, "decodes_on_gpu", lambda: True)
    monkeypatch.setattr(nvidia, "set_up_decoder", lambda decoder, values: None)
    monkeypatch.setattr(nvidia, "frames_in_gpu_memory", lambda values: frames_to_nvmm(for_source=True))
    yield
    Gst.ElementFactory.find(NAME).set_rank(Gst.Rank.NONE)


def clip(folder: Path, pixels: str) -> Path:
    path = folder / f"{pixels}.mp4"
    picture = ["-f", "lavfi", "-i", f"testsrc=s=96x64:r=15,trim=end_frame={FRAMES}"]
    command = ["ffmpeg", "-v", "error", *picture, "-c:v", "libx264", "-pix_fmt", pixels, str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


def play(path: Path) -> tuple[Outcome, int]:
    """How playing it ended, and how many frames came."""
    pipeline = Gst.parse_launch(f"nvurisrcbin uri={path.as_uri()} ! fakesink name=out sync=false")
    seen = watch(pipeline, "out")
    return finish(pipeline), len(seen.times)


def test_the_double_is_chosen_where_it_fits(tmp_path: Path) -> None:
    outcome, frames = play(clip(tmp_path, "yuv420p"))
    assert (outcome.end, frames) == ("error", 0)
    assert FAILED in str(outcome.error)


@pytest.mark.parametrize(
    ("pixels", "named"), [("yuv444p", "4:4:4 of 8 bit"), ("yuv422p", "4:2:2 of 8 bit"), ("yuv420p10le", "of 10 bit")]
)
def test_what_the_gpu_cannot_decode_is_decoded_in_software_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pixels: str, named: str
) -> None:
    path = clip(tmp_path, pixels)
    with caplog.at_level(logging.WARNING):
        outcome, frames = play(path)
    assert (outcome.end, frames) == ("eos", FRAMES), outcome.error
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(f"{path}: this H.264 is")
    assert named in warning


@pytest.mark.parametrize(("size", "expected"), [("96, height=64", nvidia._TRY), ("97, height=64", nvidia._SKIP)])
def test_pictures_of_odd_size_are_decoded_in_software(size: str, expected: int) -> None:
    stream = Gst.Caps.from_string(f"video/x-h264, stream-format=avc, alignment=au, parsed=true, width={size}")
    assert nvidia.select_decoder(None, None, stream, Gst.ElementFactory.find(NAME), "clip") == expected
    unknown = Gst.Caps.from_string(f"video/x-gstorch-unknown, width={size}")
    assert nvidia.select_decoder(None, None, unknown, Gst.ElementFactory.find(NAME), "clip") == nvidia._TRY


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv444p"])
def test_a_look_into_a_file_needs_no_gpu(tmp_path: Path, caplog: pytest.LogCaptureFixture, pixels: str) -> None:
    info = discover(str(clip(tmp_path, pixels)))
    assert (info.width, info.height, info.frames) == (96, 64, FRAMES)
    assert caplog.records == []


@pytest.fixture
def no_software_decoder() -> Iterator[None]:
    """H.264 decoders other than the double out of the way."""
    h264 = Gst.Caps.from_string("video/x-h264")
    decoders = Gst.ElementFactory.list_get_elements(Gst.ELEMENT_FACTORY_TYPE_DECODER, Gst.Rank.MARGINAL)
    others = Gst.ElementFactory.list_filter(decoders, h264, Gst.PadDirection.SINK, False)
    ranks = {other: other.get_rank() for other in others if other.get_name() != NAME}
    for other in ranks:
        other.set_rank(Gst.Rank.NONE)
    Gst.Element.register(None, NAME, Gst.Rank.NONE, DecoderDouble)  # who keeps lists of factories makes them anew
    Gst.ElementFactory.find(NAME).set_rank(Gst.Rank.PRIMARY + 200)
    yield
    for other, rank in ranks.items():
        other.set_rank(rank)
    Gst.Element.register(None, NAME, Gst.Rank.NONE, DecoderDouble)


@pytest.mark.usefixtures("no_software_decoder")
def test_what_nothing_here_decodes_is_named_with_what_to_install(tmp_path: Path) -> None:
    path = clip(tmp_path, "yuv444p")
    with pytest.raises(MediaError) as looked:
        discover(str(path))
    outcome, _ = play(path)
    for text in (str(looked.value), str(outcome.error)):
        assert str(path) in text
        assert "no decoder for it is installed (missing: H.264 (High 4:4:4" in text
        assert "gstreamer1.0-libav" in text


def test_nvidias_decoder_serves_for_a_look_where_it_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = Gst.ElementFactory.find(NAME)
    of_no_other = Gst.Caps.from_string("video/x-gstorch-unknown")
    text = "video/x-h264, stream-format=avc, alignment=au, parsed=true, width=96, height=64, chroma-format="
    h264, unfit = Gst.Caps.from_string(f"{text}4:2:0"), Gst.Caps.from_string(f"{text}4:4:4")
    assert nvidia.select_any_other_decoder(None, None, of_no_other, factory) == nvidia._TRY
    assert nvidia.select_any_other_decoder(None, None, h264, factory) == nvidia._SKIP
    monkeypatch.setattr(nvidia, "_has_another_decoder", lambda caps: False)
    assert nvidia.select_any_other_decoder(None, None, h264, factory) == nvidia._TRY
    assert nvidia.select_any_other_decoder(None, None, unfit, factory) == nvidia._SKIP

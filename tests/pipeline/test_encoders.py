"""nvv4l2h264enc and nvv4l2h265enc: playable 8-bit 4:2:0 of even size, NVIDIA's properties, no delay."""

from __future__ import annotations

from pathlib import Path

import pytest
from gi.repository import Gst

from tests.gstorch_cli import ffprobe
from tests.media import Outcome, finish, run, source, watch
from tests.waiting import wait_for

PARSERS = {"nvv4l2h264enc": "h264parse", "nvv4l2h265enc": "h265parse"}


def encode(path: Path, encoder: str, frames: int = 20, width: int = 160, height: int = 120) -> Outcome:
    parser = PARSERS[encoder.split()[0]]
    outcome, _ = run(
        f"{source(frames, width=width, height=height)} nvstreammux name=m batch-size=1 width={width} height={height} "
        f"! nvvideoconvert ! video/x-raw(memory:NVMM),format=I420 ! {encoder} ! {parser} ! mp4mux "
        f"! filesink name=out location={path}"
    )
    return outcome


def probed(path: Path, *fields: str) -> list[str]:
    order = ["codec_name", "profile", "width", "height", "pix_fmt", "nb_read_frames"]
    line = ffprobe(path, "-count_frames", "-show_entries", "stream=" + ",".join(order)).strip().strip(",")
    values = dict(zip(order, line.split(","), strict=True))
    return [values[field] for field in fields]


def key_frames(path: Path) -> list[int]:
    lines = ffprobe(path, "-show_entries", "packet=flags").split()
    return [number for number, flags in enumerate(lines) if flags.startswith("K")]


@pytest.mark.parametrize(("encoder", "codec"), [("nvv4l2h264enc", "h264"), ("nvv4l2h265enc", "hevc")])
@pytest.mark.parametrize(("size", "expected"), [((160, 120), ["160", "120"]), ((161, 119), ["160", "118"])])
def test_every_frame_8_bit_and_even(tmp_path, encoder, codec, size, expected):
    path = tmp_path / "out.mp4"
    pipeline = Gst.parse_launch(
        f"videotestsrc num-buffers=20 ! video/x-raw,format=RGBA,width={size[0]},height={size[1]} ! nvvideoconvert "
        f"! video/x-raw(memory:NVMM),format=I420 ! {encoder} ! {PARSERS[encoder]} ! mp4mux ! filesink location={path}"
    )
    assert finish(pipeline).end == "eos"
    assert probed(path, "codec_name", "width", "height", "pix_fmt", "nb_read_frames") == [
        codec,
        *expected,
        "yuv420p",
        "20",
    ]


def test_the_batch_of_a_mux_is_encoded(tmp_path):
    path = tmp_path / "out.mp4"
    assert encode(path, "nvv4l2h264enc").end == "eos"
    assert probed(path, "width", "height", "nb_read_frames") == ["160", "120", "20"]


@pytest.mark.parametrize(
    ("profile", "name"), [("Baseline", "Constrained Baseline"), ("Main", "Main"), ("High", "High")]
)
def test_profile(tmp_path, profile, name):
    path = tmp_path / "out.mp4"
    encode(path, f"nvv4l2h264enc profile={profile}")
    assert probed(path, "profile") == [name]


@pytest.mark.parametrize("encoder", PARSERS)
def test_key_frame_interval(tmp_path, encoder):
    path = tmp_path / "out.mp4"
    encode(path, f"{encoder} iframeinterval=5")
    assert key_frames(path) == [0, 5, 10, 15]


def test_quality_follows_the_quantizer(tmp_path):
    fine, coarse = tmp_path / "fine.mp4", tmp_path / "coarse.mp4"
    encode(fine, "nvv4l2h264enc control-rate=constantQP constqp=10:10:10")
    encode(coarse, "nvv4l2h264enc control-rate=constantQP constqp=40")
    assert fine.stat().st_size > 3 * coarse.stat().st_size


def test_bitrate_is_in_bits_and_may_change_while_playing():
    pipeline = Gst.parse_launch(
        "videotestsrc pattern=snow ! video/x-raw,format=I420,width=160,height=120,framerate=30/1 ! nvvideoconvert "
        "! video/x-raw(memory:NVMM) ! nvv4l2h264enc name=e bitrate=100000 iframeinterval=1000 ! fakesink name=out"
    )
    sizes: list[int] = []
    seen = watch(pipeline, "out", lambda buffer: sizes.append(buffer.get_size()))
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: len(seen.times) > 60)
    pipeline.get_by_name("e").set_property("bitrate", 4000000)
    changed = len(sizes)
    assert wait_for(lambda: len(seen.times) > changed + 90)
    pipeline.set_state(Gst.State.NULL)
    assert pipeline.get_by_name("e").get_property("bitrate") == 4000000
    assert sum(sizes[changed + 60 : changed + 90]) > 3 * sum(sizes[30:60])


@pytest.mark.parametrize(
    ("encoder", "text"),
    [
        ("nvv4l2h264enc profile=High10", "profile 5 is not 8-bit 4:2:0"),
        ("nvv4l2h264enc control-rate=constantQP constqp=good", "constqp='good' is not a quantizer"),
    ],
)
def test_what_cannot_be_done_is_said_at_start(tmp_path, encoder, text):
    outcome = encode(tmp_path / "out.mp4", encoder)
    assert outcome.end == "error"
    assert text in outcome.error.message


def test_a_batch_of_two_is_refused(tmp_path):
    outcome, _ = run(
        f"{source(4, 'm.sink_0')} {source(4, 'm.sink_1')} nvstreammux name=m batch-size=2 width=64 height=48 "
        "! nvvideoconvert ! video/x-raw(memory:NVMM),format=I420 ! nvv4l2h264enc ! fakesink name=out"
    )
    assert "got a batch of 2 frames where one is needed; put nvmultistreamtiler" in outcome.error.message


@pytest.mark.parametrize("tuning", ["LowLatencyPreset", "HighQualityPreset"])
def test_branches_of_a_tee_do_not_wait_for_each_other(tuning):
    outcome, seen = run(
        "videotestsrc num-buffers=90 ! video/x-raw,format=I420,framerate=30/1 ! nvvideoconvert "
        "! video/x-raw(memory:NVMM) ! tee name=t t. ! queue ! fakesink "
        f"t. ! queue ! nvv4l2h264enc tuning-info-id={tuning} ! h264parse ! fakesink name=out"
    )
    assert (outcome.end, len(seen.times)) == ("eos", 90)

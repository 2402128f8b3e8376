"""nvv4l2decoder: the right software decoder for each codec, NVMM frames, autoplugged when its rank says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gi.repository import Gst

from tests.media import run

ENCODERS = {
    "h264": ("libx264", "clip.mp4", "qtdemux ! h264parse"),
    "h265": ("libx265", "clip.mp4", "qtdemux ! h265parse"),
    "vp8": ("libvpx", "clip.webm", "matroskademux"),
    "vp9": ("libvpx-vp9", "clip.webm", "matroskademux"),
    "mpeg4": ("mpeg4", "clip.mp4", "qtdemux ! mpeg4videoparse"),
    "mpeg2": ("mpeg2video", "clip.mkv", "matroskademux ! mpegvideoparse"),
    "jpeg": ("mjpeg", "clip.mkv", "matroskademux ! jpegparse"),
}


def encoded(folder: Path, codec: str) -> tuple[Path, str]:
    encoder, name, demux = ENCODERS[codec]
    source = ["-f", "lavfi", "-i", "testsrc=s=96x64:r=10:d=1", "-pix_fmt", "yuvj420p" if codec == "jpeg" else "yuv420p"]
    quiet = ["-x265-params", "log-level=error"] if codec == "h265" else []
    path = folder / name
    command = ["ffmpeg", "-v", "error", "-y", *source, "-c:v", encoder, *quiet, str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path, demux


@pytest.mark.parametrize("codec", ENCODERS)
def test_every_codec_gives_all_frames(tmp_path, codec):
    path, demux = encoded(tmp_path, codec)
    outcome, seen = run(f"filesrc location={path} ! {demux} ! nvv4l2decoder ! fakesink name=out")
    assert outcome.end == "eos", outcome.error
    assert len(seen.times) == 10
    assert seen.caps[0].startswith("video/x-raw(memory:NVMM)")


def test_decodebin_takes_it_when_its_rank_is_high(tmp_path):
    path, _ = encoded(tmp_path, "h264")
    factory = Gst.ElementFactory.find("nvv4l2decoder")
    before = factory.get_rank()
    factory.set_rank(int(Gst.Rank.PRIMARY) + 100)
    try:
        outcome, seen = run(f"uridecodebin uri={path.as_uri()} ! fakesink name=out")
    finally:
        factory.set_rank(before)
    assert (outcome.end, len(seen.times)) == ("eos", 10)
    assert seen.caps[0].startswith("video/x-raw(memory:NVMM)")


def test_drop_frame_interval(tmp_path):
    path, demux = encoded(tmp_path, "h264")
    _, seen = run(f"filesrc location={path} ! {demux} ! nvv4l2decoder drop-frame-interval=4 ! fakesink name=out")
    assert len(seen.times) == 3


def test_ignored_properties_are_named_once(tmp_path, caplog):
    path, demux = encoded(tmp_path, "h264")
    run(f"filesrc location={path} ! {demux} ! nvv4l2decoder name=d gpu-id=1 low-latency-mode=1 ! fakesink name=out")
    texts = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert texts == ["d (nvv4l2decoder): no effect here: gpu-id, low-latency-mode"]

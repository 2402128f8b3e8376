"""Discovery: what a file is, or what is wrong with it, in the user's own words."""

from __future__ import annotations

import shutil
import subprocess
from fractions import Fraction

import pytest

from elements.media_problems import IS_GIF
from pipelines.media import MediaError, discover


@pytest.fixture(scope="session")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("media") / "clip.mp4"
    picture = ["-f", "lavfi", "-i", "testsrc=s=96x64:r=15:d=2", "-f", "lavfi", "-i", "sine=d=2"]
    command = ["ffmpeg", "-v", "error", *picture, "-c:v", "libx264", "-pix_fmt", "yuv420p", str(path)]
    subprocess.run(command, check=True, timeout=60)
    return path


def test_a_clip(clip):
    info = discover(str(clip))
    assert (info.width, info.height, info.fps) == (96, 64, Fraction(15))
    assert info.duration_s == pytest.approx(2.0, abs=0.05)
    assert info.frames == pytest.approx(30, abs=1)
    assert info.codec.startswith("H.264")
    assert info.seekable


@pytest.mark.parametrize("name", ["a b.mp4", "a#b.mp4", "50%20.mp4", "what?.mp4", "ñandú 日本.mp4", 'it\'s "q".mp4'])
def test_any_path_as_typed_and_as_uri(clip, tmp_path, monkeypatch, name):
    shutil.copy(clip, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert discover(name) == discover((tmp_path / name).as_uri()) == discover(str(clip))


@pytest.mark.parametrize(
    ("name", "size", "frames", "codec"),
    [
        ("rot90_display_matrix.mp4", (640, 360), 100, "H.264"),
        ("odd_427x241_vp9.webm", (427, 241), 100, "VP9"),
        ("hevc_main10.mp4", (640, 360), 100, "H.265"),
        ("one-by-one-person-detection.mp4", (768, 432), 1394, "H.264"),
    ],
)
def test_real_clips(shared_data, name, size, frames, codec):
    info = discover(str(shared_data / "videos" / name))
    assert (info.width, info.height) == size
    assert info.frames == frames
    assert info.codec.startswith(codec)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("truncated_no_moov.mp4", "cannot be read: it has no usable index or no frames, so it is cut off or damaged"),
        ("audio_only.mp4", "has no video stream; found: MPEG-4 AAC"),
    ],
)
def test_real_bad_clips(shared_data, name, reason):
    path = str(shared_data / "videos" / name)
    with pytest.raises(MediaError) as caught:
        discover(path)
    assert str(caught.value) == f"{path}: {reason}"


def test_bad_paths_are_repeated_as_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "words.mp4").write_text("only words, and not many of them")
    (tmp_path / "cat.mp4").write_bytes(b"GIF89a and so on")
    (tmp_path / "link.mp4").symlink_to("nowhere.mp4")
    for text, reason in {
        "no #1.mp4": "no such file",
        "./folder": "is a folder, not a video file",
        "empty.mp4": "is empty (0 bytes)",
        "cat.mp4": IS_GIF,
        "words.mp4": "is not a video file (its content is of no known type)",
        "link.mp4": "is a link to a file that is not there",
        "file://clips/a.mp4": "the URI names a host, 'clips'; a file URI has three slashes: file:///path",
    }.items():
        with pytest.raises(MediaError) as caught:
            discover(text)
        assert str(caught.value) == f"{text}: {reason}"

"""nvurisrcbin with files: every frame, upright, 8 bit; repeats; one clear error per bad file."""

from __future__ import annotations

import contextlib
import gc
import re
import subprocess
import threading
import weakref
from pathlib import Path

import pytest
from gi.repository import Gst

from elements.base import all_of
from elements.portable.nvurisrcbin import NvUriSrcBin
from elements.portable.queries import ask_source_id
from tests.gstorch_cli import frame_times
from tests.media import Outcome, finish, message_of, run, watch
from tests.waiting import LIMIT_S, wait_for

CLIP_FRAMES = 30


def ffmpeg(*arguments: str | Path) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *map(str, arguments)], check=True, timeout=60)


@pytest.fixture(scope="session")
def clip(tmp_path_factory) -> Path:
    """30 frames H.264 with B-frames, 96x64, 15 frames/s, with sound; its name is hard to write as a URI."""
    path = tmp_path_factory.mktemp("clips") / "a b#1 %20? ñ日本.mp4"
    sound = ["-f", "lavfi", "-i", "sine=d=2", "-c:a", "aac"]
    picture = ["-f", "lavfi", "-i", "testsrc=s=96x64:r=15:d=2"]
    ffmpeg(*picture, *sound, "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p", path)
    return path


def play(uri: str, properties: str = "") -> tuple[Outcome, list[int], str]:
    """Outcome, PTS of all frames in ms, caps."""
    outcome, seen = run(f'nvurisrcbin name=s uri="{uri}" {properties} ! fakesink name=out sync=false')
    return outcome, [round(pts / 1e6) for pts in seen.times], seen.caps[-1] if seen.caps else ""


def test_every_frame_with_its_time(clip):
    outcome, times, caps = play(clip.as_uri())
    assert outcome.end == "eos"
    assert times == [round(1000 * n / 15) for n in range(CLIP_FRAMES)]
    assert caps.startswith("video/x-raw(memory:NVMM), format=(string)I420, width=(int)96, height=(int)64")


@pytest.mark.parametrize(
    ("name", "size", "frames"),
    [
        ("rot90_display_matrix.mp4", (640, 360), 100),
        ("odd_427x241_vp9.webm", (427, 241), 100),
        ("hevc_main10.mp4", (640, 360), 100),
        ("vfr_irregular.mp4", (640, 360), 46),
    ],
)
def test_odd_files(shared_data, name, size, frames):
    path = shared_data / "videos" / name
    outcome, times, text = play(path.as_uri())
    caps = Gst.Caps.from_string(text)[0]
    assert outcome.end == "eos"
    assert (caps.get_value("width"), caps.get_value("height")) == size
    assert caps.get_value("format") == "I420"
    assert times == pytest.approx([1000 * t for t in frame_times(path)], abs=1.5)
    assert len(times) == frames


@pytest.mark.parametrize(
    ("pixels", "codec", "expected"),
    [
        ("yuv422p10le", "ffv1", "BGRx|RGBx"),  # which of them depends on GStreamer's version
        ("yuv420p10le", "ffv1", "I420"),
        ("bgra", "png", "RGBA"),
        ("gray", "png", "GRAY8"),
    ],
)
def test_other_formats_become_8_bit(tmp_path, pixels, codec, expected):
    path = tmp_path / "clip.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc=s=64x48:d=0.2", "-pix_fmt", pixels, "-c:v", codec, path)
    outcome, times, caps = play(path.as_uri())
    assert (outcome.end, len(times)) == ("eos", 5)
    assert re.search(rf"format=\(string\)({expected}),", caps)


@pytest.mark.parametrize("leaky", ["upstream-leak", "downstream-leak"])
def test_dropped_frames_are_counted(clip, leaky):
    pipeline = Gst.parse_launch(
        f'nvurisrcbin name=s uri="{clip.as_uri()}" leaky={leaky} max-size-buffers=4 '
        "! identity sleep-time=20000 ! fakesink name=out sync=false"
    )
    seen = watch(pipeline, "out")
    assert finish(pipeline).end == "eos"
    dropped = pipeline.get_by_name("s").get_property("frames-dropped")
    assert dropped > 10
    assert len(seen.times) + dropped == CLIP_FRAMES
    last_frame = round(29 * Gst.SECOND / 15)
    assert (seen.times[-1] == pytest.approx(last_frame, abs=1000)) == (leaky == "downstream-leak")


def test_a_damaged_sound_track_does_no_harm(clip, tmp_path):
    broken = tmp_path / "broken.mkv"
    ffmpeg("-i", clip, "-c", "copy", "-bsf:a", "noise=amount=2", broken)
    outcome, times, _ = play(broken.as_uri())
    assert (outcome.end, len(times)) == ("eos", CLIP_FRAMES)


def test_sound_comes_out_on_request(clip):
    outcome, seen = run(
        f'nvurisrcbin name=s disable-audio=false uri="{clip.as_uri()}" s.vsrc_0 ! queue ! fakesink '
        "s.asrc_0 ! queue ! fakesink name=out"
    )
    assert outcome.end == "eos"
    assert seen.caps[0].startswith("audio/x-raw")


def test_drop_frame_interval_keeps_each_nth(clip):
    _, times, _ = play(clip.as_uri(), "drop-frame-interval=5")
    assert times == [round(1000 * n / 15) for n in range(0, CLIP_FRAMES, 5)]


def test_key_frames_only(clip):
    _, times, _ = play(clip.as_uri(), "dec-skip-frames=decode_key")
    assert times == [0, 1000]  # the encoder put one more where the test picture jumps


def test_source_id_is_answered_through_other_elements(clip):
    pipeline = Gst.parse_launch(f'nvurisrcbin uri="{clip.as_uri()}" source-id=7 ! queue ! identity ! fakesink name=out')
    pipeline.set_state(Gst.State.PAUSED)
    pipeline.get_state(Gst.CLOCK_TIME_NONE)
    assert ask_source_id(pipeline.get_by_name("out").get_static_pad("sink")) == 7
    pipeline.set_state(Gst.State.NULL)


def test_file_loop_goes_on_without_a_seam(clip):
    pipeline = Gst.parse_launch(f'nvurisrcbin file-loop=1 uri="{clip.as_uri()}" ! fakesink name=out sync=false')
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: len(seen.times) > 4 * CLIP_FRAMES)
    assert pipeline.get_bus().pop_filtered(Gst.MessageType.EOS | Gst.MessageType.ERROR) is None
    # the application ends it
    pipeline.send_event(Gst.Event.new_eos())
    message = message_of(pipeline, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert message.type == Gst.MessageType.EOS
    assert [round(pts / 1e6) for pts in seen.times] == [round(1000 * n / 15) for n in range(len(seen.times))]


def test_a_file_is_no_longer_repeated_once_file_loop_is_off(clip):
    pipeline = Gst.parse_launch(f'nvurisrcbin name=s file-loop=1 uri="{clip.as_uri()}" ! fakesink name=out sync=false')
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: len(seen.times) > CLIP_FRAMES)
    pipeline.get_by_name("s").set_property("file-loop", False)
    message = message_of(pipeline, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert message.type == Gst.MessageType.EOS
    assert len(seen.times) % CLIP_FRAMES == 0


def test_a_flush_of_a_rewind_goes_no_further_once_file_loop_is_off(clip):
    """A mux would drop the frames that wait in it."""
    pipeline = Gst.parse_launch(f'nvurisrcbin name=s file-loop=1 uri="{clip.as_uri()}" ! fakesink name=out sync=false')
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: seen.times)
    inside = next(e for e in all_of(pipeline.iterate_recurse()) if e.get_name().startswith("multiqueue"))
    flushes = []

    def turn_off(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        pipeline.get_by_name("s").set_property("file-loop", False)
        return Gst.PadProbeReturn.OK

    def note(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        flushes.append(info.get_event().type)
        return Gst.PadProbeReturn.OK

    inside.sinkpads[0].add_probe(Gst.PadProbeType.EVENT_FLUSH, turn_off)
    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.EVENT_FLUSH, note)
    message = message_of(pipeline, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert (message.type, flushes) == (Gst.MessageType.EOS, [])


def test_a_stop_waits_for_a_rewind_that_is_on_its_way(clip):
    """Else the end of the flush would start threads of elements that are stopped already."""
    pipeline = Gst.parse_launch(f'nvurisrcbin file-loop=1 uri="{clip.as_uri()}" ! fakesink name=out sync=false')
    seen = watch(pipeline, "out")
    pipeline.set_state(Gst.State.PLAYING)
    assert wait_for(lambda: seen.times)
    queue = next(e for e in all_of(pipeline.iterate_recurse()) if e.get_name().startswith("multiqueue"))
    flushes, stopping, active = [], threading.Event(), []

    def hold(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        if info.get_event().type == Gst.EventType.FLUSH_STOP and not active:
            flushes.append(pad)
            stopping.wait(LIMIT_S)
            with contextlib.suppress(AssertionError):  # it comes at once, or never
                wait_for(lambda: not queue.srcpads[0].is_active(), 0.2)
            active.append(queue.srcpads[0].is_active())
        return Gst.PadProbeReturn.OK

    queue.sinkpads[0].add_probe(Gst.PadProbeType.EVENT_FLUSH, hold)
    assert wait_for(lambda: flushes)
    stopping.set()
    pipeline.set_state(Gst.State.NULL)
    assert active == [True]


@pytest.mark.parametrize("name", ["missing.mp4", "folder", "empty.mp4", "text.mp4", "cut.mp4", "sound.m4a"])
def test_a_bad_file_gives_one_error_that_names_it(clip, tmp_path, name):
    path = tmp_path / name
    expected = {
        "missing.mp4": "no such file",
        "folder": "is a folder, not a video file",
        "empty.mp4": "is empty (0 bytes)",
        "text.mp4": "is not a video file (its content is of no known type)",
        "cut.mp4": "cannot be read: it has no usable index or no frames, so it is cut off or damaged",
        "sound.m4a": "has no video stream; found: MPEG-4 AAC",
    }[name]
    if name == "folder":
        path.mkdir()
    elif name == "empty.mp4":
        path.touch()
    elif name == "text.mp4":
        path.write_text("these are only words, and not many of them")
    elif name == "cut.mp4":
        path.write_bytes(clip.read_bytes()[:3000])
    elif name == "sound.m4a":
        ffmpeg("-i", clip, "-vn", "-c:a", "copy", path)
    pipeline = Gst.Pipeline()
    element = Gst.ElementFactory.make("nvurisrcbin")
    element.set_property("uri", path.as_uri())
    pipeline.add(element)
    outcome = finish(pipeline)
    assert outcome.error.message == f"{path}: {expected}"


def test_one_error_only(clip, tmp_path):
    path = tmp_path / "cut.mp4"
    path.write_bytes(clip.read_bytes()[:3000])
    pipeline = Gst.parse_launch(f'nvurisrcbin uri="{path.as_uri()}" ! fakesink')
    pipeline.set_state(Gst.State.PLAYING)
    errors = []
    assert wait_for(lambda: errors.append(pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)) or errors[-1])
    pipeline.set_state(Gst.State.NULL)
    pipeline.set_state(Gst.State.READY)
    assert pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR) is None
    pipeline.set_state(Gst.State.NULL)


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("clip.mp4", "clip.mp4: not a URI; for a file write file:///path with %, # and ? percent-encoded"),
        ("file://clips/a.mp4", "file://clips/a.mp4: the URI names a host, 'clips'; a file URI has three slashes"),
        ("nope://me:secret@host/x", "nope://host/x: no installed GStreamer element reads 'nope://'"),
    ],
)
def test_a_bad_uri(uri, text):
    outcome, _, _ = play(uri)
    assert outcome.error.message.startswith(text)


def test_a_failure_downstream_is_not_blamed_on_the_file(clip):
    outcome, _ = run(f'nvurisrcbin uri="{clip.as_uri()}" ! identity error-after=3 ! fakesink name=out')
    texts = [m.parse_error()[0].message for m in outcome.messages if m.type == Gst.MessageType.ERROR]
    assert all("damaged" not in text for text in texts)


def test_credentials_cannot_be_read_back():
    element = Gst.ElementFactory.make("nvurisrcbin")
    Gst.Bin().add(element)
    element.set_property("uri", "rtsp://me:s%3Acret@host/x")
    assert element.get_property("uri") == "rtsp://host/x"


def test_start_stop_and_let_go(clip):
    gone = []
    for _ in range(5):
        pipeline = Gst.parse_launch(f'nvurisrcbin name=s uri="{clip.as_uri()}" fakesink name=out sync=false')
        element, sink = pipeline.get_by_name("s"), pipeline.get_by_name("out").get_static_pad("sink")
        element.connect("pad-added", _link, sink)
        assert isinstance(element, NvUriSrcBin)
        gone.append(weakref.ref(element))
        for _ in range(2):
            seen = watch(pipeline, "out")
            assert finish(pipeline).end == "eos"
            assert len(seen.times) == CLIP_FRAMES
        del element, sink, pipeline, seen
    # threads that are about to end may hold the last one a little longer
    assert wait_for(lambda: gc.collect() >= 0 and all(reference() is None for reference in gone))


def _link(_element: Gst.Element, pad: Gst.Pad, sink: Gst.Pad) -> None:
    pad.link(sink)

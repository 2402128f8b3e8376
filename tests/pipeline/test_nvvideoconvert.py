"""nvvideoconvert: negotiation, pixels and metadata between batches, single NVMM frames and system memory."""

import numpy as np
import pytest
from gi.repository import Gst

from elements.portable.carrier import batch_of, writable_batch
from elements.portable.meta import ObjectMeta
from elements.portable.video_buffer import VideoLayout, picture_of
from tests.media import Outcome, finish, run, source, watch

BARS = "videotestsrc num-buffers=2 pattern=smpte75 ! video/x-raw,format=I420,width=128,height=96,framerate=30/1"
MUX = "nvstreammux name=m width=128 height=96 batch-size=1"
GREEN = (0, 191, 0)  # 75 % bars: the fourth is green


def frames(description: str) -> tuple[Outcome, list[tuple[str, np.ndarray]]]:
    """Caps and RGB pixels of what reaches ``out`` in system memory (or unbatched NVMM)."""
    found = []

    def keep(buffer: Gst.Buffer) -> None:
        caps = pipeline.get_by_name("out").get_static_pad("sink").get_current_caps()
        layout = VideoLayout.of_caps(caps)
        picture = picture_of(buffer, layout)
        found.append((caps.to_string(), picture.rgb(picture.whole, layout.width, layout.height).copy()))

    pipeline = Gst.parse_launch(description)
    seen = watch(pipeline, "out", keep)
    outcome = finish(pipeline)
    assert seen.failure is None, seen.failure
    return outcome, found


@pytest.mark.parametrize("memory", ["", "(memory:NVMM)"])
@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "RGBA", "BGR", "BGRx"])
@pytest.mark.parametrize("size", ["", ",width=64,height=48", ",width=1280,height=720", ",width=61,height=47"])
def test_frames_outside_of_batches(memory: str, format: str, size: str) -> None:
    _, found = frames(f"{BARS} ! nvvideoconvert ! video/x-raw{memory},format={format}{size} ! fakesink name=out")
    assert len(found) == 2
    caps, rgb = found[1]
    assert f"format=(string){format}" in caps
    assert "framerate=(fraction)30/1" in caps
    assert ("NVMM" in caps) == bool(memory)
    height, width = rgb.shape[:2]
    assert (width, height) == {"": (128, 96), ",width=64,height=48": (64, 48)}.get(size, (width, height))
    assert np.allclose(rgb[height // 3, width // 2], GREEN, atol=4)  # 1280x720 is BT.709, the source BT.601


@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "RGBA"])
@pytest.mark.parametrize("size", ["", ",width=64,height=48"])
def test_a_batch_leaves_to_system_memory(format: str, size: str) -> None:
    leaving = f"nvvideoconvert ! video/x-raw,format={format}{size} ! fakesink name=out"
    _, found = frames(f"{BARS} ! nvvideoconvert ! m.sink_0 {MUX} ! {leaving}")
    assert len(found) == 2
    caps, rgb = found[0]
    assert "batch-size" not in caps
    assert rgb.shape == ((48, 64, 3) if size else (96, 128, 3))
    assert np.allclose(rgb[rgb.shape[0] // 3, rgb.shape[1] // 2], GREEN, atol=4)


def test_nothing_to_do_is_passthrough() -> None:
    pipeline = Gst.parse_launch(f"{BARS} ! nvvideoconvert name=c ! video/x-raw,format=I420 ! fakesink")
    pipeline.set_state(Gst.State.PAUSED)
    pipeline.get_state(Gst.CLOCK_TIME_NONE)
    assert pipeline.get_by_name("c").is_passthrough()
    pipeline.set_state(Gst.State.NULL)


def test_passing_through_calls_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("detached_batch", "writable_batch"):  # what either way of transforming begins with
        monkeypatch.setattr(f"elements.portable.nvvideoconvert.{name}", lambda _, name=name: calls.append(name))
    line = f"{BARS} ! nvvideoconvert ! video/x-raw(memory:NVMM) ! m.sink_0 {MUX} ! nvvideoconvert ! fakesink"
    assert finish(Gst.parse_launch(line)).end == "eos"
    assert calls == []


def test_from_batch_to_batch_the_buffer_stays() -> None:
    addresses: dict[str, list[int]] = {"in": [], "out": []}
    line = (
        f"{source(3, width=128, height=96)} {MUX} ! identity name=in ! nvvideoconvert "
        "! video/x-raw(memory:NVMM),format=RGBA,width=64,height=48 ! fakesink name=out"
    )
    pipeline = Gst.parse_launch(line)
    for name, found in addresses.items():
        watch(pipeline, name, lambda buffer, found=found: found.append(hash(buffer)))
    assert finish(pipeline).end == "eos"
    assert len(addresses["in"]) == 3
    assert addresses["in"] == addresses["out"]


def test_leaving_unchanged_shares_the_decoders_memory() -> None:
    addresses = []

    def address(buffer: Gst.Buffer) -> None:
        addresses.append(picture_of(buffer, VideoLayout.of("I420", 128, 96)).planes[0].__array_interface__["data"][0])

    pipeline = Gst.parse_launch(
        f"{BARS} ! identity name=in ! nvvideoconvert ! m.sink_0 {MUX} ! nvvideoconvert ! video/x-raw,format=I420 "
        "! fakesink name=out"
    )
    watch(pipeline, "in", address)
    watch(pipeline, "out", address)
    assert finish(pipeline).end == "eos"
    assert len(addresses) == 4
    assert len(set(addresses)) == 2


def test_who_keeps_a_frame_that_left_does_not_keep_the_decoders() -> None:
    batches = []
    line = f"{source(3, width=128, height=96)} {MUX} ! nvvideoconvert ! video/x-raw,format=RGB ! fakesink name=out"
    pipeline = Gst.parse_launch(line)
    watch(pipeline, "out", lambda buffer: batches.append(batch_of(buffer)))
    assert finish(pipeline).end == "eos"
    assert [len(batch.frames) for batch in batches] == [1, 1, 1], "an encoder keeps the metadata"
    assert [(batch.surfaces, batch.held) for batch in batches] == [([], None)] * 3


def annotate(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
    item = ObjectMeta(label="car")
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = 64, 48, 32, 24
    writable_batch(info.get_buffer()).frames[0].objects.append(item)
    return Gst.PadProbeReturn.OK


@pytest.mark.parametrize(
    ("settings", "caps", "box"),
    [
        ("", "video/x-raw(memory:NVMM),width=64,height=48", (32, 24, 16, 12)),
        ("", "video/x-raw(memory:NVMM),format=RGBA", (64, 48, 32, 24)),
        ("", "video/x-raw,format=NV12", (64, 48, 32, 24)),
        ("", "video/x-raw,width=64,height=48,format=NV12", (32, 24, 16, 12)),
        ("src-crop=32:24:64:48", "video/x-raw(memory:NVMM),width=128,height=96", (64, 48, 64, 48)),
        ("dest-crop=64:0:64:48", "video/x-raw(memory:NVMM),width=128,height=96", (96, 24, 16, 12)),
        ("flip-method=clockwise", "video/x-raw(memory:NVMM)", (24, 64, 24, 32)),
    ],
)
def test_boxes_follow_the_picture(settings: str, caps: str, box: tuple[float, ...]) -> None:
    line = (
        f"{source(1, width=128, height=96)} {MUX} ! identity name=mark ! nvvideoconvert {settings} ! {caps} "
        "! fakesink name=out"
    )
    pipeline = Gst.parse_launch(line)
    pipeline.get_by_name("mark").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, annotate)
    seen = watch(pipeline, "out")
    assert finish(pipeline).end == "eos"
    rect = seen.batches[0].frames[0].objects[0].rect
    assert (rect.left, rect.top, rect.width, rect.height) == box
    assert len(seen.batches[0].surfaces) == ("NVMM" in caps)


def test_flipping_turns_pixels_and_sizes() -> None:
    _, found = frames(f"{BARS} ! nvvideoconvert flip-method=1 ! video/x-raw,format=RGB ! fakesink name=out")
    rgb = found[0][1]
    assert rgb.shape == (128, 96, 3)
    assert np.allclose(rgb[-5, 20], (191, 191, 191), atol=4)  # the left grey bar lies at the bottom now
    _, seen = run(f"{BARS} ! nvvideoconvert ! m.sink_0 {MUX} ! nvvideoconvert flip-method=4 ! fakesink name=out")
    assert np.allclose(seen.batches[0].surfaces[0].rgb()[20, -5], (191, 191, 191), atol=4)


@pytest.mark.parametrize("settings", ["src-crop=1:2", "src-crop=0:0:999:10", "dest-crop=x:0:1:1"])
def test_bad_crops_are_named(settings: str) -> None:
    outcome = finish(
        Gst.parse_launch(f"{BARS} ! nvvideoconvert {settings} ! video/x-raw,width=64,height=48 ! fakesink")
    )
    assert settings in outcome.error.message


def test_a_tee_branch_has_metadata_of_its_own() -> None:
    line = (
        f"{source(1, width=128, height=96)} {MUX} ! identity name=mark ! tee name=t "
        "t. ! queue ! nvvideoconvert ! video/x-raw(memory:NVMM),width=64,height=48 ! fakesink name=out "
        "t. ! queue ! fakesink name=other"
    )
    pipeline = Gst.parse_launch(line)
    pipeline.get_by_name("mark").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, annotate)
    seen, other = watch(pipeline, "out"), watch(pipeline, "other")
    assert finish(pipeline).end == "eos"
    assert seen.batches[0].frames[0].objects[0].rect.width == 16
    assert other.batches[0].frames[0].objects[0].rect.width == 32


def test_there_and_back_through_other_elements() -> None:
    line = (
        f"{BARS} ! nvvideoconvert ! m.sink_0 {MUX} ! nvvideoconvert ! video/x-raw,format=I420 ! videoconvert "
        "! video/x-raw,format=RGB ! nvvideoconvert ! video/x-raw(memory:NVMM),format=NV12 ! nvvideoconvert "
        "! video/x-raw,format=RGB ! fakesink name=out"
    )
    _, found = frames(line)
    assert np.allclose(found[0][1][32, 64], GREEN, atol=5)

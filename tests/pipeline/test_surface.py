"""Surfaces over real GStreamer buffers: geometry, copy on write, leaving to system memory."""

from concurrent.futures import ThreadPoolExecutor

import gi
import numpy as np
import pytest

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402

from elements.base import ElementError  # noqa: E402
from elements.metadata.placement import Placement  # noqa: E402
from elements.portable.color import BT601  # noqa: E402
from elements.portable.surface import Surface  # noqa: E402
from elements.portable.video_buffer import VideoLayout, new_video_buffer, picture_of  # noqa: E402

Gst.init(None)


def ramp(width: int, height: int) -> np.ndarray:
    """Red grows with x, green with y, one step per pixel."""
    y, x = np.mgrid[:height, :width]
    return np.dstack([x % 256, y % 256, np.full_like(x, 50)]).astype(np.uint8)


def decoded(format: str, rgb: np.ndarray) -> Surface:
    layout = VideoLayout.of(format, rgb.shape[1], rgb.shape[0])
    buffer, picture = new_video_buffer(layout)
    picture.write_rgb(rgb)
    return Surface.of_buffer(buffer, layout)


def pixels(buffer: Gst.Buffer, format: str, width: int, height: int) -> np.ndarray:
    picture = picture_of(buffer, VideoLayout.of(format, width, height))
    return picture.rgb(picture.whole, width, height)


@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "RGBA", "BGR", "BGRx"])
@pytest.mark.parametrize("size", [(64, 48), (61, 47)])
def test_a_frame_as_it_was_decoded(format: str, size: tuple[int, int]) -> None:
    rgb = ramp(*size)
    surface = decoded(format, rgb)
    assert (surface.width, surface.height, surface.format) == (*size, format)
    assert np.abs(surface.rgb().astype(int) - rgb).max() <= 3


def test_strides_of_the_buffer_go_before_those_of_the_caps() -> None:
    layout = VideoLayout.of("GRAY8", 10, 4)
    buffer = Gst.Buffer.new_wrapped(bytes(range(8 + 4 * 32)))
    GstVideo.buffer_add_video_meta_full(
        buffer, GstVideo.VideoFrameFlags.NONE, GstVideo.VideoFormat.GRAY8, 10, 4, 1, [8, 0, 0, 0], [32, 0, 0, 0]
    )
    assert Surface.of_buffer(buffer, layout).rgb()[:, 0, 0].tolist() == [8, 40, 72, 104]


def test_a_buffer_of_several_memories() -> None:
    layout = VideoLayout.of("GRAY8", 8, 2)
    buffer = Gst.Buffer.new_wrapped(b"\x05" * 8)
    buffer.append_memory(Gst.Buffer.new_wrapped(b"\x09" * 8).get_memory(0))
    surface = Surface.of_buffer(buffer, layout)
    assert surface.rgb()[:, 0, 0].tolist() == [5, 9]


def test_too_small_a_buffer_is_refused() -> None:
    with pytest.raises(ElementError, match="too small"):
        Surface.of_buffer(Gst.Buffer.new_wrapped(b"123"), VideoLayout.of("RGB", 4, 4))


def test_a_frame_of_the_mux_is_looked_at_when_somebody_asks() -> None:
    place = Placement.stretched((4, 4), (8, 8))
    surface = Surface.placed(Gst.Buffer.new_wrapped(b"123"), VideoLayout.of("RGB", 4, 4), (8, 8), "RGB", place)
    assert (surface.width, surface.height, surface.source_planes, surface.device_rgb()) == (8, 8, None, None)
    with pytest.raises(ElementError, match="too small"):
        surface.rgb()


def test_resizing_declares_and_the_pixels_follow() -> None:
    small = decoded("RGB", ramp(64, 32)).resized(32, 16, "NV12")
    assert (small.width, small.height, small.format) == (32, 16, "NV12")
    assert small.placement.scale == (0.5, 0.5)
    assert np.allclose(small.rgb()[5, :, 0], np.arange(32) * 2 + 0.5, atol=0.51)
    assert np.allclose(small.rgb()[:, 5, 1], np.arange(16) * 2 + 0.5, atol=0.51)


def test_padding_is_black_and_the_placement_says_where() -> None:
    source = decoded("RGB", np.full((32, 64, 3), 90, np.uint8))
    padded = source.mapped(64, 64, target=(0, 16, 64, 48))
    assert (padded.placement.left, padded.placement.top, padded.placement.height) == (0, 16, 32)
    rows = padded.rgb()[:, 7, 0]
    assert rows.tolist() == [0] * 16 + [90] * 32 + [0] * 16
    active = padded.resample(64, 32, region=(0, 16, 64, 48))
    assert (active == 90).all()


def test_cropping_shifts_the_placement_and_hides_the_rest() -> None:
    crop = decoded("RGB", ramp(64, 32)).cropped(10, 4, 20, 10)
    assert (crop.width, crop.height) == (20, 10)
    assert (crop.placement.left, crop.placement.top, crop.placement.width) == (-10, -4, 64)
    assert crop.rgb()[0, :, 0].tolist() == list(range(10, 30))
    placed = crop.mapped(40, 10, target=(20, 0, 40, 10))
    assert placed.rgb()[0, :, 0].tolist() == [0] * 20 + list(range(10, 30))


def test_a_crop_beside_the_picture_is_black() -> None:
    outside = decoded("RGB", ramp(16, 16)).cropped(100, 100, 8, 8)
    assert not outside.rgb().any()
    assert not outside.resized(4, 4).rgb().any()


def test_region_between_pixels() -> None:
    part = decoded("RGB", ramp(64, 32)).resample(10, 8, region=(10.5, 4, 30.5, 12))
    assert np.allclose(part[0, :, 0], 10.5 + np.arange(10) * 2 + 0.5, atol=0.6)


def test_painting_is_seen_by_everybody_later() -> None:
    surface = decoded("I420", ramp(64, 32)).resized(32, 16)
    surface.rgb(write=True)[:8] = (250, 0, 0)
    assert (surface.rgb()[0, 0] == (250, 0, 0)).all()
    assert (surface.resample(4, 4)[0, 0] == (250, 0, 0)).all()
    assert (pixels(surface.to_buffer("RGB"), "RGB", 32, 16)[0, 0] == (250, 0, 0)).all()
    assert (surface.resized(64, 32).rgb()[0, 0] == (250, 0, 0)).all()


def test_painting_never_reaches_the_decoder_or_a_twin() -> None:
    source = decoded("RGB", np.full((8, 8, 3), 70, np.uint8))
    twin, scaled = source.share(), source.resized(8, 8)
    source.rgb(write=True)[:] = 1
    late = source.share()
    derived = source.resized(8, 8)
    source.rgb(write=True)[:] = 2
    derived.rgb(write=True)[:] = 3
    assert [int(s.rgb()[0, 0, 0]) for s in (twin, scaled, late, source, derived)] == [70, 70, 1, 2, 3]


def test_leaving_in_the_format_it_came_in_shares_the_memory() -> None:
    surface = decoded("I420", ramp(64, 32))
    left = surface.to_buffer("I420")
    a = picture_of(left, VideoLayout.of("I420", 64, 32)).planes[0]
    b = picture_of(surface.to_buffer("I420"), VideoLayout.of("I420", 64, 32)).planes[0]
    assert np.shares_memory(a, b)
    assert left.pts == Gst.CLOCK_TIME_NONE


def test_a_receiver_that_reads_no_strides_gets_the_standard_layout() -> None:
    layout = VideoLayout.of("GRAY8", 8, 2)
    buffer = Gst.Buffer.new_wrapped(bytes(range(64)))
    GstVideo.buffer_add_video_meta_full(
        buffer, GstVideo.VideoFrameFlags.NONE, GstVideo.VideoFormat.GRAY8, 8, 2, 1, [0, 0, 0, 0], [32, 0, 0, 0]
    )
    surface = Surface.of_buffer(buffer, layout)
    assert surface.to_buffer("GRAY8").get_size() == 64
    tight = surface.to_buffer("GRAY8", any_layout=False)
    assert tight.extract_dup(0, 16) == bytes([*range(8), *range(32, 40)])


@pytest.mark.parametrize("format", ["I420", "NV12", "RGB", "RGBA", "BGRx", "GRAY8"])
def test_leaving_in_other_formats_and_sizes(format: str) -> None:
    surface = decoded("NV12", ramp(64, 48)).mapped(63, 70, target=(0, 20, 63, 68))
    out = pixels(surface.to_buffer(format), format, 63, 70)
    if format == "GRAY8":
        return
    inside = (slice(24, 64), slice(4, -4))  # chroma is soft at the edge of the black border
    assert np.abs(out[inside].astype(int) - surface.rgb()[inside]).max() <= 4
    assert out[:19].max() <= 2


def test_leaving_converts_the_colour_space() -> None:
    surface = decoded("I420", np.full((16, 16, 3), (255, 0, 0), np.uint8))  # small, so BT.601
    hd = picture_of(surface.resized(1280, 720).to_buffer("I420"), VideoLayout.of("I420", 1280, 720))
    assert [int(p[4, 4]) for p in hd.planes] == pytest.approx([63, 102, 240], abs=1)  # HD is BT.709
    sd = picture_of(surface.resized(1280, 720).to_buffer("I420", BT601), VideoLayout.of("I420", 1280, 720))
    assert [int(p[4, 4]) for p in sd.planes] == pytest.approx([81, 90, 240], abs=1)


def test_several_threads_read_one_surface_and_paint_twins() -> None:
    surface = decoded("NV12", ramp(320, 240)).resized(160, 120)
    expected = surface.resample(64, 48).copy()

    def work(shade: int) -> bool:
        twin = surface.share()
        twin.rgb(write=True)[:] = shade
        same = all((surface.resample(64, 48) == expected).all() for _ in range(10))
        return same and (twin.resample(8, 8) == shade).all() and (surface.rgb() != shade).any()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 33)))


@pytest.mark.parametrize("format", ["I420", "RGB"])
def test_many_regions_at_once_are_those_of_each(format: str) -> None:
    """Of a padded surface, inside of the picture and reaching into the padding."""
    surface = decoded(format, ramp(64, 48)).mapped(128, 128, target=(0, 16, 128, 112))
    inside = np.array([[4, 20, 100, 90], [8.5, 17.25, 40, 60]])
    for regions in (inside, np.array([*inside, [0, 0, 64, 40]])):
        together = np.full((len(regions), 20, 30, 3), 9, np.uint8)
        surface.resample_parts(regions, together)
        for region, part in zip(regions.tolist(), together, strict=True):
            np.testing.assert_array_equal(part, surface.resample(30, 20, tuple(region)))


@pytest.mark.parametrize("caps", ["width=100000,height=100000", "width=8"])
def test_caps_of_no_frame(caps: str) -> None:
    with pytest.raises(ElementError, match="not the caps of a video frame, or of one too large: video/x-raw"):
        VideoLayout.of_caps(Gst.Caps.from_string(f"video/x-raw,format=I420,{caps}"))

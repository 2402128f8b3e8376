"""nvmultistreamtiler in a pipeline: every frame is shown, times rise, ends turn tiles black."""

from pathlib import Path

import av
import numpy as np
from gi.repository import Gst

from tests.media import finish, run, source

MUX = "nvstreammux name=m width=128 height=96"
TILER = "nvmultistreamtiler rows=1 columns=2 width=128 height=48"
WHITE, RED = "pattern=white", "pattern=red"


def tiles(batch) -> list[tuple[int, ...]]:
    rgb = batch.surfaces[0].rgb()
    return [tuple(int(v) for v in rgb[24, x]) for x in (32, 96)]


def test_two_streams_side_by_side() -> None:
    line = f"{source(4, more=WHITE)} {source(2, 'm.sink_1', more=RED)} {MUX} batch-size=2 ! {TILER} ! fakesink name=out"
    outcome, seen = run(line)
    assert outcome.end == "eos"
    assert seen.times == [0, 33_333_333, 66_666_666, 100_000_000]
    left, right = tiles(seen.batches[0])
    assert np.allclose(left, 255, atol=2)
    assert np.allclose(right, (255, 0, 0), atol=3)
    assert np.allclose(tiles(seen.batches[3])[1], 0)
    frame = seen.batches[0].frames[0]
    assert (frame.pipeline_width, frame.pipeline_height, frame.frame_number) == (128, 48, 0)
    caps = Gst.Caps.from_string(seen.caps[0])[0]
    assert [caps.get_int(k).value for k in ("width", "height", "batch-size")] == [128, 48, 1]


def test_every_round_of_a_batch_is_shown() -> None:
    _, seen = run(f"{source(10)} {MUX} batch-size=4 ! {TILER} ! fakesink name=out")
    assert [round(t / 33_333_333) for t in seen.times] == list(range(10))


def test_times_rise_with_sources_of_different_rates() -> None:
    slow, fast = source(20, "m.sink_0", framerate="10/1"), source(60, "m.sink_1")
    _, seen = run(f"{slow} {fast} {MUX} batch-size=2 ! {TILER} ! fakesink name=out")
    assert len(seen.times) == 60
    assert all(a < b for a, b in zip(seen.times, seen.times[1:], strict=False))


def test_no_batch_is_an_error() -> None:
    outcome = finish(Gst.parse_launch(f"videotestsrc num-buffers=1 ! nvvideoconvert ! {TILER} ! fakesink"))
    assert "nvstreammux" in outcome.error.message


def test_show_source() -> None:
    sources = f"{source(2, more=WHITE)} {source(2, 'm.sink_1', more=RED)}"
    line = f"{sources} {MUX} batch-size=2 ! {TILER} show-source=1 ! fakesink name=out"
    _, seen = run(line)
    assert np.allclose(tiles(seen.batches[0]), [(255, 0, 0)] * 2, atol=3)
    outcome, _ = run(line.replace("show-source=1", "show-source=2"))
    assert "show-source=2" in outcome.error.message


def test_a_whole_line_to_a_file(tmp_path: Path) -> None:
    """The line that the README shows, with the stand-ins registered in process."""
    out = tmp_path / "tiled.mp4"
    line = (
        "nvstreammux name=m width=1280 height=720 batch-size=2 ! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGB "
        "! nvmultistreamtiler rows=1 columns=2 width=640 height=180 ! nvvideoconvert ! video/x-raw,format=I420 "
        f"! x264enc speed-preset=ultrafast ! mp4mux ! filesink location={out} "
        f"{source(30, 'm.sink_0', 320, 240, more=RED)} {source(20, 'm.sink_1', 642, 361, more=WHITE, format='NV12')}"
    )
    assert finish(Gst.parse_launch(line)).end == "eos"
    with av.open(str(out)) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(pictures) == 30
    assert pictures[0].shape == (180, 640, 3)
    assert np.allclose(pictures[10][90, 100], (255, 0, 0), atol=8)
    assert np.allclose(pictures[10][90, 500], 255, atol=8)
    assert np.allclose(pictures[25][90, 500], 0, atol=8)

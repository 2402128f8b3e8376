"""GPU decoding without the SDK: needs a GPU, NVIDIA's decoder wheel, torch, and clips of `tests.gpu.make_clips`."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gi.repository import Gst

from elements.base import post_error
from elements.portable import nvidia
from elements.portable.carrier import batch_of
from elements.portable.frames import frames_of
from elements.portable.pyservicemaker import Buffer
from tests.clips import drifting
from tests.gpu.make_clips import EVERY, FRAMES, LONG, SIZES
from tests.media import finish
from tests.waiting import wait_for

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

TO_RGB = "! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGB"
MIB = 2**20


@pytest.fixture(scope="module", autouse=True)
def gpu_decoding() -> None:
    if not nvidia.decodes_on_gpu():
        pytest.skip("needs a CUDA GPU and NVIDIA's decoder wheel on GST_PLUGIN_PATH")


@pytest.fixture(scope="module")
def clips() -> Path:
    folder = Path(os.environ.get("GSTORCH_GPU_CLIPS", ""))
    if not (folder / "frames.npz").is_file():
        pytest.skip("GSTORCH_GPU_CLIPS names no folder made by `python -m tests.gpu.make_clips`")
    return folder


def sources(*uris: Path | str, more: str = "") -> str:
    """Sources of the mux "m". Its pads are there from the start because of the identity elements: in a launch line they
    would come with each source's first frame, and the stream would end when the sources that have come so far end.
    """
    found = [uri if isinstance(uri, str) else uri.resolve().as_uri() for uri in uris]
    return " ".join(f"nvurisrcbin uri={uri} {more} ! identity ! m.sink_{i}" for i, uri in enumerate(found))


def watch(pipeline: Gst.Pipeline, look: Callable[[Gst.Buffer], None] | None = None) -> dict[int, list[int]]:
    """Frame numbers per source of what reaches the element "out", filled while it plays. Keeps no frame, unlike
    `tests.media.watch`: the decoder would run out of them.
    """
    numbers: dict[int, list[int]] = {}

    def record(pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        buffer = info.get_buffer()
        batch = batch_of(buffer)
        for frame in batch.frames if batch else []:
            numbers.setdefault(frame.pad_index, []).append(frame.frame_number)
        try:
            if look:
                look(buffer)
        except BaseException:
            post_error(pad.get_parent_element(), traceback.format_exc())  # naming the pipeline would keep it for ever
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("out").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, record)
    return numbers


def play(
    inputs: str, tail: str, look: Callable[[Gst.Buffer], None] | None = None, mux: str = "width=640 height=480"
) -> dict[int, list[int]]:
    """Play to the end; ``look`` sees every buffer that reaches the element "out". Frame numbers per source."""
    mux = f"nvstreammux name=m batch-size={inputs.count('m.sink_')} {mux}"
    pipeline = Gst.parse_launch(f"{inputs} {mux} {tail}")
    numbers = watch(pipeline, look)
    outcome = finish(pipeline, 50)
    assert outcome.end == "eos", (outcome.end, outcome.error, outcome.debug)
    return numbers


def host(tensor: Any) -> np.ndarray:
    return torch.as_tensor(tensor, device="cuda:0").cpu().numpy()


def differences(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Mean and 99.9th percentile of the absolute differences."""
    d = np.abs(a.astype(np.int16) - b)
    return float(d.mean()), float(np.percentile(d, 99.9))


# --- pixels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SIZES, "turned"])
def test_frames_are_those_of_the_cpu(clips: Path, name: str) -> None:
    """Untagged colours, and pictures that are turned; see test_gpu_pixels.py for others."""
    expected = np.load(clips / "frames.npz")[name]
    found, strides, numbers = [], set(), []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = frames_of(buffer)
        assert frame.tensor is not None, batch_of(buffer).surfaces[0].format
        strides.add(frame.tensor.stride())
        numbers.append(frame.frame_number)
        found.append(host(frame.tensor))

    play(sources(clips / f"{name}.mp4"), f"{TO_RGB} ! fakesink name=out", look)
    assert numbers == list(range(FRAMES))
    assert strides == {(3 * expected.shape[2], 3, 1)}
    pairs = [differences(a, b) for a, b in zip(found[::EVERY], expected, strict=True)]
    worst = [max(column) for column in zip(*pairs, strict=True)]
    assert worst == [0, 0], f"mean and 99.9th percentile of the differences: {worst}"


def test_every_way_to_the_pixels_gives_the_same(clips: Path) -> None:
    seen = []

    def look(buffer: Gst.Buffer) -> None:
        if seen:
            return
        tensor = Buffer(buffer).extract(0)
        assert (tensor.device_type, tensor.__dlpack_device__(), tensor.shape) == ("GPU", (2, 0), (362, 642, 3))
        (frame,) = frames_of(buffer)
        surface = batch_of(buffer).surfaces[0]
        ways = {
            "DLPack": torch.from_dlpack(tensor).cpu().numpy(),
            "interface": host(frame.device_picture),
            "tensor": frame.tensor.cpu().numpy(),
            "clone": torch.from_dlpack(tensor.clone()).cpu().numpy(),
            "resized": frame.resized(642, 362),
            "rgb": surface.rgb(),
        }
        assert all(np.array_equal(way, ways["rgb"]) for way in ways.values())
        assert torch.from_dlpack(tensor).data_ptr() == frame.tensor.data_ptr() == frame.device_picture.pointer
        assert tensor.clone().strides == (642 * 3, 3, 1)
        seen.append(ways["rgb"].mean())

    play(sources(clips / "plain.mp4"), f"{TO_RGB} ! fakesink name=out", look, "width=642 height=362")
    assert seen[0] > 10


def test_extract_scales_to_the_size_of_the_mux(clips: Path) -> None:
    seen = []

    def look(buffer: Gst.Buffer) -> None:
        if not seen:
            tensor = Buffer(buffer).extract(0)
            surface = batch_of(buffer).surfaces[0]
            seen.append(differences(torch.from_dlpack(tensor).cpu().numpy(), surface.rgb()))
            assert tensor.shape == (500, 500, 3)

    play(sources(clips / "small.mp4"), f"{TO_RGB} ! fakesink name=out", look, "width=500 height=500 enable-padding=1")
    print("scaled by torch and by OpenCV:", seen)
    assert seen[0][0] < 0.5
    assert seen[0][1] <= 6  # of 255: float against fixed point, at sharp edges


def test_a_decoder_of_ones_own(clips: Path) -> None:
    """NV12 straight from nvv4l2decoder."""
    expected = np.load(clips / "frames.npz")["small"]
    found = []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = frames_of(buffer)
        assert frame.device_planes.chroma_step == 2
        found.append(frame.resized(320, 240).copy())
        assert np.array_equal(host(frame.tensor), found[-1])

    line = f"filesrc location={clips}/small.mp4 ! qtdemux ! h264parse ! nvv4l2decoder ! m.sink_0"
    play(line, "! fakesink name=out", look)
    assert len(found) == FRAMES
    assert all(np.array_equal(a, b) for a, b in zip(found[::EVERY], expected, strict=True))


# --- batches ----------------------------------------------------------------------------------------------------------


def test_no_frame_of_many_sources_is_lost(clips: Path) -> None:
    numbers = play(sources(*[clips / "small.mp4"] * 8), f"{TO_RGB} ! queue ! fakesink name=out")
    assert numbers == {pad: list(range(FRAMES)) for pad in range(8)}


def test_one_source_fills_a_large_batch(clips: Path) -> None:
    line = f"{sources(clips / 'small.mp4')} nvstreammux name=m width=320 height=240 batch-size=16 {TO_RGB} "
    pipeline = Gst.parse_launch(f"{line} ! queue max-size-buffers=2 ! fakesink name=out")
    sizes = []
    watch(pipeline, lambda buffer: sizes.append(len(batch_of(buffer).frames)))
    assert finish(pipeline).end == "eos"
    assert sizes == [16, 16, 16, 12]


def test_models_of_the_host_run_on_frames_in_gpu_memory(clips: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from elements.pyinfer import register
    from tests.onnx_models import finder, save

    register()
    model = save(finder("yolov8"), tmp_path / "finder.onnx")
    truth, errors = drifting(*SIZES["plain"]), []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = batch_of(buffer).frames
        boxes = {o.class_id: o.rect for o in frame.objects}
        for number, (x1, y1, x2, y2) in truth(frame.frame_number).items():
            box = boxes[number]
            corners = (box.left, box.top, box.left + box.width, box.top + box.height)
            errors.append(max(abs(a - b) for a, b in zip(corners, (x1, y1, x2, y2), strict=True)))

    tail = f"{TO_RGB} ! pyinfer model-path={model} confidence-threshold=0.5 device=cpu ! fakesink name=out"
    play(sources(clips / "plain.mp4"), tail, look, "width=642 height=362")
    print("boxes: worst error", max(errors), "pixels")
    assert len(errors) == 2 * FRAMES
    assert max(errors) < 1.5


def test_drawing_and_encoding_download_what_they_need(clips: Path, tmp_path: Path) -> None:
    if not Gst.ElementFactory.find("x264enc"):
        pytest.skip("no x264enc here")
    target = tmp_path / "out.h264"
    tail = (
        f"! nvmultistreamtiler rows=1 columns=2 width=640 height=240 ! nvvideoconvert "
        "! video/x-raw(memory:NVMM),format=RGBA ! nvdsosd ! nvvideoconvert ! video/x-raw(memory:NVMM),format=I420 "
        f"! nvv4l2h264enc ! h264parse ! tee name=t ! queue ! filesink location={target} t. ! fakesink name=out"
    )
    pictures = []
    play(sources(*[clips / "small.mp4"] * 2), tail, lambda buffer: pictures.append(buffer.pts), "width=320 height=240")
    assert FRAMES <= len(pictures) <= 2 * FRAMES  # one of both sources, but for batches that lack one
    assert target.stat().st_size > 1000


def test_a_repeating_file(clips: Path) -> None:
    pipeline = Gst.parse_launch(
        f"{sources(clips / 'small.mp4', more='file-loop=true')} nvstreammux name=m batch-size=1 width=320 height=240 "
        "! fakesink name=out"
    )
    numbers = watch(pipeline)
    pipeline.set_state(Gst.State.PLAYING)
    try:
        assert wait_for(lambda: len(numbers.get(0, [])) > 3 * FRAMES)
    finally:
        pipeline.set_state(Gst.State.NULL)
    assert numbers[0] == list(range(len(numbers[0])))


# --- resources --------------------------------------------------------------------------------------------------------


def test_memory_stays_flat(clips: Path) -> None:
    free, resident = [], []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = frames_of(buffer)
        assert frame.tensor.is_cuda
        torch.from_dlpack(Buffer(buffer).extract(0))
        free.append(torch.cuda.mem_get_info()[0])
        resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

    play(sources(clips / "long.mp4"), f"{TO_RGB} ! fakesink name=out", look, "width=320 height=240")
    assert len(free) == LONG
    grown = [(series[-1] - series[LONG // 4]) / MIB for series in (resident, [-f for f in free])]
    print(f"{LONG} batches: resident {grown[0]:+.1f} MiB, GPU {grown[1]:+.1f} MiB after the first quarter")
    assert grown[0] < 8
    assert grown[1] <= 0


def test_stopping_in_the_middle_gives_everything_back(clips: Path) -> None:
    free = []
    for _ in range(12):
        pipeline = Gst.parse_launch(
            f"{sources(*[clips / 'long.mp4'] * 2)} nvstreammux name=m batch-size=2 width=320 height=240 {TO_RGB} "
            "! queue max-size-buffers=2 ! fakesink name=out"
        )
        numbers = watch(pipeline)
        pipeline.set_state(Gst.State.PLAYING)
        assert wait_for(lambda numbers=numbers: len(numbers.get(0, [])) >= 100)
        assert pipeline.set_state(Gst.State.NULL) == Gst.StateChangeReturn.SUCCESS
        del pipeline
        gc.collect()
        free.append(torch.cuda.mem_get_info()[0] // MIB)
    print("GPU memory free after each run, MiB:", free)
    assert free[-1] >= free[1] - 4


def test_the_tier_is_named() -> None:
    script = "from pipelines.runtime import load_runtime; print(load_runtime().describe())"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    print(shown)
    assert "GPU decode, no SDK" in shown
    assert "nvv4l2decoder" not in shown.split("stand-ins:")[1]

"""Frames in GPU memory, as far as a machine without a GPU can have them: layout, geometry, downloads, tensors."""

from __future__ import annotations

import ctypes
import gc
import logging
import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from gi.repository import Gst

from elements.base import ElementError
from elements.inference.frame import DevicePlanes
from elements.metadata.placement import Placement
from elements.portable import cuda, device_array, nvmm
from elements.portable.color import BT601
from elements.portable.device_array import DeviceArray
from elements.portable.frames import frames_of
from elements.portable.pyservicemaker import Buffer
from elements.portable.surface import Surface
from elements.portable.video_buffer import VideoLayout, picture_of
from tests.media import finish, watch
from tests.nvmm_memory import CUDA_ARRAY, CUDA_DEVICE, I420, NV12, NV12_709, RGBA, NvmmFrame

ADDRESS, PITCH = 0x7F00_0000_0000, 1024


def noise(width: int, height: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def surface_of(frame: NvmmFrame, width: int, height: int, format: str = "RGB") -> Surface:
    return Surface.of_buffer(frame.buffer(), VideoLayout.of(format, width, height))


@pytest.fixture
def gpu_copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Device memory is host memory here; records (rows, bytes per row) of every download."""
    copies: list[tuple[int, int]] = []

    def download(pointer: int, pitch: int, out: np.ndarray, device: int = 0) -> None:
        copies.append((out.shape[0], out[0].nbytes))
        for row, target in enumerate(out):
            ctypes.memmove(target.ctypes.data, pointer + row * pitch, target.nbytes)

    monkeypatch.setattr(cuda, "download", download)
    return copies


# --- the structures ---------------------------------------------------------------------------------------------------


def test_the_structures_have_the_sizes_and_offsets_of_nvbufsurface() -> None:
    sizes = [ctypes.sizeof(s) for s in (nvmm._Surface, nvmm._Frame, nvmm._Planes)]
    assert sizes == [72, 416, 232]
    offsets = {
        nvmm._Surface: {"filled": 8, "memory_type": 16, "frames": 24, "imported": 32, "reserved": 40},
        nvmm._Frame: {"color_format": 12, "layout": 16, "descriptor": 24, "size": 32, "data": 40, "planes": 48}
        | {"mapped": 280, "extra": 368, "cuda_buffer": 376, "reserved": 384},
        nvmm._Planes: {"width": 4, "height": 20, "pitch": 36, "offset": 52, "size": 68, "bytes_per_pixel": 84}
        | {"reserved": 104},
    }
    for structure, fields in offsets.items():
        assert {name: getattr(structure, name).offset for name in fields} == fields


def test_nvidias_buffers_and_ours_are_told_apart() -> None:
    assert nvmm.holds_nvmm(NvmmFrame(64, 48).buffer())
    assert not nvmm.holds_nvmm(Gst.Buffer.new_allocate(None, 72, None))  # 6x4 RGB in system memory
    assert not nvmm.holds_nvmm(Gst.Buffer.new())


@pytest.mark.parametrize("size", [(322, 240), (321, 241)])
def test_rgb_pixels_are_read_row_by_row(size: tuple[int, int]) -> None:
    rgb = noise(*size)
    frame = NvmmFrame(*size).paint(rgb)
    surface = surface_of(frame, *size)
    assert (surface.width, surface.height, surface.format) == (*size, "RGB")
    assert np.array_equal(surface.rgb(), rgb)
    assert np.array_equal(picture_of(surface.to_buffer("RGB"), VideoLayout.of("RGB", *size)).planes[0], rgb)


@pytest.mark.parametrize("color_format", [NV12, NV12_709])
@pytest.mark.parametrize(
    ("colorimetry", "red"),
    [("bt601", (81, 90, 240)), ("bt709", (63, 102, 240))],  # pure red as Y, Cb, Cr
)
def test_nv12_pixels_in_the_colour_space_of_the_caps(
    color_format: int, colorimetry: str, red: tuple[int, int, int]
) -> None:
    frame = NvmmFrame(64, 48, color_format)
    luma, chroma = frame.planes
    luma[:], chroma[:, 0::2], chroma[:, 1::2] = red
    caps = f"video/x-raw,format=NV12,width=64,height=48,colorimetry={colorimetry}"
    rgb = Surface.of_buffer(frame.buffer(), VideoLayout.of_caps(Gst.Caps.from_string(caps))).rgb()
    assert rgb.shape == (48, 64, 3)
    assert np.abs(rgb[10, 10].astype(int) - (255, 0, 0)).max() <= 2


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"color_format": NV12, "layout": 1}, "layout 1, cannot be read"),
        ({"memory_type": CUDA_ARRAY}, "memory of type 7"),
        ({"filled": 2}, "holds 2 frames"),
        ({"filled": 0}, "holds 0 frames"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(changes: dict[str, int], text: str) -> None:
    with pytest.raises(ElementError, match=text):
        surface_of(NvmmFrame(64, 48, **changes), 64, 48)


def test_a_size_that_differs_from_the_caps_is_refused() -> None:
    with pytest.raises(ElementError, match="64x48, its caps say 64x50"):
        surface_of(NvmmFrame(64, 48), 64, 50)


# --- downloads --------------------------------------------------------------------------------------------------------


def test_pixels_are_downloaded_once_and_only_when_asked_for(gpu_copies: list[tuple[int, int]]) -> None:
    rgb = noise(64, 48)
    frame = NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(rgb)
    surface = surface_of(frame, 64, 48).mapped(128, 128, target=(0, 16, 128, 112))
    assert surface.source_tensor is not None
    assert gpu_copies == []
    half = surface.share().resample(32, 24, (0, 16, 128, 112))
    assert np.array_equal(half, cv2.resize(rgb, (32, 24), interpolation=cv2.INTER_LINEAR))
    surface.rgb()
    assert gpu_copies == [(48, 64 * 3)]


def test_painting_brings_a_picture_to_the_host(gpu_copies: list[tuple[int, int]]) -> None:
    frame = NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(noise(64, 48))
    surface = surface_of(frame, 64, 48)
    twin = surface.share()
    surface.rgb(write=True)[:] = 7
    assert surface.source_tensor is None
    assert surface.device_rgb() is None
    assert (surface.rgb() == 7).all()
    assert twin.source_tensor is not None
    assert (frame.planes[0][:48, : 64 * 3] == twin.rgb().reshape(48, -1)).all()


# --- tensors ----------------------------------------------------------------------------------------------------------


def test_a_tensor_is_the_surface_itself() -> None:
    frame = NvmmFrame(322, 240, memory_type=CUDA_DEVICE)
    tensor = surface_of(frame, 322, 240).device_rgb()
    assert tensor is not None
    assert (tensor.pointer, tensor.shape, tensor.strides) == (frame.address, (240, 322, 3), (1024, 3, 1))
    assert tensor.__dlpack_device__() == (2, 0)
    interface = tensor.__cuda_array_interface__
    assert interface["data"] == (frame.address, False)
    assert (interface["typestr"], interface["shape"], interface["strides"]) == ("|u1", (240, 322, 3), (1024, 3, 1))


def test_rgba_has_no_tensor() -> None:
    surface = surface_of(NvmmFrame(64, 48, RGBA, CUDA_DEVICE), 64, 48, "RGBA")
    assert (surface.source_tensor, surface.source_planes) == (None, None)


def test_planes_are_the_surface_itself() -> None:
    frame = NvmmFrame(321, 241, I420, CUDA_DEVICE)
    planes = surface_of(frame, 321, 241, "I420").source_planes
    assert planes is not None
    chroma = 512 * 242, 512 * 242 + 512 * 121
    assert planes[:3] == (frame.address, frame.address + chroma[0], frame.address + chroma[1])
    assert planes[3:9] == (512, 512, 1, 1, 321, 241)
    assert planes.matrix == BT601.to_rgb_fixed


def test_planes_side_by_side() -> None:
    frame = NvmmFrame(322, 240, NV12_709, CUDA_DEVICE)
    planes = surface_of(frame, 322, 240, "NV12").source_planes
    assert planes is not None
    assert planes[:3] == (frame.address, frame.address + 512 * 240, frame.address + 512 * 240 + 1)
    assert planes[3:9] == (512, 512, 1, 2, 322, 240)
    assert planes.matrix == BT601.to_rgb_fixed  # what caps of that size mean that say nothing


def test_a_frame_of_the_mux_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def nvmm_picture(buffer: Gst.Buffer, layout: VideoLayout) -> nvmm.NvmmPicture:
        looked.append(buffer)
        return nvmm.nvmm_picture(buffer, layout)

    monkeypatch.setattr("elements.portable.surface.nvmm_picture", nvmm_picture)
    frame = NvmmFrame(322, 240, NV12_709, CUDA_DEVICE)
    layout = VideoLayout.of("NV12", 322, 240)
    place = Placement.of((322, 240), (640, 640), True)
    surface = Surface.placed(frame.buffer(), layout, (640, 640), "NV12", place)
    assert looked == []
    planes = surface.source_planes
    assert planes is not None
    assert planes.luma == frame.address
    assert surface.share().resized(320, 320).source_planes == surface.source_planes == planes
    assert len(looked) == 1


def test_planes_in_host_memory_are_none() -> None:
    assert surface_of(NvmmFrame(64, 48, NV12), 64, 48, "NV12").source_planes is None


def test_rgb_of_planes_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def rgb_of(planes: DevicePlanes) -> DeviceArray:
        made.append(planes.luma)
        return DeviceArray(ADDRESS, (48, 64, 3), (192, 3, 1))

    monkeypatch.setattr(nvmm, "rgb_of", rgb_of)
    frame = NvmmFrame(64, 48, NV12, CUDA_DEVICE)
    surface = surface_of(frame, 64, 48, "NV12")
    assert surface.source_planes is not None
    assert made == []
    assert surface.source_tensor is surface.share().device_rgb()
    assert made == [frame.address]


def test_rgb_of_planes_needs_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    surface = surface_of(NvmmFrame(64, 48, NV12, CUDA_DEVICE), 64, 48, "NV12")
    with pytest.raises(ElementError, match="needs torch"):
        _ = surface.source_tensor


def test_a_source_keeps_its_own_size_on_the_gpu_whatever_the_mux_declares() -> None:
    surface = surface_of(NvmmFrame(64, 48, memory_type=CUDA_DEVICE), 64, 48)
    place = Placement.of((64, 48), (100, 100), True)
    target = (place.left, place.top, place.left + place.width, place.top + place.height)
    padded = surface.mapped(100, 100, "RGB", target=target).resized(50, 50)
    assert padded.source_tensor is not None
    assert padded.source_tensor.shape == (48, 64, 3)
    assert padded.cropped(0, 0, 20, 20).source_tensor is None


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, written out here once more."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


def test_the_dlpack_capsule_and_who_releases_it() -> None:
    owner = ["the frame"]
    array = device_array.DeviceArray(ADDRESS, (2, 5, 3), (PITCH, 3, 1), 1, owner)
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    capsule = array.__dlpack__(stream=2)
    address = get(capsule, b"dltensor")
    seen = _Tensor.from_address(address)
    assert (seen.data, list(seen.device), seen.ndim, list(seen.dtype)) == (ADDRESS, [2, 1], 3, [1, 8, 1, 0])
    assert (seen.shape[:3], seen.strides[:3], seen.byte_offset) == ([2, 5, 3], [PITCH, 3, 1], 0)
    assert len(device_array._lent) == 1
    del capsule  # nobody consumed it
    gc.collect()
    assert len(device_array._lent) == 0

    capsule = array.__dlpack__()
    address = get(capsule, b"dltensor")
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
    rename = prototype(("PyCapsule_SetName", ctypes.pythonapi))
    rename(capsule, used := b"used_dltensor")  # as a consumer does
    del capsule
    assert (len(device_array._lent), used) == (1, b"used_dltensor")
    _Tensor.from_address(address).deleter(address)
    assert len(device_array._lent) == 0


# --- whole pipelines --------------------------------------------------------------------------------------------------


def play(tail: str, frames: list[NvmmFrame], mux: str = "width=64 height=48", format: str = "RGB", look=None):
    """Push NVMM frames of 64x48 through the mux and ``tail``."""
    pipeline = Gst.parse_launch(
        f"appsrc name=src format=time caps=video/x-raw(memory:NVMM),format={format},width=64,height=48,framerate=25/1 "
        f"! m.sink_0 nvstreammux name=m batch-size=1 {mux} {tail}"
    )
    seen = watch(pipeline, "out", look)
    source = pipeline.get_by_name("src")
    for number, frame in enumerate(frames):
        buffer = frame.buffer()
        buffer.pts = number * 40 * Gst.MSECOND
        source.emit("push-buffer", buffer)
    source.emit("end-of-stream")
    outcome = finish(pipeline)
    if seen.failure:
        raise seen.failure
    assert outcome.end == "eos", outcome.error
    return seen


def test_models_and_users_get_tensors_and_nothing_is_downloaded(
    gpu_copies: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = SimpleNamespace(from_dlpack=lambda array: ("torch", array.pointer))
    monkeypatch.setitem(sys.modules, "torch", torch)
    frames = [NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(noise(64, 48, n)) for n in range(5)]
    found = []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = frames_of(buffer)
        tensor = Buffer(buffer).extract(0)
        picture = frame.device_picture
        assert frame.tensor == ("torch", picture.pointer)
        found.append((picture.pointer, picture.shape, tensor.shape, tensor.strides, tensor.device_type))
        assert tensor.__dlpack_device__() == (2, 0)
        assert bool(tensor)

    play("! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGB ! fakesink name=out", frames, look=look)
    shape, strides = (48, 64, 3), (512, 3, 1)
    assert found == [(frame.address, shape, shape, strides, "GPU") for frame in frames]
    assert gpu_copies == []


def test_host_models_get_the_same_pixels(gpu_copies: list[tuple[int, int]]) -> None:
    rgb = noise(64, 48)
    seen = []
    play(
        "! fakesink name=out",
        [NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(rgb)],
        "width=200 height=100 enable-padding=true",
        look=lambda buffer: seen.append(frames_of(buffer)[0].resized(64, 48)),
    )
    assert np.array_equal(seen[0], rgb)


def test_extract_refuses_what_is_no_rgb(caplog: pytest.LogCaptureFixture) -> None:
    seen = []
    tail = "! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGBA ! fakesink name=out"
    with caplog.at_level(logging.WARNING):
        play(tail, [NvmmFrame(64, 48)], look=lambda b: seen.append(bool(Buffer(b).extract(0))))
    assert seen == [False]
    assert "RGBA" in caplog.text


def test_scaling_on_the_gpu_without_torch_gives_a_void_tensor(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    seen = []
    frame = NvmmFrame(64, 48, memory_type=CUDA_DEVICE)
    play("! fakesink name=out", [frame], "width=32 height=24", look=lambda b: seen.append(bool(Buffer(b).extract(0))))
    assert seen == [False]
    assert "needs torch" in caplog.text


@pytest.mark.parametrize(
    "tail",
    [
        "! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGBA ! nvdsosd ! nvvideoconvert ! video/x-raw,format=RGB",
        "! nvmultistreamtiler rows=1 columns=1 width=64 height=48 ! nvvideoconvert ! video/x-raw,format=RGB",
        "! nvstreamdemux name=d d.src_0 ! nvvideoconvert ! video/x-raw,format=RGB",
        "! nvvideoconvert ! video/x-raw(memory:NVMM),format=NV12 ! nvtracker ! nvvideoconvert ! video/x-raw,format=RGB",
    ],
)
def test_every_stand_in_takes_frames_in_gpu_memory(tail: str, gpu_copies: list[tuple[int, int]]) -> None:
    rgb = [noise(64, 48, n) for n in range(3)]
    frames = [NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(picture) for picture in rgb]
    seen: list[np.ndarray] = []
    layout = VideoLayout.of("RGB", 64, 48)
    play(f"{tail} ! fakesink name=out", frames, look=lambda b: seen.append(picture_of(b, layout).planes[0].copy()))
    assert all(np.array_equal(a, b) for a, b in zip(seen, rgb, strict=True))
    assert len(gpu_copies) == 3


def test_an_encoder_takes_frames_in_gpu_memory(gpu_copies: list[tuple[int, int]]) -> None:
    frames = [NvmmFrame(64, 48, memory_type=CUDA_DEVICE).paint(noise(64, 48, n)) for n in range(4)]
    tail = "! nvvideoconvert ! video/x-raw(memory:NVMM),format=I420 ! nvv4l2h264enc ! h264parse ! fakesink name=out"
    pipeline_seen = []
    play(tail, frames, look=lambda buffer: pipeline_seen.append(buffer.get_size()))
    assert len(pipeline_seen) == 4
    assert len(gpu_copies) == 4

"""Costs of inference on a GPU, part by part, with 1080p frames and a network of the smallest YOLOs' size.

    python -m benchmarks.gpu_inference [--batches 1 8 16 32] [--compiled 1 16] [--json out.json]

Times are medians over rounds, each of many runs between two CUDA events; rates of the whole path are wall time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from benchmarks.network import Detector as Network
from elements.inference.config import ModelConfig
from elements.inference.decoders import Sample, choose_decoder
from elements.inference.engines.base import DeviceEngine
from elements.inference.frame import ArrayFrame, DevicePlanes
from elements.inference.gpu.detect import COLUMNS, Detector
from elements.inference.gpu.letterbox import TABLE_COLUMNS, Pixels, fill_table, letterbox
from elements.inference.gpu.letterbox_triton import letterbox_fused
from elements.inference.gpu.nms_triton import suppress_fused
from elements.inference.gpu.runners import GraphRunner
from elements.inference.letterbox import LetterboxMode, place_all
from elements.inference.model import DetectionModel
from elements.inference.preprocess import Preprocess
from elements.metadata.placement import Placements
from elements.portable.color import BT709

NETWORK = "benchmarks.network:Detector"
SIZE = (640, 640)
WIDE = (640, 384)  # of 16:9 pictures
SOURCE = (1920, 1080)
PITCH = 6144  # of NVIDIA's RGB surfaces at 1920
Figures = dict[str, Any]


class GpuFrame(ArrayFrame):
    """A 1080p picture in GPU memory, rows padded as in NVIDIA's surfaces."""

    __slots__ = ("tensor",)

    def __init__(self, seed: int) -> None:
        super().__init__(np.empty((SOURCE[1], SOURCE[0], 3), np.uint8), source_id=seed)
        generator = torch.Generator(device="cuda").manual_seed(seed)
        memory = torch.randint(0, 256, (SOURCE[1], PITCH), dtype=torch.uint8, device="cuda", generator=generator)
        self.tensor = memory.as_strided((SOURCE[1], SOURCE[0], 3), (PITCH, 3, 1))

    def resized(self, width: int, height: int, out: Any = None, region: Any = None) -> Any:
        raise AssertionError("pixels must not go through the host")


def gpu_us(work: Callable[[], object], runs: int = 30, rounds: int = 7) -> float:
    """Microseconds of GPU time per call of ``work``, on the current stream."""
    for _ in range(5):
        work()
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(runs):
            work()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) * 1000 / runs)
    return statistics.median(times)


def planes_of(seed: int) -> DevicePlanes:
    """A 1080p NV12 picture in GPU memory, with the pitches of NVIDIA's surfaces."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    rows, pitch = SOURCE[1], 2048
    memory = torch.randint(0, 256, (rows * 3 // 2, pitch), dtype=torch.uint8, device="cuda", generator=generator)
    luma = memory.data_ptr()
    blue = luma + rows * pitch
    return DevicePlanes(luma, blue, blue + 1, pitch, pitch, 1, 2, *SOURCE, BT709.to_rgb_fixed, 0, memory)


def letterbox_figures(batch: int = 16) -> Figures:
    """Microseconds per 1080p frame, of RGB and NV12, fused and in plain torch; and of the host to fill the table."""
    places, device = place_all(np.array([SOURCE] * batch), SIZE, "center"), torch.device("cuda", 0)
    frames = {"rgb": [GpuFrame(seed).tensor for seed in range(batch)], "nv12": [planes_of(i) for i in range(batch)]}
    figures: Figures = {}
    for kind, pictures in frames.items():
        figures |= {f"letterbox_{kind}_{name}": us for name, us in _letterbox_figures(pictures, places, device).items()}
    return figures


def _letterbox_figures(pictures: list[Any], places: Placements, device: torch.device) -> Figures:
    batch = len(pictures)
    pixels = [Pixels.of(one) if isinstance(one, torch.Tensor) else one for one in pictures]
    table = torch.zeros((batch, TABLE_COLUMNS), dtype=torch.int64)
    packed = fill_table(pixels, places, table.numpy(), device)
    start = time.perf_counter()
    for _ in range(100):
        fill_table(pixels, places, table.numpy(), device)
    figures: Figures = {"table_us_per_frame": (time.perf_counter() - start) * 1e4 / batch}
    there = table.to(device)
    for name, layout in (("planes", torch.contiguous_format), ("channels_last", torch.channels_last)):
        out = torch.empty((batch, 3, SIZE[1], SIZE[0]), dtype=torch.float16, device=device, memory_format=layout)
        us = gpu_us(lambda out=out: letterbox_fused(there, packed, batch, out, Preprocess()))  # type: ignore[misc]
        figures[f"fused_{name}_us_per_frame"] = us / batch
    us = gpu_us(lambda: letterbox(pictures, places, out, Preprocess()), runs=10)
    figures["torch_us_per_frame"] = us / batch
    return figures


def network_figures(model: DetectionModel, batches: list[int]) -> Figures:
    """Images per second of the network alone: call by call, and as a graph with decoding and suppression."""
    assert model._network is not None
    assert model._device is not None
    engine: Any = model._network.engine
    path = model._device
    figures: Figures = {}
    with torch.inference_mode(), torch.cuda.stream(path._stream):
        for batch in batches:
            image = torch.rand((batch, 3, SIZE[1], SIZE[0]), device="cuda").half()
            image = image.contiguous(memory_format=torch.channels_last)
            eager = gpu_us(lambda image=image: engine.forward(image), runs=10, rounds=5)  # type: ignore[misc]
            bare = GraphRunner(engine, batch, SIZE, lambda outputs: outputs[0], path._pool)
            whole = path._runner(batch, SIZE)
            network, all_in = gpu_us(bare.run), gpu_us(whole.run)
            figures[f"batch_{batch}"] = {
                "network_eager_images_per_s": batch * 1e6 / eager,
                "network_graph_images_per_s": batch * 1e6 / network,
                "network_decode_nms_graph_images_per_s": batch * 1e6 / all_in,
                "decode_nms_ms": (all_in - network) / 1000,
            }
    return figures


def detect_figures(batch: int = 16, objects: int = 100) -> Figures:
    """Decoding and suppression of ``objects`` candidates per frame, captured, and the copy to the host."""
    rng = np.random.default_rng(0)
    output = rng.random((batch, 84, 8400)) * 0.2
    output[:, :2] = rng.uniform(0, 640, (batch, 2, 8400))
    output[:, 2:4] = rng.uniform(20, 80, (batch, 2, 8400))
    output[:, 4:8, :objects] = rng.uniform(0.3, 0.9, (batch, 4, objects))
    tensor = torch.from_numpy(output).half().cuda()
    decoder = choose_decoder(Sample({"output": output[:1].astype(np.float32)}, SIZE, task="detect"), "yolov8")
    detector = Detector(decoder, suppress_fused, torch.tensor([0.25, 0.45], device="cuda"), None)
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        detector.pack([tensor], SIZE, 512)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            packed = detector.pack([tensor], SIZE, 512)
        host = torch.empty(packed.shape, pin_memory=True)
        figures = {
            f"decode_nms_{objects}_objects_ms": gpu_us(graph.replay) / 1000,
            "host_copy_us": gpu_us(lambda: host.copy_(packed, non_blocking=True)),
            "host_copy_bytes": host.numel() * 4,
        }
        few = packed[:, : 301 * COLUMNS].contiguous()
        host_few = torch.empty(few.shape, pin_memory=True)
        figures["host_copy_300_rows_us"] = gpu_us(lambda: host_few.copy_(few, non_blocking=True))
    return figures


def whole_figures(model: DetectionModel, batch: int, seconds: float = 2.0) -> Figures:
    """The whole path from pictures on the GPU to detections on the host: one batch at a time, and two on the way."""
    path = model._device
    assert path is not None
    frames = [GpuFrame(seed) for seed in range(batch)]
    assert model._network is not None
    size = model._network.size
    if model._network.stride:
        size = model._plan(frames, model._network)[0].size
    for _ in range(20):
        model.infer(frames)
    figures: Figures = {"input": f"{size[0]}x{size[1]}"}
    before = torch.cuda.memory_allocated()
    end, count, host = time.perf_counter() + seconds, 0, 0.0
    start = time.perf_counter()
    while time.perf_counter() < end:
        model.infer(frames)
        count += 1
    figures["one_at_a_time_images_per_s"] = batch * count / (time.perf_counter() - start)
    end, count = time.perf_counter() + seconds, 0
    start = time.perf_counter()
    waiting = path.submit(frames, size, 0.25, 0.45)
    while time.perf_counter() < end:
        begun = time.thread_time()
        following = path.submit(frames, size, 0.25, 0.45)
        path.collect(waiting)
        host += time.thread_time() - begun
        waiting, count = following, count + 1
    path.collect(waiting)
    figures["two_on_the_way_images_per_s"] = batch * count / (time.perf_counter() - start)
    figures["host_cpu_ms_per_batch"] = host * 1000 / count
    figures["batches"] = count
    figures["memory_growth_bytes"] = torch.cuda.memory_allocated() - before
    return figures


def uncompiled_figures(batches: list[int]) -> Figures:
    """Letterbox, decoding, network and the whole path, as they are without torch.compile."""
    figures = letterbox_figures() | detect_figures()
    kinds: dict[str, LetterboxMode] = {"square": "stretch", "rectangular": "center"}
    for name, letterboxed in kinds.items():
        model = DetectionModel(
            ModelConfig(NETWORK, device="cuda", input_size=SIZE, letterbox=letterboxed, layout="yolov8")
        )
        model.load()
        if name == "square":
            figures["network"] = network_figures(model, batches)
        figures[f"whole_{name}"] = {f"batch_{batch}": whole_figures(model, batch) for batch in batches}
        model.close()
    return figures


def compiled_figures(batch: int) -> Figures:
    """With torch.compile: seconds to load, images/s of the network alone and of the whole path, both at 640x384."""
    config = ModelConfig(NETWORK, device="cuda", input_size=WIDE, layout="yolov8", batch_size=batch)
    figures: Figures = {}
    for name, compiled in (("plain", False), ("compiled", True)):
        model = DetectionModel(replace(config, compile=compiled))
        started = time.perf_counter()
        model.load()
        loaded = time.perf_counter() - started
        assert model._network is not None
        assert model._device is not None
        path, engine = model._device, cast(DeviceEngine, model._network.engine)
        with torch.inference_mode(), torch.cuda.stream(path._stream):
            forward = path._compiled.get((batch, WIDE))
            bare = GraphRunner(engine, batch, WIDE, lambda outputs: outputs[0], path._pool, forward)
            network = batch * 1e6 / gpu_us(bare.run)
        whole = whole_figures(model, batch)
        figures[name] = {"load_s": loaded, "network_graph_images_per_s": network, **whole}
        model.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 16, 32])
    parser.add_argument("--compiled", type=int, nargs="+", help="only these batches, with torch.compile and without")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: Figures = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "weights": sum(weight.numel() for weight in Network().parameters()),
    }
    if options.compiled:
        figures |= {f"batch_{batch}": compiled_figures(batch) for batch in options.compiled}
    else:
        figures |= uncompiled_figures(options.batches)
    text = json.dumps(figures, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

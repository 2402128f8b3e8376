"""What a classifier on the objects of a frame in GPU memory costs, against one batched call of the bare network.

    python -m benchmarks.cascade_gpu [--objects 40] [--rounds 100]

The network is a MobileNet with random weights in fp16. The bare call is a captured CUDA graph whose input is ready.
The model's call cuts the objects out of a 1080p frame, scales and normalises them, runs the network, and brings the
classes to the host; the stage's call also reads the objects from the frame's metadata, chooses them, and writes the
labels there. Calls run in turn, each waited for; ``overlapped`` is the time per batch with two of them on their way,
as `pyinfer` runs engines on a device. Prints one JSON object, milliseconds; the host's part is CPU time of one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import elements  # noqa: F401  before anything loads GStreamer
from elements.base import Gst

Gst.init(None)
from elements.api import pyservicemaker  # noqa: E402
from elements.inference.cascade import OperateOn  # noqa: E402
from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.session import Pending, Session  # noqa: E402
from elements.metadata.placement import Placement  # noqa: E402
from elements.objects_at_work import ObjectsAtWork, ObjectWork, Said  # noqa: E402
from elements.portable.carrier import new_batch_buffer  # noqa: E402
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta  # noqa: E402
from tests.torch_models import TensorFrame  # noqa: E402

SIDE = 224
FRAME = (1920, 1080)
ON_THE_WAY = 2
CLASSES = 10
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels and strides of MobileNet's blocks (Howard et al. 2017, table 1)."""


class MobileNet(nn.Sequential):
    """(B, 3, H, W) to (B, 10) logits; batch norm is taken as folded into the weights."""

    def __init__(self) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU()]
        channels = 32
        for outputs, stride in BLOCKS:
            layers += [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels), nn.ReLU()]
            layers += [nn.Conv2d(channels, outputs, 1), nn.ReLU()]
            channels = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class FrameOnDevice(TensorFrame):
    """A frame of a batch of one."""

    batch_id = pad_index = 0
    placement = Placement.stretched(FRAME, FRAME)


class Stage:
    """A classifier on the objects of one frame in GPU memory, as `pyinfer` runs it, without GStreamer around it."""

    def __init__(self, objects: int, device: str = "cuda") -> None:
        rng = np.random.default_rng(0)
        corners, sizes = rng.integers(0, (1600, 760), (objects, 2)), rng.integers(40, 320, (objects, 2))
        self._boxes = np.concatenate([corners, sizes], axis=1)
        self._frame = FrameOnDevice(rng.integers(0, 256, (FRAME[1], FRAME[0], 3), np.uint8), device)
        config = ModelConfig(
            "benchmarks.cascade_gpu:MobileNet", task="classify", labels=[f"class {n}" for n in range(CLASSES)],
            input_size=(SIDE, SIDE), device=device, confidence=0.0,
        )  # fmt: skip
        self.session = Session(config)
        self.session.open()
        self._objects = ObjectsAtWork(OperateOn(1), Said("classify", "colour", 2), pyservicemaker())

    def batch(self) -> Gst.Buffer:
        """One frame's metadata with the objects, none of which has a track."""
        meta = FrameMeta(source_width=FRAME[0], source_height=FRAME[1])
        for left, top, width, height in self._boxes.tolist():
            item = ObjectMeta(unique_component_id=1, label="thing")
            item.rect.left, item.rect.top, item.rect.width, item.rect.height = map(float, (left, top, width, height))
            meta.objects.append(item)
        return new_batch_buffer(BatchMeta(1, [meta], []), 0, 40_000_000)

    def submit(self, buffer: Gst.Buffer) -> tuple[Gst.Buffer, ObjectWork, Pending]:
        """What the streaming thread does with a batch."""
        work = self._objects.plan(buffer, [self._frame], {0})
        return buffer, work, self.session.submit(work.pictures)

    def finish(self, buffer: Gst.Buffer, work: ObjectWork, pending: Pending) -> None:
        """What the thread that collects does with it."""
        self._objects.write(buffer, work, self.session.collect_groups(pending))


def in_turn(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Medians of each call's milliseconds until the GPU is done, and of the CPU time of this thread."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds + 10):
        for name, call in calls.items():
            torch.cuda.synchronize()
            started, cpu = time.perf_counter(), time.thread_time()
            call()
            used = time.thread_time() - cpu
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - started, used))
    return {name: tuple((1000 * np.median(own[10:], axis=0)).tolist()) for name, own in times.items()}


def overlapped(stage: Stage, buffers: list[Gst.Buffer]) -> float:
    """Milliseconds per batch with some on their way, on one thread."""
    waiting: deque[tuple[Gst.Buffer, ObjectWork, Pending]] = deque()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for buffer in buffers:
        waiting.append(stage.submit(buffer))
        if len(waiting) == ON_THE_WAY:
            stage.finish(*waiting.popleft())
    while waiting:
        stage.finish(*waiting.popleft())
    return 1000 * (time.perf_counter() - started) / len(buffers)


def replays(call: Callable[[], object], rounds: int) -> float:
    """Milliseconds per call that follow each other on the GPU."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(rounds):
        call()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started) / rounds


class BareCall:
    """The network alone, recorded for a batch of ``objects``. It holds what the recording reads: weights and input."""

    def __init__(self, objects: int) -> None:
        self._network = MobileNet().half().cuda().eval().to(memory_format=torch.channels_last)
        self._batch = torch.rand(objects, 3, SIDE, SIDE, device="cuda").half().to(memory_format=torch.channels_last)
        self._graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            for _ in range(3):
                self._network(self._batch)
            torch.cuda.synchronize()
            with torch.cuda.graph(self._graph):
                self._logits = self._network(self._batch)

    def __call__(self) -> None:
        """Queue it on the GPU."""
        self._graph.replay()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    stage, bare = Stage(options.objects), BareCall(options.objects)
    crops = stage.submit(stage.batch())
    stage.finish(*crops)
    pictures = crops[1].pictures
    buffers = iter([stage.batch() for _ in range(options.rounds + 10)])
    calls: dict[str, Callable[[], object]] = {
        "bare": bare,
        "model": lambda: stage.session.collect_groups(stage.session.submit(pictures)),
        "stage": lambda: stage.finish(*stage.submit(next(buffers))),
    }
    found = in_turn(calls, options.rounds)
    overlapped(stage, [stage.batch() for _ in range(10)])
    per_batch = overlapped(stage, [stage.batch() for _ in range(options.rounds)])
    per_replay = replays(bare, options.rounds)
    stage.session.close()
    figures = {
        "bare_ms": found["bare"][0], "model_ms": found["model"][0], "stage_ms": found["stage"][0],
        "ratio": found["stage"][0] / found["bare"][0],
        "host_us_per_object": 1000 * found["stage"][1] / options.objects,
        "bare_overlapped_ms": per_replay, "stage_overlapped_ms": per_batch, "overlapped_ratio": per_batch / per_replay,
    }  # fmt: skip
    print(json.dumps({"objects": options.objects, **{name: round(value, 3) for name, value in figures.items()}}))


if __name__ == "__main__":
    main()

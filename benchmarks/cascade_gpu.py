"""What a classifier on the objects of a frame in GPU memory costs, against one batched call of the bare network.

    python -m benchmarks.cascade_gpu [--objects 40] [--rounds 100]

The network is a MobileNet with random weights in fp16. The bare call is a captured CUDA graph whose input is ready; the
other cuts the objects out of a 1080p frame, scales and normalises them, runs the network, and brings the classes to the
host. Prints one JSON object, milliseconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from elements.inference.config import ModelConfig
from elements.inference.crops import CropFrame
from elements.inference.model import DetectionModel
from tests.torch_models import TensorFrame

SIDE = 224
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


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    """Median of ``rounds`` calls, each waited for, after some to warm up."""
    times = []
    for _ in range(rounds + 10):
        torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return round(1000 * float(np.median(times[10:])), 3)


def bare_call(objects: int) -> Callable[[], object]:
    """The network alone, recorded for a batch of ``objects``."""
    network = MobileNet().half().cuda().eval().to(memory_format=torch.channels_last)
    batch = torch.rand(objects, 3, SIDE, SIDE, device="cuda").half().to(memory_format=torch.channels_last)
    with torch.inference_mode():
        for _ in range(3):
            network(batch)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            network(batch)
    replay: Callable[[], object] = graph.replay
    return replay


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    frame = TensorFrame(rng.integers(0, 256, (1080, 1920, 3), np.uint8), "cuda")
    corners, sizes = rng.integers(0, (1600, 760), (options.objects, 2)), rng.integers(40, 320, (options.objects, 2))
    crops = [
        CropFrame(frame, (int(x), int(y), int(x + w), int(y + h)))
        for (x, y), (w, h) in zip(corners, sizes, strict=True)
    ]
    config = ModelConfig(
        "benchmarks.cascade_gpu:MobileNet", task="classify", labels=[f"class {n}" for n in range(CLASSES)],
        input_size=(SIDE, SIDE), device="cuda", confidence=0.0,
    )  # fmt: skip
    model = DetectionModel(config)
    model.load()
    stage = milliseconds(lambda: model.infer(crops), options.rounds)
    bare = milliseconds(bare_call(options.objects), options.rounds)
    model.close()
    print(json.dumps({"objects": options.objects, "bare_ms": bare, "stage_ms": stage, "ratio": round(stage / bare, 2)}))


if __name__ == "__main__":
    main()

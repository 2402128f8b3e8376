"""Trains the demo detector on generated scenes and exports it to ONNX.

    python -m tools.train_demo_detector OUT_DIR --minutes 8 --workers 14 --device cuda
    python -m tools.train_demo_detector OUT_DIR --start configs/models/street.onnx --rate 5e-4   # goes on from there

The time limit covers rendering and training; the evaluation comes after. OUT_DIR gets `street.onnx` and `street.pt`
(renewed every two minutes) and `report.json`.
"""

import argparse
import copy
import json
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tools.detector.augment import augment
from tools.detector.evaluate import evaluate, render_tests
from tools.detector.export import export
from tools.detector.loss import detection_loss
from tools.detector.network import Detector, Exported, cells
from tools.detector.pictures import LONG, MAX_OBJECTS, SHORT, PictureFactory
from tools.detector.resume import freeze_norms, load_exported
from tools.scenes import CLASSES

CHUNKS_PER_STEP = 4
"""Most chunks of new pictures taken in before a step, so that fast renderers don't hold up training."""

SHAPES = ((SHORT, LONG), (LONG, SHORT))


@dataclass
class Pool:
    """The newest pictures of one shape, on the training device; old ones are replaced."""

    shape: tuple[int, int]
    capacity: int
    device: torch.device
    size: int = 0
    written: int = 0
    pictures: Tensor = field(init=False)
    rows: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.pictures = torch.zeros(self.capacity, *self.shape, 3, dtype=torch.uint8, device=self.device)
        self.rows = torch.zeros(self.capacity, MAX_OBJECTS, 6, device=self.device)

    def add(self, pictures: np.ndarray, rows: np.ndarray) -> None:
        """Stores a chunk of pictures (N, H, W, 3) and rows (N, MAX_OBJECTS, 6)."""
        places = torch.arange(self.written, self.written + len(pictures), device=self.device) % self.capacity
        self.pictures[places] = torch.from_numpy(pictures).to(self.device)
        self.rows[places] = torch.from_numpy(rows).to(self.device)
        self.written += len(pictures)
        self.size = min(self.written, self.capacity)

    def sample(self, count: int) -> tuple[Tensor, Tensor]:
        """Random pictures (count, 3, H, W) in 0..1 and their rows."""
        picked = torch.randint(self.size, (count,), device=self.device)
        return self.pictures[picked].permute(0, 3, 1, 2).float() / 255, self.rows[picked]


class Average:
    """Exponential moving average of a network, which generalises better than the last step."""

    def __init__(self, model: Detector) -> None:
        self.model = copy.deepcopy(model).eval()
        self._steps = 0

    def update(self, model: Detector) -> None:
        """Moves the average towards `model`."""
        self._steps += 1
        decay = 0.9995 * (1 - math.exp(-self._steps / 1000))
        with torch.no_grad():
            for mine, theirs in zip(self.model.state_dict().values(), model.state_dict().values(), strict=True):
                if mine.dtype.is_floating_point:
                    mine.lerp_(theirs, 1 - decay)


def learning_rate(progress: float) -> float:
    """Factor for training progress 0..1: short warm-up, then half a cosine."""
    return min(progress / 0.02, 1.0) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))


class Trainer:
    """Network, its average, optimiser and picture pools.

    Args:
        device: where to train.
        batch: pictures per step.
        capacity: pictures kept per shape.
        rate: learning rate after the warm-up.
        start: exported detector to go on from; default: random weights.
    """

    def __init__(self, device: torch.device, batch: int, capacity: int, rate: float, start: Path | None = None) -> None:
        self._device, self._batch, self._enough = device, batch, min(batch * 4, capacity)
        self._model = Detector(len(CLASSES))
        if start is not None:
            load_exported(self._model, start)
            freeze_norms(self._model)
        self._model.to(device, memory_format=torch.channels_last)
        self._rate = rate
        self.average = Average(self._model)
        groups: list[dict[str, object]] = [
            {"params": [p for p in self._model.parameters() if p.ndim > 1], "weight_decay": 0.02},
            {"params": [p for p in self._model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self._optimiser = torch.optim.AdamW(groups, lr=rate)
        self._pools = {shape: Pool(shape, capacity, device) for shape in SHAPES}
        self._grids = {shape: cells(*shape, device) for shape in SHAPES}
        self.steps = 0

    @property
    def rendered(self) -> int:
        """Pictures taken in so far."""
        return sum(pool.written for pool in self._pools.values())

    def take_in(self, factory: PictureFactory) -> bool:
        """Takes new pictures into the pools; returns whether there are enough for a step."""
        waiting = min(pool.size for pool in self._pools.values()) < self._enough
        for _ in range(CHUNKS_PER_STEP):
            chunk = factory.take(timeout=1.0 if waiting else 0.0005)
            if chunk is None:
                break
            pictures, rows = chunk
            self._pools[pictures.shape[1:3]].add(pictures, rows)
        return not waiting

    def step(self, progress: float) -> dict[str, Tensor]:
        """One step at training progress 0..1; returns the parts of the loss."""
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * learning_rate(progress)
        shape = SHAPES[self.steps % len(SHAPES)]
        pictures, rows = augment(*self._pools[shape].sample(self._batch))
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
            raw = self._model(pictures.contiguous(memory_format=torch.channels_last))
        loss, parts = detection_loss(raw, *self._grids[shape], rows[..., :4], rows[..., 4].long(), rows[..., 5] > 0)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 10.0)
        self._optimiser.step()
        self.average.update(self._model)
        self.steps += 1
        return parts

    def save(self, out: Path) -> None:
        """Writes the averaged network as checkpoint and as ONNX."""
        torch.save(self.average.model.state_dict(), out / "street.pt")
        export(self.average.model, out / "street.onnx")


def train(trainer: Trainer, out: Path, seconds: float, workers: int, seed: int) -> None:
    """Renders and trains for `seconds`, saving to `out` every two minutes and at the end."""
    started = noted = saved = time.monotonic()
    begun = None
    with PictureFactory(workers, seed) as factory:
        while (now := time.monotonic()) < started + seconds:
            if not trainer.take_in(factory):
                continue
            begun = begun or now
            parts = trainer.step((now - begun) / (started + seconds - begun))
            if now - noted > 10:
                noted = now
                losses = "  ".join(f"{name} {value:.3f}" for name, value in parts.items())
                print(
                    f"{now - started:6.0f} s  step {trainer.steps}  {losses}  rendered {trainer.rendered}", flush=True
                )
            if now - saved > 120:
                saved = now
                trainer.save(out)
    trainer.save(out)


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; returns the exit code."""
    parser = argparse.ArgumentParser(description="Train the demo detector on generated scenes.")
    parser.add_argument("out", type=Path, help="folder for street.onnx and report.json")
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="time for rendering and training; evaluation comes after"
    )
    parser.add_argument("--workers", type=int, default=14, help="rendering processes")
    parser.add_argument("--device", default="cuda", help="torch device")
    parser.add_argument("--batch", type=int, default=64, help="pictures per step")
    parser.add_argument(
        "--capacity", type=int, default=18_000, help="pictures of each shape kept on the device (1.66 MB each)"
    )
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate after the warm-up")
    parser.add_argument("--start", type=Path, help="exported detector to go on from")
    parser.add_argument("--seed", type=int, default=1, help="other seeds give other pictures")
    parser.add_argument("--test-scenes", type=int, default=30, help="unseen scenes per orientation in the evaluation")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    device = torch.device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    trainer = Trainer(device, options.batch, options.capacity, options.rate, options.start)
    train(trainer, options.out, options.minutes * 60, options.workers, options.seed)
    exported = Exported(trainer.average.model).eval()

    def infer(images: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            output: np.ndarray = exported(torch.from_numpy(images).to(device)).cpu().numpy()
            return output

    tests = render_tests(options.test_scenes, options.workers)
    precision = {name: evaluate(infer, pictures) for name, pictures in tests.items()}
    report = {
        "steps": trainer.steps,
        "rendered": trainer.rendered,
        "test_scenes": options.test_scenes,
        "map50": precision,
    }
    (options.out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

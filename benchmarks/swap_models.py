"""The models that `benchmarks.swap` exchanges: two good ones of unlike size and labels, and bad ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elements.inference.swap.status import SwapState
from tests.onnx_models import finder, save

LABELS = {"small": ["red", "green", "blue"], "large": ["rot", "grün", "blau"], "nan": ["r", "g", "b"]}
RAISES = "tests.swap_models:RaisesOnThird"


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, its options as keys of an infer stage, and what becomes of it."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    end: SwapState = SwapState.ACTIVE

    def properties(self) -> dict[str, Any]:
        """The options as pyinfer's properties; ``None`` for those that only another model has."""
        labels, size = self.options.get("labels"), self.options.get("input_size")
        return {
            "weights": self.options.get("weights"),
            "labels": labels and ",".join(labels),
            "input-size": size and str(size),
            "device": self.options.get("device"),  # a class that does not ask for it may not be given one
        }


def make_models(folder: Path, device: str) -> tuple[list[Choice], list[Choice]]:
    """Good ones and bad ones: ONNX files of two layouts, or on a GPU networks with weights of their own.

    The one that gives NaN does so at once on the CPU, which its first run shows, and on a GPU after some batches.
    """
    on_gpu = device.startswith("cuda")
    make = partial(_network, device) if on_gpu else _onnx
    garbage = folder / ("garbage.torchscript" if on_gpu else "garbage.onnx")
    garbage.write_bytes(b"no model")
    nan = make(folder, "nan", 320, SwapState.ROLLED_BACK if on_gpu else SwapState.REJECTED)
    bad = [Choice(str(garbage), end=SwapState.REJECTED), nan, Choice(RAISES, end=SwapState.ROLLED_BACK)]
    return [make(folder, "small", 320), make(folder, "large", 640 if on_gpu else 416)], bad


def _onnx(folder: Path, name: str, size: int, end: SwapState = SwapState.ACTIVE) -> Choice:
    layout = "yolox" if name == "large" else "yolov8"
    made = finder(layout, (size, size), not_numbers=name == "nan", metadata={"names": str(LABELS[name])})
    return Choice(save(made, folder / f"{name}.onnx"), end=end)


def _network(device: str, folder: Path, name: str, size: int, end: SwapState = SwapState.ACTIVE) -> Choice:
    import torch

    from tests.torch_models import Finder, NanLater

    network = NanLater() if name == "nan" else Finder()
    torch.nn.init.constant_(network.score, 0.8 if name == "large" else 0.9)  # other weights, another version
    torch.save(network.state_dict(), folder / f"{name}.pt")
    options = {"weights": str(folder / f"{name}.pt"), "labels": LABELS[name], "input_size": size, "device": device}
    return Choice(f"tests.torch_models:{type(network).__name__}", options, end)

"""The models that `benchmarks.swap` exchanges: two good ones of unlike size and labels, and bad ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from elements.inference.swap.status import SwapState
from tests.onnx_models import finder, save

LABELS = {"small": ["red", "green", "blue"], "large": ["rot", "grün", "blau"], "nan": ["r", "g", "b"]}
RAISES = "tests.swap_models:RaisesOnThird"


@dataclass(frozen=True, slots=True)
class Bad:
    """A model that must not stay, and what becomes of it."""

    model: str
    end: SwapState


def make_models(folder: Path, on_gpu: bool) -> tuple[list[str], list[Bad]]:
    """Write them to ``folder``: ONNX files of two layouts, or on a GPU TorchScript files.

    The one that gives NaN does so at once on the CPU, which its first run shows, and on a GPU after some batches.
    """
    garbage = folder / ("garbage.torchscript" if on_gpu else "garbage.onnx")
    garbage.write_bytes(b"no model")
    if on_gpu:
        good = [_script(folder, "small", 320), _script(folder, "large", 640)]
        nan = Bad(_script(folder, "nan", 320), SwapState.ROLLED_BACK)
    else:
        good = [_onnx(folder, "small", "yolov8", 320), _onnx(folder, "large", "yolox", 416)]
        nan = Bad(_onnx(folder, "nan", "yolov8", 320), SwapState.REJECTED)
    return good, [Bad(str(garbage), SwapState.REJECTED), nan, Bad(RAISES, SwapState.ROLLED_BACK)]


def _onnx(folder: Path, name: str, layout: str, size: int) -> str:
    made = finder(layout, (size, size), not_numbers=name == "nan", metadata={"names": str(LABELS[name])})
    return save(made, folder / f"{name}.onnx")


def _script(folder: Path, name: str, size: int) -> str:
    import torch

    from tests.torch_models import FixedFinder, NanLater

    network = (NanLater if name == "nan" else FixedFinder)().eval().cuda()  # a trace holds the device it was made on
    traced = torch.jit.trace(network, torch.rand(4, 3, size, size, device="cuda"), check_trace=False)
    path, metadata = folder / f"{name}.torchscript", {"names": LABELS[name], "imgsz": [size, size]}
    torch.jit.save(traced, str(path), _extra_files={"config.txt": json.dumps(metadata)})
    return str(path)

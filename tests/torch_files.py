"""Files of torch that hold finders, and how to open them."""

import json
from pathlib import Path
from typing import Any

import torch

from elements.inference.config import ModelConfig
from elements.inference.model import DetectionModel, open_model
from tests.pictures import NAMES
from tests.torch_models import FixedFinder

CLASS = "tests.torch_models:Finder"


def loaded(path: Path | str, **options: Any) -> DetectionModel:
    """An opened and loaded model, on the CPU unless told otherwise."""
    options = {"labels": NAMES, "device": "cpu", "input_size": (640, 640), **options}
    model = open_model(ModelConfig(str(path), **options))
    assert isinstance(model, DetectionModel)
    model.load()
    return model


def scripted(
    folder: Path, layout: str = "yolov8", batch: int = 2, size: tuple[int, int] = (640, 640), **extra: Any
) -> Path:
    """A TorchScript file; ``extra``: its extra files, as JSON."""
    path = folder / "finder.torchscript"
    traced = torch.jit.trace(FixedFinder(layout).eval(), torch.rand(batch, 3, size[1], size[0]))
    torch.jit.save(traced, str(path), _extra_files={name: json.dumps(value) for name, value in extra.items()})
    return path


def exported(folder: Path, layout: str = "yolov8", batch: int = 4, most: int | None = None) -> Path:
    """An exported program of 320x320; ``most``: of a free batch size, up to that."""
    path = folder / "finder.pt2"
    free = {0: torch.export.Dim("batch", min=1, max=most)} if most else None
    program = torch.export.export(
        FixedFinder(layout).eval(), (torch.rand(batch, 3, 320, 320),), dynamic_shapes=(free,) if free else None
    )
    torch.export.save(program, path)
    return path

"""What every engine offers, and the choice among them.

| engine | files | runs on |
|---|---|---|
| ``onnx`` | ``.onnx`` | ONNX Runtime, NumPy arrays |
| ``openvino`` | ``.xml``, ``.onnx`` (if asked for by name) | OpenVINO on the CPU, NumPy arrays |
| ``torch`` | ``.pt``, ``.pth``, ``.torchscript``, ``.pt2``, or a class of your own | PyTorch, CPU or CUDA |
| ``tensorrt`` | ``.engine``, ``.plan`` | TensorRT, CUDA |
| ``ultralytics`` | ``.pt``, ``.engine`` (only if asked for by name: AGPL) | ultralytics' AutoBackend |
"""

from __future__ import annotations

import importlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.preprocess import InputSpec, Tensor

TorchTensor = Any  # torch.Tensor; torch is imported only where it is used
Forward = Callable[[TorchTensor], list[TorchTensor]]

_OWN_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_CLASSES = {
    "onnx": "elements.inference.engines.onnx:OnnxEngine",
    "openvino": "elements.inference.engines.openvino:OpenVinoEngine",
    "torch": "elements.inference.engines.torch:TorchEngine",
    "tensorrt": "elements.inference.engines.tensorrt:TensorRTEngine",
    "ultralytics": "elements.inference.engines.ultralytics:UltralyticsEngine",
}
_BY_SUFFIX = {
    ".onnx": "onnx",
    ".xml": "openvino",
    ".pt": "torch",
    ".pth": "torch",
    ".torchscript": "torch",
    ".pt2": "torch",
    ".engine": "tensorrt",
    ".plan": "tensorrt",
}


class Engine(ABC):
    """A loaded network: NumPy arrays in, NumPy arrays out. Made with a `ModelConfig`, ready when made.

    Attributes:
        spec: its image input.
        output_names: names of its outputs, in order.
        metadata: what the file says of itself (``names``, ``imgsz``, ``task`` … as ultralytics writes them).
        on_gpu: whether it runs on a CUDA device.
        advice: what to try when it fails on its first input.
    """

    spec: InputSpec
    output_names: list[str]
    metadata: Mapping[str, str]
    on_gpu: bool
    advice: str = "If it needs another size, set 'input_size'"

    @abstractmethod
    def run(self, batch: Tensor) -> list[Tensor]:
        """All outputs for one batch of the shape and type that ``spec`` tells."""

    def with_free_size(self) -> Engine | None:
        """A twin whose input height and width are free, ``None`` if there is none."""
        return None

    def close(self) -> None:  # noqa: B027 (most engines hold nothing that must be freed early)
        """Free what the engine holds. It cannot run afterwards."""


class DeviceEngine(Engine):
    """An engine that works on torch tensors where they lie, on the current CUDA stream.

    Attributes:
        device: the torch device of its tensors.
        channels_last: whether batches are best laid out channels-last in memory; their shape stays (B, 3, H, W).
        can_capture: whether `forward` may be recorded in a CUDA graph.
    """

    device: Any
    channels_last = False
    can_capture = False

    @abstractmethod
    def forward(self, batch: TorchTensor) -> list[TorchTensor]:
        """Outputs on the device for a batch on the device; queued on the current stream, not waited for."""

    def twin(self) -> Forward:
        """`forward` with inner state of its own, for one captured graph.

        A network may keep what it worked out for a shape (anchors, say) and free it when another shape comes. A graph
        that was captured over it would then read freed memory, so each graph has its own.
        """
        return self.forward

    def compiled(self) -> Forward:
        """As `twin`, as code made by a compiler for the shape of its first batch, which may take a minute."""
        raise NotImplementedError

    def run(self, batch: Tensor) -> list[Tensor]:
        """See `Engine.run`: with a copy to the device and back, so for trial runs only."""
        import torch

        with torch.inference_mode():
            outputs = self.forward(torch.from_numpy(np.ascontiguousarray(batch)).to(self.device))
            return [output.cpu().numpy() for output in outputs]


def is_class_path(path: str) -> bool:
    """Whether ``path`` is of the form ``package.module:Class`` and not the name of a file that is there."""
    return bool(_OWN_CLASS.fullmatch(path)) and not Path(path).exists()


def engine_name(config: ModelConfig) -> str:
    """The engine that runs ``config.path``: as configured, else by the file's extension.

    Raises:
        ModelError: if nothing here runs such a file.
    """
    if config.engine != "auto":
        return config.engine
    if is_class_path(config.path):
        return "torch"
    suffix = Path(config.path).suffix.lower()
    if suffix not in _BY_SUFFIX:
        raise ModelError(
            f"no engine runs '{suffix or 'a file without extension'}': use one of {', '.join(_BY_SUFFIX)}, "
            "or a class of your own (package.module:Class)"
        )
    return _BY_SUFFIX[suffix]


def open_engine(config: ModelConfig) -> Engine:
    """Load the network of ``config``.

    Raises:
        ModelError: if it cannot be used.
    """
    if not is_class_path(config.path):
        check_file(config.path)
    chosen = engine_name(config)
    if config.compile and chosen != "torch":
        raise ModelError(f"compile: true is for engine torch, and engine {chosen} runs it: leave compile out")
    if config.weights and chosen != "torch":  # which looks further
        raise ModelError(f"weights are for a class of your own, and engine {chosen} runs a file: leave them out")
    module, _, name = _CLASSES[chosen].partition(":")
    engine: Engine = getattr(importlib.import_module(module), name)(config)
    return engine


def check_file(path: str, key: str = "model-path") -> None:
    """Raise `ModelError` unless ``path`` is a file."""
    if not path:
        raise ModelError(f"no file is given: check {key}")
    if not os.path.isfile(path):  # noqa: PTH113, Path raises where a name is too long
        if Path(path).suffix == ".engine" and (onnx := Path(path).with_suffix(".onnx")).is_file():
            raise ModelError(f"there is no such file yet: make it for this machine with gstorch models build '{onnx}'")
        what = "is a folder, not a model file" if os.path.isdir(path) else "there is no such file"  # noqa: PTH112
        raise ModelError(f"{what}: check {key}" if key == "model-path" else f"{key} '{path}': {what}")


def cuda_index(device: str) -> int | None:
    """Which CUDA device ``device`` asks for: a number, or ``None`` for ``auto`` and ``cpu``.

    Raises:
        ModelError: if it is not auto, cpu, cuda or cuda:N.
    """
    match = re.fullmatch(r"auto|cpu|cuda(?::(\d+))?", device)
    if not match:
        raise ModelError(f"device: '{device}' is not auto, cpu, cuda or cuda:N")
    return int(match.group(1) or 0) if device.startswith("cuda") else None


def torch_device(config: ModelConfig) -> Any:
    """The torch device for ``config.device``; ``auto`` is CUDA where there is one.

    Raises:
        ModelError: if torch is missing, or CUDA was asked for and is not there.
    """
    torch = import_torch()
    index = cuda_index(config.device)
    if index is None:
        use_cuda = config.device == "auto" and torch.cuda.is_available()
        return torch.device("cuda", 0) if use_cuda else torch.device("cpu")
    if not torch.cuda.is_available():
        without = torch.version.cuda is None
        why = "is built without CUDA: install a build with it" if without else "finds no GPU: run nvidia-smi to see why"
        raise ModelError(
            f"device: {config.device} was asked for, but torch {torch.__version__} {why}, or set device to cpu or auto"
        )
    if index >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        there = f"there are cuda:0 to cuda:{last}" if last else "the only GPU is cuda:0"
        raise ModelError(f"device: cuda:{index} was asked for, but {there}: set device to one that is there, or auto")
    return torch.device("cuda", index)


def import_torch() -> Any:
    """The torch module.

    Raises:
        ModelError: if it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ModelError("PyTorch is not installed: pip install torch, or use an ONNX export of the model") from error
    return torch

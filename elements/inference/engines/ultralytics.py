"""ultralytics' AutoBackend as an engine. The package is AGPL-licensed, optional, and imported only here."""

from __future__ import annotations

import builtins
import importlib
import logging
import os
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import TorchTensor, torch_device
from elements.inference.engines.dims import dims_of
from elements.inference.engines.tensorrt_api import check_on_gpu, import_tensorrt
from elements.inference.engines.torch import ModuleEngine
from elements.inference.engines.torch_files import LoadedModule
from elements.inference.errors import ModelError, brief

_SUFFIXES = (".pt", ".engine")
_TENSORRT_MODULES = ("ultralytics.nn.backends.tensorrt", "ultralytics.nn.autobackend")  # since 8.4, before


class UltralyticsEngine(ModuleEngine):
    """A checkpoint (``.pt``) or a TensorRT engine (``.engine``) made by ultralytics."""

    def __init__(self, config: ModelConfig) -> None:
        """Load the file of ``config``.

        Raises:
            ModelError: if ultralytics is missing, or the file or the device cannot be used.
        """
        suffix = Path(config.path).suffix.lower()
        if suffix not in _SUFFIXES:
            raise ModelError(f"engine: ultralytics is for {' and '.join(_SUFFIXES)} files: set engine to auto")
        if suffix == ".pt" and not config.trust:
            raise ModelError(
                "a checkpoint of ultralytics is a pickle, which can run any code when it is loaded: "
                "if you know where it comes from, set trust: true; or export it to ONNX or TorchScript"
            )
        device = torch_device(config)
        if suffix == ".engine":  # on which ultralytics would fail without a good word
            import_tensorrt()
            check_on_gpu(device, config.device, "the checkpoint it was made from")
        half = config.precision == "fp16" or (config.precision == "auto" and device.type == "cuda")
        backend = _backend(config.path, device, half)
        self._waits = suffix == ".engine"
        metadata = {
            "author": "ultralytics",
            "task": str(backend.task or _task_of(backend.model)),
            "names": str(dict(backend.names)),
            "stride": str(int(backend.stride)),
        }
        if points := getattr(backend, "kpt_shape", None):
            metadata["kpt_shape"] = str(list(points))
        if suffix == ".pt":
            _answer_as_exported(backend.model)
            super().__init__(LoadedModule(backend.model, metadata=metadata), device, config.precision)
            return
        super().__init__(_bound(backend, metadata), device, config.precision)
        self.can_capture = self.channels_last = False

    def forward(self, batch: TorchTensor) -> list[TorchTensor]:
        """See `DeviceEngine.forward`."""
        if self._waits:  # AutoBackend may run TensorRT on the default stream, which does not wait for ours
            import torch

            torch.cuda.current_stream(self.device).synchronize()
        return super().forward(batch)


def guard_dims() -> None:
    """Make ultralytics' TensorRT code read shapes by index.

    ``tuple(dims)`` of a TensorRT ``Dims`` crashes the process where PyGObject is loaded. The name ``tuple`` is replaced
    inside the modules that do this; ``isinstance(x, tuple)`` there stays as it was.
    """
    for name in _TENSORRT_MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # of the other age of ultralytics
            continue
        module.tuple = _Tuple  # type: ignore[attr-defined]


class _TupleType(type):
    """Looks like the built-in `tuple` to those who call it and to ``isinstance``."""

    def __call__(cls, values: Any = ()) -> tuple[Any, ...]:
        return dims_of(values) if type(values).__name__ == "Dims" else builtins.tuple(values)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.tuple)


class _Tuple(metaclass=_TupleType):
    """Stands for `tuple` in ultralytics' TensorRT modules."""


def keep_offline() -> None:
    """Keep ultralytics from installing packages that a file asks for, and from asking the network."""
    os.environ.update(YOLO_AUTOINSTALL="False", YOLO_OFFLINE="True")
    checks = importlib.import_module("ultralytics.utils.checks")
    checks.AUTOINSTALL = checks.ONLINE = False  # type: ignore[attr-defined]  # if it was imported before


def _backend(path: str, device: Any, half: bool) -> Any:
    try:
        keep_offline()
        from ultralytics.nn.autobackend import AutoBackend
    except ImportError as error:
        raise ModelError(f"ultralytics cannot be imported ({error}): pip install ultralytics (AGPL)") from error
    guard_dims()
    logging.getLogger("ultralytics").setLevel(logging.WARNING)
    try:
        return AutoBackend(path, device=device, fp16=half, fuse=True).eval()
    except Exception as error:  # its errors share no base class but this
        raise ModelError(f"ultralytics cannot load it: {brief(error)}") from error


def _task_of(module: Any) -> str:
    """What a checkpoint's network does; backends that hold one do not say."""
    from ultralytics.nn.tasks import guess_model_task

    return str(getattr(module, "task", None) or guess_model_task(module))


def _answer_as_exported(module: Any) -> None:
    """Make a checkpoint's head answer as its exports do: finished outputs side by side, nothing for training."""
    head = module.model[-1]
    if hasattr(head, "export"):
        head.export = True


def _bound(backend: Any, metadata: dict[str, str]) -> LoadedModule:
    """A TensorRT engine with the input it is bound to: a dynamic one is bound to the largest of its profile."""
    binding = backend.bindings["images"]
    batch, channels, height, width = (int(size) for size in binding.shape)
    free = bool(backend.dynamic)
    shape = (None if free else batch, channels, height, width)
    return LoadedModule(backend, shape, batch if free else None, binding.data.dtype, metadata)

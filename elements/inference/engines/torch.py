"""PyTorch as an engine: TorchScript, exported programs, modules of your own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.engines.base import DeviceEngine, Forward, TorchTensor, import_torch, torch_device
from elements.inference.engines.torch_files import LoadedModule, load_module
from elements.inference.errors import ModelError
from elements.inference.preprocess import InputSpec

COMPILER = "inductor"  # torch.compile's backend


class ModuleEngine(DeviceEngine):
    """A network that is a `torch.nn.Module`.

    On a GPU it runs channels-last, in half precision unless told otherwise, and from CUDA graphs.
    """

    advice = "If it needs another size, set 'input_size'; if it cannot run in half precision, set precision: fp32"

    def __init__(self, loaded: LoadedModule, device: Any, precision: str) -> None:
        """Set up ``loaded`` on ``device`` with ``precision`` (``auto``, ``fp32``, ``fp16``)."""
        torch = import_torch()
        self.device = device
        self.on_gpu = device.type == "cuda"
        self.module = loaded.module
        self.metadata: Mapping[str, str] = loaded.metadata
        self.channels_last = self.can_capture = self.on_gpu
        dtype = _dtype(precision, loaded.dtype, self.on_gpu)
        if self.on_gpu and dtype is torch.float32:  # for the whole process: there is one switch for all its threads
            torch.backends.cudnn.allow_tf32 = False
        if loaded.dtype is None:  # an exported program stays as it is
            self.module.to(dtype=dtype)
            if self.channels_last:
                self.module.to(memory_format=torch.channels_last)
        batch, _, height, width = loaded.shape or (None, 3, None, None)
        number = np.dtype(str(dtype).removeprefix("torch."))
        self.spec = InputSpec("image", number, False, batch, (width, height), max_batch=loaded.max_batch)

    @property
    def output_names(self) -> list[str]:  # type: ignore[override]
        """``output 0`` … as many as the last run had: a module does not name them."""
        return [f"output {index}" for index in range(self._outputs)]

    _outputs = 1

    def forward(self, batch: TorchTensor) -> list[TorchTensor]:
        """See `DeviceEngine.forward`."""
        outputs = tensors_of(self.module(batch))
        self._outputs = len(outputs)
        return outputs

    def twin(self) -> Forward:
        """See `DeviceEngine.twin`: a copy of the module that shares the weights."""
        module = self._copy()
        return lambda batch: tensors_of(module(batch))

    def compiled(self) -> Forward:
        """See `DeviceEngine.compiled`. A network that cannot be compiled as one whole fails in its first run."""
        module = self._copy()

        def run(batch: TorchTensor) -> Any:
            return module(batch)

        # Torch keeps what it has compiled with the code object, at most 8 versions, also those of networks that are
        # gone. So each network has a code object of its own.
        own = FunctionType(run.__code__.replace(), run.__globals__, closure=run.__closure__)
        network = import_torch().compile(own, fullgraph=True, dynamic=False, backend=COMPILER)
        return lambda batch: tensors_of(network(batch))

    def _copy(self) -> Any:
        return copy.deepcopy(self.module, {id(weight): weight for weight in self.module.parameters()})

    def close(self) -> None:
        """See `Engine.close`."""
        del self.module


class TorchEngine(ModuleEngine):
    """A TorchScript file, an exported program, or a module class of your own."""

    def __init__(self, config: ModelConfig) -> None:
        """Load what ``config`` names.

        Raises:
            ModelError: if the file, its input or the device cannot be used.
        """
        device = torch_device(config)
        loaded = load_module(config, device)
        if config.compile:
            _check_compile(config, loaded.module, device)
        super().__init__(loaded, device, config.precision)


def tensors_of(result: Any) -> list[TorchTensor]:
    """The tensors among a module's results, in order. Nested lists are by-products of training and left out.

    Raises:
        TypeError: if there are none.
    """
    torch = import_torch()
    if isinstance(result, torch.Tensor):
        return [result]
    values = list(result.values()) if isinstance(result, dict) else list(result)
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if not tensors:
        raise TypeError(f"it returns {type(result).__name__} without a tensor in it")
    return tensors


def _check_compile(config: ModelConfig, module: Any, device: Any) -> None:
    """Refuse to compile where it cannot be done, or what is compiled would never run."""
    from elements.inference.gpu.letterbox import has_triton

    if device.type != "cuda" or not has_triton():
        lacks = "Triton: pip install triton" if device.type == "cuda" else "a GPU, and it would run on the CPU"
        raise ModelError(f"compile: true needs {lacks}; or leave compile out")
    if isinstance(module, import_torch().jit.ScriptModule):
        raise ModelError(
            "compile: true was asked for, but torch.compile cannot read TorchScript: "
            "export the model with torch.export (.pt2) or give its class, or leave compile out"
        )
    if not config.batch_size:
        raise ModelError("compile: true makes code for one number of frames: set batch-size to how many run together")


def _dtype(precision: str, fixed: Any, on_gpu: bool) -> Any:
    """The torch type to compute in; ``fixed`` is the one that cannot be changed, if any."""
    torch = import_torch()
    types = {"fp32": torch.float32, "fp16": torch.float16}
    if fixed is not None:
        if fixed not in types.values():
            raise ModelError(f"its input is {fixed}: float32 or float16 is needed")
        if precision != "auto" and types[precision] is not fixed:
            raise ModelError(
                f"precision: {precision} was asked for, but the program was exported in {fixed}: "
                "export it in that precision, or leave precision out"
            )
        return fixed
    if precision == "fp16" and not on_gpu:
        raise ModelError("precision: fp16 needs a GPU: set precision to fp32 or auto, or device to cuda")
    return types["fp16" if precision == "fp16" or (precision == "auto" and on_gpu) else "fp32"]

"""TensorRT engines through the tensorrt package, API 10 and 11: named tensors, our memory, our stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.engines.base import DeviceEngine, TorchTensor, import_torch, torch_device
from elements.inference.engines.dims import dims_of
from elements.inference.engines.fingerprint import SideCar, differences, onnx_hash, read_side_car
from elements.inference.engines.tensorrt_api import check_on_gpu, import_tensorrt, make_logger, this_machine
from elements.inference.errors import ModelError
from elements.inference.letterbox import Size
from elements.inference.preprocess import InputSpec

_REBUILD = "build it again here: gstorch models build"


class TensorRTEngine(DeviceEngine):
    """A serialized engine (``.engine``, ``.plan``), by itself or with the header that ultralytics puts before it.

    A batch that changes runs in profile 0; the engine's side-car, if there is one, must fit this machine.
    """

    _runtime: Any
    _engine: Any
    _context: Any

    advice = f"If it was made for another GPU or TensorRT, {_REBUILD}"

    def __init__(self, config: ModelConfig) -> None:
        """Load the file of ``config``.

        Raises:
            ModelError: if TensorRT, a GPU or the engine cannot be used, or the engine is foreign or stale.
        """
        trt = import_tensorrt()
        self.device = torch_device(config)
        check_on_gpu(self.device, config.device, "the ONNX file it was made from")
        self.on_gpu = True
        self._logger = make_logger(trt)
        side_car = read_side_car(config.path)
        if side_car is not None:
            _check_fits(config, side_car, this_machine(trt, self.device))
        header, plan = split_header(Path(config.path).read_bytes())
        self.metadata: Mapping[str, str] = header or (side_car.metadata if side_car else {})
        self._open(trt, plan)
        self._read_tensors(trt)
        self.spec = self._input_spec(config.input_size)
        self._outputs: dict[tuple[int, ...], list[TorchTensor]] = {}

    def forward(self, batch: TorchTensor) -> list[TorchTensor]:
        """See `DeviceEngine.forward`. The outputs are overwritten by the next run of the same shape.

        Raises:
            RuntimeError: if TensorRT refuses the shape or fails.
        """
        torch = import_torch()
        shape = tuple(batch.shape)
        batch = batch.contiguous()
        self._set_shape(shape)
        if shape not in self._outputs:
            self._outputs[shape] = [
                torch.empty(self._output_shape(name), dtype=dtype, device=self.device)
                for name, dtype in self._output_types.items()
            ]
        outputs = self._outputs[shape]
        self._context.set_tensor_address(self.spec.name, batch.data_ptr())
        for name, output in zip(self.output_names, outputs, strict=True):
            self._context.set_tensor_address(name, output.data_ptr())
        if not self._context.execute_async_v3(torch.cuda.current_stream(self.device).cuda_stream):
            raise RuntimeError(f"TensorRT fails: {self._why()}")
        return outputs

    def close(self) -> None:
        """See `Engine.close`: context, engine and runtime go in this order."""
        self._outputs.clear()
        self._context = self._engine = self._runtime = None

    def _open(self, trt: Any, plan: bytes) -> None:
        torch = import_torch()
        register_plugins = getattr(trt, "init_libnvinfer_plugins", None)
        if register_plugins is not None:
            register_plugins(self._logger, "")
        with torch.cuda.device(self.device):
            self._runtime = trt.Runtime(self._logger)
            self._engine = self._runtime.deserialize_cuda_engine(plan)
            if self._engine is None:
                raise ModelError(
                    f"TensorRT {trt.__version__} cannot load the engine ({self._why()}): it was made by another "
                    f"version, for another GPU, or is cut: {_REBUILD}"
                )
            self._context = self._engine.create_execution_context()
            if self._context is None:
                raise ModelError(f"TensorRT cannot make room for the engine on {self.device}: {self._why()}")

    def _read_tensors(self, trt: Any) -> None:
        """Names and types of input and outputs."""
        torch = import_torch()
        types = {
            trt.DataType.FLOAT: torch.float32,
            trt.DataType.HALF: torch.float16,
            trt.DataType.UINT8: torch.uint8,
            trt.DataType.INT32: torch.int32,
            trt.DataType.INT64: torch.int64,
        }
        names = [self._engine.get_tensor_name(index) for index in range(self._engine.num_io_tensors)]
        inputs = [n for n in names if self._engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        if len(inputs) != 1:
            raise ModelError(f"it has {len(inputs)} inputs ({', '.join(inputs)}): one image input is needed")
        kinds = {name: self._engine.get_tensor_dtype(name) for name in names}
        unknown = [f"{name} {kind}" for name, kind in kinds.items() if kind not in types]
        if unknown:
            raise ModelError(f"types that cannot be handled here: {', '.join(unknown)}: build it with float outputs")
        self._input = inputs[0]
        self._input_type = types[kinds[self._input]]
        self._output_types = {name: types[kinds[name]] for name in names if name != self._input}
        self.output_names = list(self._output_types)

    def _input_spec(self, wanted: Size | None) -> InputSpec:
        shape = dims_of(self._engine.get_tensor_shape(self._input))
        if len(shape) != 4 or shape[1] != 3:
            raise ModelError(f"its input is {list(shape)}: (batch, 3, height, width) is needed")
        fewest = most = dims_of(self._engine.get_tensor_shape(self._input))
        if -1 in shape:
            profile = self._engine.get_tensor_profile_shape(self._input, 0)
            fewest, most = dims_of(profile[0]), dims_of(profile[2])
        width, height = _fixed_size(fewest, most, wanted)
        number = np.dtype(str(self._input_type).removeprefix("torch."))
        batch = shape[0] if shape[0] != -1 else None
        return InputSpec(self._input, number, False, batch, (width, height), fewest[0], most[0])

    def _set_shape(self, shape: tuple[int, ...]) -> None:
        if not self._context.set_input_shape(self._input, shape):
            raise RuntimeError(f"TensorRT refuses the input {list(shape)}: {self._why()}")

    def _output_shape(self, name: str) -> tuple[int, ...]:
        shape = dims_of(self._context.get_tensor_shape(name))
        if -1 in shape:
            raise RuntimeError(
                f"output {name} {list(shape)} has a size that depends on the picture: build the model without NMS in it"
            )
        return shape

    def _why(self) -> str:
        errors, self._logger.errors = self._logger.errors, []
        return errors[-1] if errors else "it does not say why"


def split_header(content: bytes) -> tuple[dict[str, str], bytes]:
    """Metadata and engine. ultralytics writes a 4-byte little-endian length and JSON before the engine; most do not."""
    length = int.from_bytes(content[:4], "little")
    if 2 <= length <= min(len(content) - 4, 1 << 20) and content[4:5] == b"{":
        try:
            values = json.loads(content[4 : 4 + length])
            return {str(key): str(value) for key, value in values.items()}, content[4 + length :]
        except ValueError:
            pass  # an engine that happens to begin like that
    return {}, content


def _check_fits(config: ModelConfig, side_car: SideCar, machine: Mapping[str, Any]) -> None:
    """Refuse an engine that was made for something else, or from an ONNX file that has changed since."""
    here: dict[str, Any] = dict(machine)
    onnx = onnx_hash(Path(config.path).parent / side_car.source) if side_car.source else None
    if onnx is not None:
        here["onnx"] = onnx
    if config.precision != "auto":
        here["precision"] = config.precision
    wrong = differences(side_car.fingerprint, here)
    if wrong:
        source = side_car.source or "FILE.onnx"
        raise ModelError(f"the engine does not fit: {'; '.join(wrong)}; {_REBUILD} {source}")


def _fixed_size(fewest: tuple[int, ...], most: tuple[int, ...], wanted: Size | None) -> Size:
    """(width, height) of the input: the only one, or the one that is asked for and in the profile."""
    low, high = (fewest[3], fewest[2]), (most[3], most[2])
    if low == high:
        if wanted is not None and wanted != low:
            raise ModelError(
                f"input_size {wanted[0]}x{wanted[1]} is set, but its input is fixed to {low[0]}x{low[1]}: leave it "
                "out, or build it in that size"
            )
        return low
    limits = f"{low[0]}x{low[1]} to {high[0]}x{high[1]}"
    if wanted is None:
        raise ModelError(
            f"its input has a dynamic size ({limits}): set 'input_size' to one in it, or build it with a fixed size: "
            "gstorch models build --size 640"
        )
    if not all(a <= b <= c for a, b, c in zip(low, wanted, high, strict=True)):
        raise ModelError(f"input_size {wanted[0]}x{wanted[1]} is outside what it was built for ({limits})")
    return wanted

"""ONNX Runtime as an engine: one session that several threads run at the same time.

On the CPU a session has a single thread of its own and the caller runs frames in parallel: with frames to choose from
this is faster than more threads per frame, and than batches.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.engines.base import Engine, cuda_index
from elements.inference.engines.rectangular import with_free_size
from elements.inference.errors import ModelError
from elements.inference.preprocess import InputSpec, Tensor

SIZE_INPUT = "orig_target_sizes"  # RT-DETR's and D-FINE's exports scale their boxes to it: (batch, 2) width, height
_NUMBERS = re.compile(r"tensor\((float|float16|double|u?int(8|16|32|64)|bool)\)")
_DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


class OnnxEngine(Engine):
    """A loaded ONNX model."""

    def __init__(self, config: ModelConfig) -> None:
        """Load the file of ``config``.

        Raises:
            ModelError: if the file, its input or the device cannot be used.
        """
        path, device = config.path, config.device
        self._path = path
        self._providers = _providers(device, config.precision)
        self._session = _session(path, self._providers)
        self.on_gpu = self._session.get_providers()[0] == "CUDAExecutionProvider"
        if device.startswith("cuda") and not self.on_gpu:
            raise ModelError(f"device: {device} was asked for, but CUDA does not start: run nvidia-smi to see why")
        inputs = self._session.get_inputs()
        self._takes_size = any(i.name == SIZE_INPUT and i.type == "tensor(int64)" for i in inputs)
        self.spec = _input_spec(inputs)
        self.output_names = _output_names(self._session.get_outputs())
        self.metadata = dict(self._session.get_modelmeta().custom_metadata_map)
        _check_precision(config.precision, self.spec.dtype)

    def run(self, batch: Tensor) -> list[Tensor]:
        """See `Engine.run`. Safe to call from several threads; frees the GIL."""
        inputs = {self.spec.name: batch}
        if self._takes_size:
            height, width = batch.shape[1:3] if self.spec.channels_last else batch.shape[2:]
            inputs[SIZE_INPUT] = np.tile(np.array([[width, height]], np.int64), (len(batch), 1))
        outputs: list[Tensor] = self._session.run(None, inputs)
        return outputs

    def with_free_size(self) -> OnnxEngine | None:
        """A twin whose input height and width are free, or ``None``. See `rectangular.with_free_size`."""
        model = with_free_size(self._path, self.spec.channels_last)
        if model is None:
            return None
        twin = object.__new__(OnnxEngine)
        twin.__dict__.update(self.__dict__)
        twin._session = _session(model, self._providers)
        twin.spec = _input_spec(twin._session.get_inputs())
        return twin


def _providers(device: str, precision: str = "auto") -> list[Any]:
    """ONNX Runtime's execution providers for ``device``. With ``fp32`` no product of theirs is rounded to TF32."""
    ort = _onnxruntime()
    index = cuda_index(device)
    cuda = "CUDAExecutionProvider" in ort.get_available_providers()
    if device == "cpu" or (device == "auto" and not cuda):
        return ["CPUExecutionProvider"]
    if not cuda:
        raise ModelError(
            f"device: {device} was asked for, but the installed onnxruntime {ort.__version__} has no CUDA execution "
            "provider: install onnxruntime-gpu in place of onnxruntime, use a torch or TensorRT export of the model, "
            "or set device to cpu or auto"
        )
    options = {"device_id": index or 0, "use_tf32": int(precision != "fp32")}
    return [("CUDAExecutionProvider", options), "CPUExecutionProvider"]


def _check_precision(precision: str, dtype: np.dtype) -> None:
    """ONNX Runtime computes as the file was exported."""
    exported = {"float32": "fp32", "float16": "fp16"}.get(dtype.name)
    if precision != "auto" and exported and precision != exported:
        raise ModelError(
            f"precision: {precision} was asked for, but the file was exported in {exported} and runs so: "
            f"export it in {precision}, or leave precision out"
        )


def _session(model: str | bytes, providers: list[Any]) -> Any:
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions; a trial run that fails must not print
    try:
        return ort.InferenceSession(model, options, providers=providers)
    except Exception as error:  # ONNX Runtime's exceptions share no base class but this
        raise ModelError(_load_failure(str(error))) from error


def _load_failure(text: str) -> str:
    first = text.strip().splitlines()[0]
    if "external" in text.lower():
        return f"its weights lie in a file of their own, which is missing or cut ({first}): copy it beside the model"
    if "protobuf" in text.lower():
        return f"it is not a complete ONNX file ({first}): export or copy it again"
    return f"ONNX Runtime cannot load it ({first}): check it with onnx.checker, or export it with a lower opset"


def _input_spec(inputs: list[Any]) -> InputSpec:
    """The image input, checked."""
    shapes = "; ".join(f"{i.name} {i.type} {i.shape}" for i in inputs)
    inputs = [i for i in inputs if i.name != SIZE_INPUT]
    if len(inputs) != 1:
        raise ModelError(f"it has {len(inputs)} inputs ({shapes}): a detector with one image input is needed")
    (only,) = inputs
    if only.type not in _DTYPES:
        raise ModelError(f"its input is {only.type} ({shapes}): float, float16 or uint8 is needed")
    if len(only.shape) != 4:
        raise ModelError(f"its input has {len(only.shape)} dimensions ({shapes}): (batch, 3, height, width) is needed")
    batch, *rest = (size if isinstance(size, int) and size > 0 else None for size in only.shape)
    if rest[0] == 3:
        channels_last, height, width = False, rest[1], rest[2]
    elif rest[2] == 3:
        channels_last, height, width = True, rest[0], rest[1]
    else:
        raise ModelError(f"its input has no fixed dimension of 3 colours ({shapes}): export it with 3 channels")
    return InputSpec(only.name, np.dtype(_DTYPES[only.type]), channels_last, batch, (width, height))


def _output_names(outputs: list[Any]) -> list[str]:
    """The names of the outputs, which are tensors of numbers."""
    others = [f"{output.name} {output.type}" for output in outputs if not _NUMBERS.fullmatch(output.type)]
    if others:
        raise ModelError(f"its outputs {', '.join(others)} are no tensors of numbers: export it without them")
    return [output.name for output in outputs]


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError("ONNX Runtime is not installed: pip install onnxruntime") from error
    return onnxruntime

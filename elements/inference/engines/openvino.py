"""OpenVINO as an engine, for Intel (and other) CPUs: ``.xml`` files, and ``.onnx`` if asked for by name.

As with ONNX Runtime, frames run in parallel, each on a stream of one thread: with frames to choose from this is faster
than more threads per frame.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from elements.inference.config import ModelConfig
from elements.inference.engines.base import Engine, cuda_index
from elements.inference.errors import ModelError, brief
from elements.inference.preprocess import InputSpec, Tensor

_DTYPES = {"f32": np.float32, "f16": np.float16, "u8": np.uint8}
METADATA_FILE = "metadata.yaml"  # what ultralytics writes beside the .xml


class OpenVinoEngine(Engine):
    """A loaded OpenVINO model."""

    on_gpu = False

    def __init__(self, config: ModelConfig) -> None:
        """Load the file of ``config``.

        Raises:
            ModelError: if OpenVINO is missing, or the file, its input, the device or the precision cannot be used.
        """
        _check_options(config)
        self._model = _read(config.path)
        self._compile()
        self.output_names = [_name(output, i) for i, output in enumerate(self._compiled.outputs)]
        self.metadata = _metadata(config.path)

    def run(self, batch: Tensor) -> list[Tensor]:
        """See `Engine.run`. Safe to call from several threads: each has a request of its own; frees the GIL."""
        request = getattr(self._requests, "one", None)
        if request is None:
            request = self._requests.one = self._compiled.create_infer_request()
        found = request.infer([batch], share_inputs=True)
        return [found[output] for output in self._compiled.outputs]

    def with_free_size(self) -> OpenVinoEngine | None:
        """A twin whose input height and width are free; whether it computes the same the caller must see."""
        model = self._model.clone()
        shape = model.inputs[0].get_partial_shape()
        for axis in (1, 2) if self.spec.channels_last else (2, 3):
            shape[axis] = -1
        model.reshape({model.inputs[0]: shape})
        twin = object.__new__(OpenVinoEngine)
        twin.__dict__.update(self.__dict__)
        twin._model = model
        twin._compile()
        return twin

    def _compile(self) -> None:
        properties = {
            "NUM_STREAMS": str(len(os.sched_getaffinity(0))),
            "INFERENCE_NUM_THREADS": str(len(os.sched_getaffinity(0))),
            "INFERENCE_PRECISION_HINT": "f32",  # on some CPUs the default would be bfloat16
        }
        try:
            self._compiled = _openvino().Core().compile_model(self._model, "CPU", properties)
        except Exception as error:  # OpenVINO's exceptions are RuntimeErrors of many texts
            raise ModelError(f"OpenVINO cannot compile it ({brief(error)}): convert it again with ovc") from error
        self.spec = _input_spec(self._compiled.inputs)
        self._requests = threading.local()


def _check_options(config: ModelConfig) -> None:
    if cuda_index(config.device) is not None:
        raise ModelError(
            f"device: {config.device} was asked for, but OpenVINO runs on the CPU here: set device to cpu or auto, or "
            "use engine onnx, torch or tensorrt"
        )
    if config.precision == "fp16":
        raise ModelError("precision: fp16 was asked for, but OpenVINO computes in fp32 here: leave precision out")


def _read(path: str) -> Any:
    if path.endswith(".xml") and not Path(path).with_suffix(".bin").is_file():
        raise ModelError(f"its weights '{Path(path).with_suffix('.bin').name}' are missing: copy them beside it")
    try:
        return _openvino().Core().read_model(path)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"OpenVINO cannot read it ({brief(error)}): convert it again with ovc") from error


def _metadata(path: str) -> Mapping[str, str]:
    """What the file says of itself: ``metadata.yaml`` beside an ``.xml``, or an ONNX file's own metadata."""
    if path.endswith(".onnx"):
        import onnx

        model = onnx.load(path, load_external_data=False)
        return {entry.key: entry.value for entry in model.metadata_props}
    beside = Path(path).with_name(METADATA_FILE)
    if not beside.is_file():
        return {}
    try:
        content = yaml.safe_load(beside.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelError(f"'{beside.name}' beside it cannot be read ({brief(error)}): mend or remove it") from error
    return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}


def _name(port: Any, index: int) -> str:
    names = sorted(port.get_names())
    return names[0] if names else f"output_{index}"


def _input_spec(inputs: Any) -> InputSpec:
    """The image input, checked."""
    shapes = "; ".join(
        f"{_name(port, i)} {port.get_element_type().to_string()} {port.get_partial_shape()}"
        for i, port in enumerate(inputs)
    )
    if len(inputs) != 1:
        raise ModelError(f"it has {len(inputs)} inputs ({shapes}): a model with one image input is needed")
    (only,) = inputs
    shape = only.get_partial_shape()
    kind = only.get_element_type().to_string()
    if kind not in _DTYPES:
        raise ModelError(f"its input is {kind} ({shapes}): f32, f16 or u8 is needed")
    if shape.rank.is_dynamic or len(shape) != 4:
        raise ModelError(f"its input is {shapes}: (batch, 3, height, width) is needed")
    batch, *rest = (None if size.is_dynamic else size.get_length() for size in shape)
    if rest[0] == 3:
        channels_last, height, width = False, rest[1], rest[2]
    elif rest[2] == 3:
        channels_last, height, width = True, rest[0], rest[1]
    else:
        raise ModelError(f"its input has no fixed dimension of 3 colours ({shapes}): export it with 3 channels")
    return InputSpec(_name(only, 0), np.dtype(_DTYPES[kind]), channels_last, batch, (width, height))


def _openvino() -> Any:
    try:
        import openvino
    except ImportError as error:
        raise ModelError("OpenVINO is not installed: pip install openvino, or gstorch[openvino]") from error
    return openvino

"""A stand-in for the tensorrt package, after NVIDIA's documentation of API 10 and 11.

It serves to check how it is called. An "engine" is JSON that says what the input and outputs look like; it computes
nothing: a run fills each output with the mean of the input, row by row, which shows that memory, shapes and stream are
handed over rightly. What makes the real one dangerous is kept: ``Dims`` cannot be iterated.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import importlib
import json
import types
from typing import Any, ClassVar

import numpy as np

STREAM = 77


class Dims:
    """A shape as TensorRT gives it: index and len() only."""

    def __init__(self, sizes: Any) -> None:
        self._sizes = tuple(sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, index: int) -> int:
        return self._sizes[index]

    def __iter__(self) -> Any:
        raise AssertionError("tuple(dims) crashes the process beside PyGObject")


class DataType(enum.Enum):
    FLOAT = np.float32
    HALF = np.float16
    UINT8 = np.uint8
    INT32 = np.int32
    INT64 = np.int64
    BOOL = np.bool_


class TensorIOMode(enum.Enum):
    NONE, INPUT, OUTPUT = range(3)


class ILogger:
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class Context:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.shape: tuple[int, ...] = ()
        self.addresses: dict[str, int] = {}
        self.streams: list[int] = []

    def set_input_shape(self, name: str, shape: Any) -> bool:
        low, _, high = self.engine.content["profile"]
        if any(not a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
            self.engine.logger.log(ILogger.ERROR, f"IExecutionContext::setInputShape: {shape} is out of range")
            return False
        self.shape = tuple(shape)
        return True

    def get_tensor_shape(self, name: str) -> Dims:
        if name == self.engine.names[0]:
            return Dims(self.shape)
        return Dims([self.shape[0], *self.engine.content["outputs"][name]])

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        self.streams.append(stream_handle)
        image = self._array(self.engine.names[0], self.shape)
        for name in self.engine.names[1:]:
            dims = self.get_tensor_shape(name)
            output = self._array(name, tuple(dims[i] for i in range(len(dims))))
            output[...] = image.mean(axis=(1, 2, 3), dtype=np.float32).reshape(-1, *[1] * (output.ndim - 1))
        return not self.engine.content.get("fails")

    def _array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        dtype = np.dtype(self.engine.get_tensor_dtype(name).value)
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(self.addresses[name])
        return np.frombuffer(memory, dtype).reshape(shape)


class Engine:
    def __init__(self, content: dict[str, Any], logger: Any) -> None:
        self.content, self.logger = content, logger
        self.names = ["images", *content["outputs"]]
        self.num_io_tensors = len(self.names)
        self.context: Context | None = None

    def get_tensor_name(self, index: int) -> str:
        return self.names[index]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name == "images" else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        return DataType[self.content.get("dtype", "FLOAT")]

    def get_tensor_shape(self, name: str) -> Dims:
        return Dims(self.content["input"])

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[Dims]:
        return [Dims(shape) for shape in self.content["profile"]]

    def create_execution_context(self) -> Context:
        self.context = Context(self)
        return self.context


class Runtime:
    def __init__(self, logger: Any) -> None:
        self.logger = logger

    def deserialize_cuda_engine(self, plan: bytes) -> Engine | None:
        try:
            return Engine(json.loads(plan), self.logger)
        except ValueError:
            self.logger.log(ILogger.ERROR, "the engine plan file is not compatible with this version of TensorRT")
            return None


class Builder:
    """Reads the ONNX file only as far as its input's shape. ``made`` are all builders there were."""

    made: ClassVar[list[Builder]] = []

    def __init__(self, logger: Any) -> None:
        self.logger = logger
        self.made.append(self)
        self.flags = ["TF32"]  # on by default
        self.networks: list[int] = []

    def create_network(self, flags: int = 0) -> Any:
        self.networks.append(flags)
        return types.SimpleNamespace(builder=self, num_inputs=1, get_input=lambda index: self.image)

    def create_builder_config(self) -> Any:
        self.profiles: list[Any] = []
        return types.SimpleNamespace(
            set_memory_pool_limit=lambda pool, size: None,
            set_flag=self.flags.append,
            clear_flag=self.flags.remove,
            add_optimization_profile=self.profiles.append,
        )

    def create_optimization_profile(self) -> Any:
        profile = types.SimpleNamespace(shapes={})
        profile.set_shape = lambda name, low, best, high: profile.shapes.__setitem__(name, [low, best, high])
        return profile

    def build_serialized_network(self, network: Any, config: Any) -> bytes:
        shapes = self.profiles[0].shapes[self.image.name]
        dims = [self.image.shape[i] for i in range(4)]
        return json.dumps({"input": dims, "profile": shapes, "outputs": {"output0": [7, 84]}}).encode()


class OnnxParser:
    num_errors = 1

    def __init__(self, network: Any, logger: Any) -> None:
        self.builder = network.builder

    def parse_from_file(self, path: str) -> bool:
        import onnx

        try:
            image = onnx.load(path).graph.input[0]
        except Exception:  # protobuf's errors
            return False
        dims = image.type.tensor_type.shape.dim
        self.builder.image = types.SimpleNamespace(
            name=image.name, shape=Dims(dim.dim_value if dim.dim_value > 0 else -1 for dim in dims)
        )
        return True

    def get_error(self, index: int) -> str:
        return "not a valid ONNX model"


def module(version: str) -> Any:
    """The package as version ``version`` has it: 11 knows no precision flags and only strongly typed networks."""
    old = version.startswith("10.")
    return types.SimpleNamespace(
        __version__=version,
        DataType=DataType,
        TensorIOMode=TensorIOMode,
        ILogger=ILogger,
        Runtime=Runtime,
        Builder=Builder,
        OnnxParser=OnnxParser,
        BuilderFlag=types.SimpleNamespace(TF32="TF32", **({"FP16": "FP16"} if old else {})),
        MemoryPoolType=types.SimpleNamespace(WORKSPACE=0),
        NetworkDefinitionCreationFlag=types.SimpleNamespace(STRONGLY_TYPED=1),
        **({"init_libnvinfer_plugins": lambda logger, namespace: True} if old else {}),
    )


class TorchWithGpu:
    """torch whose "GPU" is the CPU. Without torch it has no more than names, enough to load and build."""

    def __init__(self, name: str = "NVIDIA H200") -> None:
        self.cuda = types.SimpleNamespace(
            device=contextlib.nullcontext,
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=STREAM),
            get_device_capability=lambda device: (9, 0),
            get_device_name=lambda device: name,
        )

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(importlib.import_module("torch"), name)
        except ModuleNotFoundError:
            return f"torch.{name}"

    def empty(self, shape: Any, dtype: Any, device: Any) -> Any:
        return importlib.import_module("torch").empty(shape, dtype=dtype)

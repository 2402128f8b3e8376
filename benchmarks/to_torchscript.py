"""A small convolutional ONNX detector as a TorchScript file, so that one network can run on CPU and GPU.

    python -m benchmarks.to_torchscript MODEL.onnx MODEL.torchscript

Knows the operators of YOLOX. The batch is the ONNX file's. Prints the largest difference of an output on random input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as functional


def _convolution(
    options: dict[str, Any], image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    up, left, *_ = options.get("pads", (0, 0, 0, 0))  # those of YOLOX are symmetric
    return functional.conv2d(image, weight, bias, options["strides"], (up, left), groups=options.get("group", 1))


def _pool(options: dict[str, Any], image: torch.Tensor) -> torch.Tensor:
    return functional.max_pool2d(image, options["kernel_shape"], options["strides"], options["pads"][:2])


def _slice(
    _options: dict[str, Any],
    image: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    axes: torch.Tensor,
    *steps: torch.Tensor,
) -> torch.Tensor:
    by = steps[0].tolist() if steps else [1] * len(axes)
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), by, strict=True):
        image = image[(slice(None),) * axis + (slice(start, end, step),)]
    return image


def _resize(_options: dict[str, Any], image: torch.Tensor, _region: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return functional.interpolate(image, scale_factor=tuple(scales.tolist()[2:]), mode="nearest")


OPERATORS: dict[str, Callable[..., torch.Tensor]] = {
    "Add": lambda _, a, b: a + b,
    "Concat": lambda options, *parts: torch.cat(parts, options["axis"]),
    "Conv": _convolution,
    "MaxPool": _pool,
    "Mul": lambda _, a, b: a * b,
    "Reshape": lambda _, image, shape: image.reshape(shape.tolist()),
    "Resize": _resize,
    "Shape": lambda _, image: torch.tensor(image.shape),
    "Sigmoid": lambda _, image: torch.sigmoid(image),
    "Slice": _slice,
    "Transpose": lambda options, image: image.permute(options["perm"]),
}


class Network(torch.nn.Module):
    """An ONNX graph of one input and one output, run operator by operator."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        super().__init__()
        self._nodes = []
        constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            options = {option.name: onnx.helper.get_attribute_value(option) for option in node.attribute}
            if node.op_type == "Constant":
                constants[node.output[0]] = options["value"]
            else:
                self._nodes.append((OPERATORS[node.op_type], options, list(node.input), node.output[0]))
        self._names = dict(zip(constants, (f"constant_{number}" for number in range(len(constants))), strict=True))
        for name, tensor in constants.items():
            self.register_buffer(self._names[name], torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy()))
        self._input, self._output = graph.input[0].name, graph.output[0].name

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The output for an input of the ONNX file's shape."""
        values: dict[str, Any] = {self._input: image, "": None}
        for operator, options, inputs, output in self._nodes:
            given = [getattr(self, self._names[name]) if name in self._names else values[name] for name in inputs]
            values[output] = operator(options, *given)
        return values[self._output]  # type: ignore[no-any-return]


def convert(source: str, target: str) -> float:
    """Write the file; the largest difference between ONNX Runtime's outputs and torch's."""
    graph = onnx.load(source).graph
    shape = [size.dim_value or 1 for size in graph.input[0].type.tensor_type.shape.dim]
    pixels = np.random.default_rng(0).uniform(0, 255, shape).astype(np.float32)
    with torch.inference_mode():
        traced = torch.jit.trace(Network(graph).eval(), torch.from_numpy(pixels), check_trace=False)
        got = traced(torch.from_numpy(pixels)).numpy()
    torch.jit.save(traced, target)
    expected = onnxruntime.InferenceSession(source).run(None, {graph.input[0].name: pixels})[0]
    return float(np.abs(got - expected).max())


def main(arguments: Sequence[str]) -> None:
    """Convert and print the difference."""
    print("largest difference of an output:", convert(*arguments))


if __name__ == "__main__":
    main(sys.argv[1:3])

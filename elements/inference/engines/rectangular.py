"""Make the input size of an ONNX model free, so that a 16:9 frame needs no square input."""

from __future__ import annotations

import logging

log = logging.getLogger("gstorch.inference")


def with_free_size(path: str, channels_last: bool) -> bytes | None:
    """The model with input height and width left open, or ``None`` where that cannot be tried.

    Shapes that were worked out for the fixed size are removed. Whether the rest of the graph is free of that size
    (reshapes with constants, stored grids) shows only when it runs: the caller must compare.
    """
    try:
        import onnx
    except ImportError:
        log.debug("input size stays fixed: the package 'onnx' is not installed")
        return None
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in graph.initializer):
        log.debug("input size stays fixed: the weights lie in a file of their own")
        return None
    weights = {tensor.name for tensor in graph.initializer}
    (image,) = (value for value in graph.input if value.name not in weights)
    dims = image.type.tensor_type.shape.dim
    for axis, name in zip((1, 2) if channels_last else (2, 3), ("height", "width"), strict=True):
        dims[axis].dim_param = name
    del graph.value_info[:]
    for index, output in enumerate(graph.output):
        for axis, dim in enumerate(output.type.tensor_type.shape.dim):
            if axis > 0:
                dim.dim_param = f"output_{index}_{axis}"
    serialized: bytes = model.SerializeToString()
    return serialized

"""Tiny ONNX detectors whose answer is known: they find the pure red, green and blue rectangles of a picture.

Class 0 is red, 1 green, 2 blue. A rectangle's edges are found to a fraction of a pixel: per class, the columns (rows)
that hold the colour are summed to a width (height) and their centre of mass is the centre. So there is one object per
class, axis-aligned, on a background of any grey. Soft edges in the picture make the answer exact at any scale.

>>> path = save(finder("yolov8"), tmp_path / "finder.onnx")
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from tests.pictures import NAMES as NAMES
from tests.pictures import SCORE as SCORE
from tests.pictures import picture as picture

_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8}
LAYOUTS = ("yolov5", "yolov8", "yolov8-transposed", "yolox", "yolox-decoded", "end2end")


def save(model: onnx.ModelProto, path: Path) -> str:
    """Write the model; returns the path as text."""
    onnx.save(model, str(path))
    return str(path)


def finder(
    layout: str = "yolov8",
    size: tuple[int, int] | None = (640, 640),
    batch: int | None = 1,
    dtype: str = "float32",
    channels_last: bool = False,
    normalized: bool = False,
    not_numbers: bool = False,
    fails_on_blue: bool = False,
    metadata: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """A model that finds the rectangles and answers in ``layout`` (one of `LAYOUTS`).

    Args:
        layout: output layout. YOLOX ones take BGR 0-255, the others RGB 0-1; uint8 is 0-255 in any case.
        size: fixed (width, height) of the input, multiples of 32; ``None``: free.
        batch: fixed batch; ``None``: free.
        dtype: of input and output: float32, float16, uint8 (output float32).
        channels_last: NHWC instead of NCHW.
        normalized: boxes from 0 to 1.
        not_numbers: add a row with a NaN score and one with an infinite box.
        fails_on_blue: fail at run time on pictures that are blue all over (an index out of range).
        metadata: entries such as ``names``.
    """
    graph = Graph()
    yolox = layout.startswith("yolox")
    image = graph.add("Cast", "image", to=TensorProto.FLOAT)
    if channels_last:
        image = graph.add("Transpose", image, perm=[0, 3, 1, 2])
    if yolox or dtype == "uint8":
        image = graph.add("Mul", image, graph.floats(1 / 255))
    if yolox:
        image = graph.add("Gather", image, graph.ints(2, 1, 0), axis=1)
    boxes, scores = found(graph, image)  # (B, 3, 4) cx cy w h in pixels, (B, 3, 1)
    width, height = (graph.extent(image, axis) for axis in (3, 2))
    if normalized:
        boxes = graph.add("Div", boxes, graph.add("Concat", width, height, width, height, axis=0))
    rows = _rows(graph, layout, boxes, scores)
    if fails_on_blue:
        rows = graph.add("Add", rows, _failure_if_blue(graph, image))
    if not_numbers:
        rows = _with_broken_rows(graph, rows, layout)
    if layout == "end2end":
        count = graph.ints(300)
    else:  # cells of strides 8, 16, 32: w*h/64 + w*h/256 + w*h/1024
        cells = graph.add(
            "Div", graph.add("Mul", graph.add("Mul", width, height), graph.floats(21.0)), graph.floats(1024.0)
        )
        count = graph.add(
            "Cast", graph.add("Mul", cells, graph.floats(3.0 if layout == "yolov5" else 1.0)), to=TensorProto.INT64
        )
    rows = graph.padded(rows, count)
    if layout == "yolov8":
        rows = graph.add("Transpose", rows, perm=[0, 2, 1])
    out_type = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    graph.nodes.append(helper.make_node("Cast", [rows], ["output"], to=out_type))

    w, h = size or ("width", "height")
    shape = [batch or "batch", h, w, 3] if channels_last else [batch or "batch", 3, h, w]
    return build(graph, shape, {"output": out_type}, _TYPES[dtype], metadata)


def unknown_layout() -> onnx.ModelProto:
    """A model whose output (1, 7, 7, 30) is no layout known to the project."""
    graph = Graph()
    mean = graph.add("ReduceMean", "image", axes=[1, 2, 3], keepdims=1)
    graph.nodes.append(helper.make_node("Expand", [mean, graph.ints(1, 7, 7, 30)], ["output"]))
    return build(graph, [1, 3, 64, 64], {"output": TensorProto.FLOAT})


def constant(output: NDArray[np.float32], shape: tuple[int | str, ...] = (1, 3, 64, 64)) -> onnx.ModelProto:
    """A model that gives ``output`` whatever it sees."""
    graph = Graph()
    zero = graph.add("Mul", graph.add("ReduceMean", "image", keepdims=0), graph.floats(0.0))
    value = graph.constant(output.astype(np.float32))
    graph.nodes.append(helper.make_node("Add", [value, zero], ["output"]))
    return build(graph, list(shape), {"output": TensorProto.FLOAT})


def found(graph: Graph, image: str) -> tuple[str, str]:
    """Boxes (B, 3, 4) cx, cy, w, h and scores (B, 3, 1) of the three colours in an RGB 0-1 ``image``."""
    color = colors(graph, image)
    centers, sizes = [], []
    for crossed in (2, 3):
        profile = graph.add("ReduceMax", color, axes=[crossed], keepdims=0)  # (B, 3, W) or (B, 3, H)
        ones = graph.add("Add", graph.add("Mul", profile, graph.floats(0.0)), graph.floats(1.0))
        place = graph.add("Sub", graph.add("CumSum", ones, graph.ints(2)), graph.floats(0.5))
        total = graph.add("ReduceSum", profile, graph.ints(2), keepdims=1)
        moment = graph.add("ReduceSum", graph.add("Mul", profile, place), graph.ints(2), keepdims=1)
        centers.append(graph.add("Div", moment, graph.add("Max", total, graph.floats(1e-3))))
        sizes.append(total)
    large = [graph.add("Greater", size, graph.floats(2.0)) for size in sizes]
    seen = graph.add("Cast", graph.add("And", *large), to=TensorProto.FLOAT)
    return graph.add("Concat", *centers, *sizes, axis=2), graph.add("Mul", seen, graph.floats(SCORE))


def colors(graph: Graph, image: str) -> str:
    """(B, 3, H, W): how red, green and blue the pixels of an RGB 0-1 ``image`` are, 0 for greys."""
    others = graph.add(
        "Max",
        graph.add("Gather", image, graph.ints(1, 2, 0), axis=1),
        graph.add("Gather", image, graph.ints(2, 0, 1), axis=1),
    )
    # Symmetric about one half, so that blurred edges stay where they are while noise counts for nothing.
    excess = graph.add("Sub", image, others)
    level = graph.add("Div", graph.add("Sub", excess, graph.floats(0.25)), graph.floats(0.5))
    return graph.add("Clip", level, graph.floats(0.0), graph.floats(1.0))


def _rows(graph: Graph, layout: str, boxes: str, scores: str) -> str:
    """(B, 3, columns) of ``layout``, one row per class."""
    identity = graph.constant(np.eye(3, dtype=np.float32)[None])
    if layout in ("yolov8", "yolov8-transposed"):
        return graph.add("Concat", boxes, graph.add("Mul", scores, identity), axis=2)
    center = graph.add("Slice", boxes, graph.ints(0), graph.ints(2), graph.ints(2))
    size = graph.add("Slice", boxes, graph.ints(2), graph.ints(4), graph.ints(2))
    if layout == "end2end":
        half = graph.add("Mul", size, graph.floats(0.5))
        # 0 * score carries the batch size to the class column.
        zero = graph.add("Mul", scores, graph.floats(0.0))
        class_id = graph.add("Add", zero, graph.constant(np.arange(3, dtype=np.float32)[None, :, None]))
        corners = [graph.add("Sub", center, half), graph.add("Add", center, half)]
        return graph.add("Concat", *corners, scores, class_id, axis=2)
    if layout == "yolox":  # row k stands in cell (k, 0) of the grid of stride 8
        cells = graph.constant(np.array([[[0, 0], [1, 0], [2, 0]]], np.float32))
        center = graph.add("Sub", graph.add("Div", center, graph.floats(8.0)), cells)
        size = graph.add("Log", graph.add("Max", graph.add("Div", size, graph.floats(8.0)), graph.floats(1e-3)))
    one_hot = graph.add("Add", graph.add("Mul", scores, graph.floats(0.0)), identity)
    return graph.add("Concat", center, size, scores, one_hot, axis=2)


def _failure_if_blue(graph: Graph, image: str) -> str:
    """Zero, or the failure of a Gather, if blue is far stronger than red in an RGB 0-1 ``image``."""
    red, blue = (graph.add("ReduceMean", graph.add("Gather", image, graph.ints(c), axis=1), keepdims=0) for c in (0, 2))
    is_blue = graph.add("Greater", graph.add("Sub", blue, red), graph.floats(0.3))
    return graph.add("Gather", graph.floats(0.0), graph.add("Cast", is_blue, to=TensorProto.INT64))


def _with_broken_rows(graph: Graph, rows: str, layout: str) -> str:
    """Put a row of NaN and a row with an infinite box and good scores after the three good rows."""
    columns = {"yolov8": 7, "yolov8-transposed": 7, "end2end": 6}.get(layout, 8)
    broken = np.full((1, 2, columns), np.nan, np.float32)
    broken[0, 1] = 0.95
    broken[0, 1, :4] = np.inf
    if layout == "end2end":
        broken[0, 1, 5] = 0
    zero = graph.add("Mul", graph.add("Slice", rows, graph.ints(0), graph.ints(1), graph.ints(1)), graph.floats(0.0))
    return graph.add("Concat", rows, graph.add("Add", zero, graph.constant(broken)), axis=1)


class Graph:
    """Collects nodes and constants; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(value, name))
        return name

    def floats(self, *values: float) -> str:
        return self.constant(np.array(values, np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def extent(self, tensor: str, axis: int) -> str:
        """Size of ``tensor`` along ``axis``, as a float of shape (1,)."""
        shape = self.add("Shape", tensor)
        return self.add("Cast", self.add("Gather", shape, self.ints(axis), axis=0), to=TensorProto.FLOAT)

    def padded(self, rows: str, count: str) -> str:
        """``rows`` (B, n, columns) followed by rows of zeros, ``count`` together."""
        shape = self.add("Shape", rows)
        have = self.add("Gather", shape, self.ints(1), axis=0)
        missing = self.add("Sub", count, have)
        pads = self.add("Concat", self.ints(0, 0, 0, 0), missing, self.ints(0), axis=0)
        return self.add("Pad", rows, pads, self.floats_scalar(0.0))

    def floats_scalar(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))


def build(
    graph: Graph,
    input_shape: list[int | str],
    outputs: Mapping[str, int],
    input_type: int = TensorProto.FLOAT,
    metadata: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """The model of a graph with the input ``image``; ``outputs``: types by name, their shapes are inferred."""
    image = helper.make_tensor_value_info("image", input_type, input_shape)
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    made = helper.make_graph(graph.nodes, "test", [image], results, graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    if metadata:
        helper.set_model_props(model, dict(metadata))
    return model

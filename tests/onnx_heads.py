"""Tiny ONNX models of every task and output layout, whose answer is known: see `tests.onnx_models`.

They find the one red, green and blue shape of a picture. What a task adds: ``obb`` the angle of the shape's longer axis
(from its moments), ``segment`` the shape itself, as three prototypes that are the three colours, ``pose`` the top left
corner, centre and bottom right corner of the box. ``classify`` and ``embed`` give how much of the input each colour
covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto

from tests.onnx_models import SCORE, Graph, build, colors, found

# Layout and task; what is missing here is made by `tests.onnx_models.finder`.
HEADS = [
    *((layout, task) for layout in ("yolov8", "yolov8-transposed", "end2end") for task in ("obb", "segment", "pose")),
    ("yolov5", "segment"),
    ("rtdetr", "detect"),
    ("rtdetr-end2end", "detect"),
    ("rfdetr", "detect"),
    ("rfdetr", "segment"),
    ("separate", "detect"),
    ("tf-detection", "detect"),
    ("ssd", "detect"),
    ("nanodet", "detect"),
    ("fastestdet", "detect"),
    ("classify", "classify"),
    ("embed", "embed"),
]
POINTS = 3
_BGR = ("nanodet", "fastestdet")
_IMAGENET = ("nanodet", "rfdetr", "embed")
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def head(
    layout: str, task: str, size: tuple[int, int] = (640, 640), metadata: Mapping[str, str] | None = None
) -> onnx.ModelProto:
    """A model of a fixed input ``size`` (width, height) that answers for ``task`` in ``layout`` (see `HEADS`)."""
    graph = Graph()
    image = _rgb(graph, layout)
    if layout in ("classify", "embed"):
        outputs = {"output": _covers(graph, image, layout)}
    else:
        boxes, seen = _turned(graph, image) if task == "obb" else found(graph, image)
        scores = graph.add("Max", seen, graph.floats(0.01))  # real heads never give a plain 0
        outputs = _WRITERS.get(layout, _rows)(_Found(graph, layout, task, size, image, boxes, scores))
    for name, value in outputs.items():
        graph.nodes.append(onnx.helper.make_node("Identity", [value], [name]))
    return build(graph, [1, 3, size[1], size[0]], dict.fromkeys(outputs, TensorProto.FLOAT), metadata=metadata)


class _Found:
    """What was found, and where to write it: boxes (1, 3, 4 or 5) cx, cy, w, h, angle in pixels, scores (1, 3, 1)."""

    def __init__(
        self, graph: Graph, layout: str, task: str, size: tuple[int, int], image: str, boxes: str, scores: str
    ) -> None:
        self.graph, self.layout, self.task, self.size, self.image = graph, layout, task, size, image
        self.boxes = self.part(boxes, 0, 4)
        self.angle = self.part(boxes, 4, 5) if task == "obb" else None
        self.scores = scores

    def part(self, tensor: str, start: int, stop: int) -> str:
        """Columns ``start`` to ``stop``."""
        return self.graph.add("Slice", tensor, *(self.graph.ints(n) for n in (start, stop, 2)))

    def corners(self, boxes: str | None = None) -> str:
        """(1, 3, 4) x1, y1, x2, y2."""
        add, boxes = self.graph.add, boxes or self.boxes
        half = add("Mul", self.part(boxes, 2, 4), self.graph.floats(0.5))
        center = self.part(boxes, 0, 2)
        return add("Concat", add("Sub", center, half), add("Add", center, half), axis=2)

    def normalized(self) -> str:
        """(1, 3, 4) cx, cy, w, h from 0 to 1."""
        return self.graph.add("Div", self.boxes, self.graph.floats(*self.size, *self.size))

    def class_scores(self) -> str:
        """(1, 3, 3) the score in the column of the class."""
        return self.graph.add("Mul", self.scores, self.graph.constant(np.eye(3, dtype=np.float32)[None]))

    def class_numbers(self, first: int = 0) -> str:
        """(1, 3, 1)."""
        return self.graph.constant(np.arange(first, first + 3, dtype=np.float32).reshape(1, 3, 1))

    def squeezed(self, tensor: str) -> str:
        """(1, 3)."""
        return self.graph.add("Squeeze", tensor, self.graph.ints(2))

    def prototypes(self) -> str:
        """(1, 3, H/4, W/4), above 0 inside."""
        small = self.graph.add("AveragePool", colors(self.graph, self.image), kernel_shape=[4, 4], strides=[4, 4])
        return self.graph.add("Sub", small, self.graph.floats(0.5))

    def extras(self) -> list[str]:
        """What the task adds to each row."""
        if self.task == "obb":
            return [self.angle or ""]
        if self.task == "segment":
            return [self.graph.constant(np.eye(3, dtype=np.float32)[None])]
        if self.task == "pose":
            ones = self.graph.constant(np.full((1, 3, 1), 0.75, np.float32))
            box = self.corners()
            return [self.part(box, 0, 2), ones, self.part(self.boxes, 0, 2), ones, self.part(box, 2, 4), ones]
        return []

    def placed(self, rows: str, cell: str, count: int) -> str:
        """(1, count, columns): the three rows at the places ``cell`` (1, 3), zeros elsewhere."""
        depth, values = self.graph.ints(count), self.graph.floats(0.0, 1.0)
        where = self.graph.add("OneHot", cell, depth, values, axis=1)  # (1, count, 3)
        return self.graph.add("MatMul", where, rows)

    def cells(self, stride: int) -> tuple[str, str]:
        """Column and row (1, 3, 2) and number (1, 3) of the grid cells in which the centres lie."""
        add = self.graph.add
        place = add("Floor", add("Div", self.part(self.boxes, 0, 2), self.graph.floats(float(stride))))
        across = self.graph.floats(1.0, float(self.size[0] // stride))
        number = add("ReduceSum", add("Mul", place, across), self.graph.ints(2), keepdims=0)
        return place, add("Cast", number, to=TensorProto.INT64)


def _rows(found: _Found) -> dict[str, str]:
    """YOLO: everything side by side."""
    add, graph = found.graph.add, found.graph
    if found.layout == "end2end":
        boxes = found.boxes if found.task == "obb" else found.corners()
        columns = [boxes, found.scores, found.class_numbers()]
        count = 300
    else:
        one_hot = found.class_scores()
        columns = [found.boxes, one_hot]
        cells = found.size[0] * found.size[1] * 21 // 1024
        count = cells * 3 if found.layout == "yolov5" else cells
        if found.layout == "yolov5":
            columns = [found.boxes, found.scores, graph.constant(np.eye(3, dtype=np.float32)[None])]
    rows = graph.padded(add("Concat", *columns, *found.extras(), axis=2), graph.ints(count))
    outputs = {"output": add("Transpose", rows, perm=[0, 2, 1]) if found.layout == "yolov8" else rows}
    if found.task == "segment":
        outputs["prototypes"] = found.prototypes()
    return outputs


def _rtdetr(found: _Found) -> dict[str, str]:
    return {"output": found.graph.add("Concat", found.normalized(), found.class_scores(), axis=2)}


def _rtdetr_end2end(found: _Found) -> dict[str, str]:
    columns = [found.normalized(), found.scores, found.class_numbers()]
    return {"output": found.graph.add("Concat", *columns, axis=2)}


def _rfdetr(found: _Found) -> dict[str, str]:
    add, graph = found.graph.add, found.graph
    scores = add("Max", found.class_scores(), graph.floats(1e-4))
    logits = add("Log", add("Div", scores, add("Sub", graph.floats(1.0), scores)))
    unused = graph.constant(np.full((1, 3, 1), -9, np.float32))
    outputs = {"dets": found.normalized(), "labels": add("Concat", logits, unused, axis=2)}
    if found.task == "segment":
        outputs["masks"] = found.prototypes()
    return outputs


def _separate(found: _Found) -> dict[str, str]:
    labels = found.squeezed(found.class_numbers())
    return {"labels": labels, "boxes": found.corners(), "scores": found.squeezed(found.scores)}


def _tf_detection(found: _Found) -> dict[str, str]:
    boxes = found.graph.add("Gather", found.corners(found.normalized()), found.graph.ints(1, 0, 3, 2), axis=2)
    return {
        "detection_boxes": boxes,
        "detection_classes": found.squeezed(found.class_numbers(1)),
        "detection_scores": found.squeezed(found.scores),
        "num_detections": found.graph.floats(3.0),
        "raw_detection_boxes": boxes,
    }


def _ssd(found: _Found) -> dict[str, str]:
    background = found.graph.add("Sub", found.graph.floats(1.0), found.scores)
    scores = found.graph.add("Concat", background, found.class_scores(), axis=2)
    return {"scores": scores, "boxes": found.corners(found.normalized())}


def _nanodet(found: _Found) -> dict[str, str]:
    """Boxes in the grid of stride 32: distances as two neighbouring bins."""
    add, graph, size = found.graph.add, found.graph, found.size
    place, number = found.cells(32)
    origin = add("Mul", place, graph.floats(32.0))
    box = found.corners()
    near, far = add("Sub", origin, found.part(box, 0, 2)), add("Sub", found.part(box, 2, 4), origin)
    distance = add("Div", add("Concat", near, far, axis=2), graph.floats(32.0))
    # Where the box does not reach the corner of the cell the distance is below 0, which no distribution can give.
    distance = add("Unsqueeze", add("Max", distance, graph.floats(0.0)), graph.ints(3))
    bins = graph.constant(np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8))
    weight = add("Sub", graph.floats(1.0), add("Abs", add("Sub", distance, bins)))
    logits = add("Reshape", add("Log", add("Max", weight, graph.floats(1e-9))), graph.ints(1, 3, 32))
    first = sum(-(-size[0] // s) * -(-size[1] // s) for s in (8, 16))
    count = first + sum(-(-size[0] // s) * -(-size[1] // s) for s in (32, 64))
    rows = add("Concat", found.class_scores(), logits, axis=2)
    return {"output": found.placed(rows, add("Add", number, graph.ints(first)), count)}


def _fastestdet(found: _Found) -> dict[str, str]:
    add, graph, (width, height) = found.graph.add, found.graph, found.size
    columns, rows = width // 16, height // 16
    place, number = found.cells(16)
    shift = add("Sub", add("Div", found.part(found.boxes, 0, 2), graph.floats(16.0)), place)
    extent = found.part(found.normalized(), 2, 4)
    extent = add("Clip", extent, graph.floats_scalar(1e-4), graph.floats_scalar(0.9999))
    raw = [add("Atanh", shift), add("Log", add("Div", extent, add("Sub", graph.floats(1.0), extent)))]
    cells = found.placed(add("Concat", found.scores, *raw, found.class_scores(), axis=2), number, columns * rows)
    # Noise has all objects in one cell, where their scores are added up.
    cells = add("Min", cells, graph.floats(1, *[np.inf] * 4, 1, 1, 1))
    planes = add("Transpose", cells, perm=[0, 2, 1])
    return {"output": add("Reshape", planes, graph.ints(1, 8, rows, columns))}


_WRITERS: dict[str, Callable[[_Found], dict[str, str]]] = {
    "rtdetr": _rtdetr,
    "rtdetr-end2end": _rtdetr_end2end,
    "rfdetr": _rfdetr,
    "separate": _separate,
    "tf-detection": _tf_detection,
    "ssd": _ssd,
    "nanodet": _nanodet,
    "fastestdet": _fastestdet,
}


def _rgb(graph: Graph, layout: str) -> str:
    """The input as RGB 0-1, from what the layout expects."""
    image = "image"
    if layout in _IMAGENET:
        order = slice(None, None, -1 if layout in _BGR else 1)
        mean, deviation = (np.array(v, np.float32)[order].reshape(1, 3, 1, 1) for v in (_MEAN, _DEVIATION))
        image = graph.add("Add", graph.add("Mul", image, graph.constant(deviation)), graph.constant(mean))
    elif layout == "tf-detection":
        image = graph.add("Mul", image, graph.floats(1 / 255))
    return graph.add("Gather", image, graph.ints(2, 1, 0), axis=1) if layout in _BGR else image


def _covers(graph: Graph, image: str, layout: str) -> str:
    """How much of the picture each colour covers: (1, 3, 1, 1), or (1, 3) logits."""
    cover = graph.add("ReduceMean", colors(graph, image), axes=[2, 3], keepdims=int(layout == "embed"))
    return cover if layout == "embed" else graph.add("Mul", cover, graph.floats(20.0))


def _turned(graph: Graph, image: str) -> tuple[str, str]:
    """(1, 3, 5) cx, cy, w, h, angle and (1, 3, 1) scores of turned rectangles, from their moments.

    A rectangle w x h has the variances w^2/12 and h^2/12 along its axes.
    """
    add = graph.add
    level = colors(graph, image)
    total = add("Max", add("ReduceSum", level, graph.ints(2, 3), keepdims=0), graph.floats(1e-3))  # (1, 3)
    mean, moment = [], []
    profiles = [add("ReduceSum", level, graph.ints(axis), keepdims=0) for axis in (2, 3)]
    places = []
    for profile in profiles:
        ones = add("Add", add("Mul", profile, graph.floats(0.0)), graph.floats(1.0))
        place = add("Sub", add("CumSum", ones, graph.ints(2)), graph.floats(0.5))
        places.append(place)
        first = add("Div", add("ReduceSum", add("Mul", profile, place), graph.ints(2), keepdims=0), total)
        squares = add("Mul", profile, add("Mul", place, place))
        second = add("Div", add("ReduceSum", squares, graph.ints(2), keepdims=0), total)
        mean.append(first)
        moment.append(add("Sub", second, add("Mul", first, first)))
    across = add("MatMul", level, add("Unsqueeze", places[0], graph.ints(3)))  # (1, 3, H, 1)
    down = add("MatMul", add("Unsqueeze", places[1], graph.ints(2)), across)  # (1, 3, 1, 1)
    mixed = add("Div", add("Squeeze", down, graph.ints(2, 3)), total)
    mixed = add("Sub", mixed, add("Mul", *mean))
    difference = add("Sub", *moment)
    twice = add("Mul", mixed, graph.floats(2.0))
    root = add("Sqrt", add("Add", add("Mul", difference, difference), add("Mul", twice, twice)))
    angle = add("Atan", add("Div", twice, add("Add", add("Add", difference, root), graph.floats(1e-6))))
    middle = add("Add", *moment)
    sizes = [
        add("Sqrt", add("Mul", graph.floats(6.0), add("Max", add(sign, middle, root), graph.floats(0.0))))
        for sign in ("Add", "Sub")
    ]
    columns = [add("Unsqueeze", value, graph.ints(2)) for value in (*mean, *sizes, angle)]
    seen = add("Cast", add("Greater", total, graph.floats(50.0)), to=TensorProto.FLOAT)
    scores = add("Unsqueeze", add("Mul", seen, graph.floats(SCORE)), graph.ints(2))
    return add("Concat", *columns, axis=2), scores

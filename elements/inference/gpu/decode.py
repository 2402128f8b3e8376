"""Network outputs to boxes, for a whole batch on a torch device and with shapes that do not depend on the values.

The layouts are some of `elements.inference.decoders`, whose NumPy code picks rows first; here nothing may wait for the
host, so every row is decoded. Tests hold both to the same answers. Layouts that are not here are decoded on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from elements.inference.decoders.rows import grid
from elements.inference.letterbox import Size
from elements.inference.tasks import Task


@dataclass(slots=True)
class Rows:
    """All rows of a batch.

    Attributes:
        boxes: (B, A, 4) float32 xyxy in the model's own unit.
        scores: (B, A) float32.
        class_ids: (B, A), whole numbers.
        broken: (B, A) bool: score or class is no number.
    """

    boxes: torch.Tensor
    scores: torch.Tensor
    class_ids: torch.Tensor
    broken: torch.Tensor


@dataclass(frozen=True, slots=True)
class Head:
    """What a reader gets.

    Attributes:
        rows: (B, A, columns) without what the task adds, float; a view.
        size: (width, height) of the network's input.
        confidence: lowest score, a scalar tensor on the device.
        task: what the model does.
    """

    rows: torch.Tensor
    size: Size
    confidence: torch.Tensor
    task: Task


def can_read(layout: str) -> bool:
    """Whether `read_rows` knows the layout."""
    return layout in _READERS


def read_rows(
    layout: str, output: torch.Tensor, size: Size, confidence: torch.Tensor, task: Task = "detect", extras: int = 0
) -> tuple[Rows, torch.Tensor]:
    """Every row of ``output`` (B, D1, D2), read as ``layout``, and (B, A, ``extras``) what the task adds to each."""
    rows = output.transpose(1, 2) if layout == "yolov8" else output
    columns = rows.shape[2] - extras
    return _READERS[layout](Head(rows[..., :columns], size, confidence, task)), rows[..., columns:]


def _classes(head: Head) -> Rows:
    best, class_ids = head.rows[..., 4:].max(dim=2)  # NaN wins over numbers, as in NumPy
    return Rows(_corners(head.rows[..., :4].float()), best.float(), class_ids, best.isnan())


def _objectness(head: Head) -> Rows:
    return _with_objectness(head, _corners(head.rows[..., :4].float()))


def _yolox(head: Head) -> Rows:
    cells, strides = _grid(head.size, head.rows.shape[1], head.rows.device)
    raw = head.rows[..., :4].float()
    boxes = torch.cat([(raw[..., :2] + cells) * strides, raw[..., 2:].exp() * strides], dim=-1)
    return _with_objectness(head, _corners(boxes))


def _end2end(head: Head) -> Rows:
    boxes, scores, classes = head.rows[..., :4].float(), head.rows[..., 4].float(), head.rows[..., 5].float()
    broken = scores.isnan() | ((scores >= head.confidence) & ~classes.isfinite())
    boxes = _corners(boxes) if head.task == "obb" else boxes
    return Rows(boxes, scores, classes.nan_to_num(0, 0, 0).long(), broken)


def _with_objectness(head: Head, boxes: torch.Tensor) -> Rows:
    objectness = head.rows[..., 4].float()
    best, class_ids = head.rows[..., 5:].max(dim=2)
    scores = objectness * best.float()
    likely = objectness >= head.confidence
    broken = objectness.isnan() | (likely & scores.isnan())
    return Rows(boxes, torch.where(likely, scores, 0.0), class_ids, broken)


@cache
def _grid(size: Size, anchors: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """`grid` on the device; kept for good, since a captured graph goes on reading it."""
    cells, strides = grid(size, anchors)
    return torch.from_numpy(cells).to(device), torch.from_numpy(strides).to(device)


def _corners(center_size: torch.Tensor) -> torch.Tensor:
    """(..., 4) cx, cy, w, h to x1, y1, x2, y2."""
    center, half = center_size[..., :2], center_size[..., 2:] / 2
    return torch.cat([center - half, center + half], dim=-1)


_READERS: dict[str, Callable[[Head], Rows]] = {
    "yolov8": _classes,
    "yolov8-transposed": _classes,
    "yolov5": _objectness,
    "yolox-decoded": _objectness,
    "yolox": _yolox,
    "end2end": _end2end,
}

"""Network outputs to boxes, for a whole batch on a torch device and with shapes that do not depend on the values.

The layouts are those of `elements.inference.decoders`, whose NumPy code picks rows first; here nothing may wait for the
host, so every row is decoded. Tests hold both to the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

from elements.inference.decoders.yolox import grid
from elements.inference.letterbox import Size


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


def read_rows(layout: str, output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    """Every row of ``output`` (B, D1, D2), read as ``layout``.

    Args:
        layout: a layout's name.
        output: the network's output, float.
        size: (width, height) of the network's input.
        confidence: lowest score, a scalar tensor on the device.
    """
    return _READERS[layout](output, size, confidence)


def _yolov8(output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    best, class_ids = output[:, 4:].max(dim=1)  # NaN wins over numbers, as in NumPy
    return Rows(_corners(output[:, :4].transpose(1, 2).float()), best.float(), class_ids, best.isnan())


def _yolov8_transposed(output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    best, class_ids = output[..., 4:].max(dim=2)
    return Rows(_corners(output[..., :4].float()), best.float(), class_ids, best.isnan())


def _objectness(output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    return _with_objectness(output, _corners(output[..., :4].float()), confidence)


def _yolox(output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    cells, strides = _grid(size, output.shape[1], output.device)
    raw = output[..., :4].float()
    boxes = torch.cat([(raw[..., :2] + cells) * strides, raw[..., 2:].exp() * strides], dim=-1)
    return _with_objectness(output, _corners(boxes), confidence)


def _end2end(output: torch.Tensor, size: Size, confidence: torch.Tensor) -> Rows:
    scores, classes = output[..., 4].float(), output[..., 5].float()
    broken = scores.isnan() | ((scores >= confidence) & ~classes.isfinite())
    return Rows(output[..., :4].float(), scores, classes.nan_to_num(0, 0, 0).long(), broken)


def _with_objectness(output: torch.Tensor, boxes: torch.Tensor, confidence: torch.Tensor) -> Rows:
    objectness = output[..., 4].float()
    best, class_ids = output[..., 5:].max(dim=2)
    scores = objectness * best.float()
    likely = objectness >= confidence
    broken = objectness.isnan() | (likely & scores.isnan())
    return Rows(boxes, torch.where(likely, scores, 0.0), class_ids, broken)


@lru_cache(maxsize=32)
def _grid(size: Size, anchors: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """`grid` on the device; kept, since a captured graph goes on reading it."""
    cells, strides = grid(size, anchors)
    return torch.from_numpy(cells).to(device), torch.from_numpy(strides).to(device)


def _corners(center_size: torch.Tensor) -> torch.Tensor:
    """(..., 4) cx, cy, w, h to x1, y1, x2, y2."""
    center, half = center_size[..., :2], center_size[..., 2:] / 2
    return torch.cat([center - half, center + half], dim=-1)


_READERS: dict[str, Callable[[torch.Tensor, Size, torch.Tensor], Rows]] = {
    "yolov8": _yolov8,
    "yolov8-transposed": _yolov8_transposed,
    "yolov5": _objectness,
    "yolox-decoded": _objectness,
    "yolox": _yolox,
    "end2end": _end2end,
}

"""Task-aligned assignment and the loss.

Assignment follows TOOD (Feng et al., 2021): a cell serves an object when its score and its box for it are both good.
Boxes are pulled by complete IoU (Zheng et al., 2020), scores by binary cross entropy with the alignment as soft target.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from tools.detector.network import decode

TOP_CELLS = 10
"""Cells that serve one object."""

BOX_WEIGHT, SCORE_WEIGHT = 7.5, 0.5


def to_corners(boxes: Tensor) -> Tensor:
    """xywh (centre) to xyxy, (..., 4)."""
    return torch.cat([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)


def plain_iou(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of xyxy boxes that broadcast, (..., 4)."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / ((a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - shared + 1e-7)


def complete_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU less penalties for distance between centres and for another shape, xyxy (N, 4)."""
    iou = plain_iou(a, b)
    hull = torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])
    apart = ((a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) ** 2).sum(-1) / 4
    size_a, size_b = (a[:, 2:] - a[:, :2]).clamp(min=1e-3), (b[:, 2:] - b[:, :2]).clamp(min=1e-3)
    shape = 4 / math.pi**2 * (torch.atan(size_b[:, 0] / size_b[:, 1]) - torch.atan(size_a[:, 0] / size_a[:, 1])) ** 2
    with torch.no_grad():
        weight = shape / (1 - iou + shape + 1e-7)
    return iou - apart / ((hull**2).sum(-1) + 1e-7) - weight * shape


def assign(
    scores: Tensor, boxes: Tensor, centres: Tensor, strides: Tensor, truth: Tensor, labels: Tensor, owed: Tensor
) -> tuple[Tensor, Tensor]:
    """Which object each cell serves and how well.

    Args:
        scores: (B, A, C) in 0..1; boxes: (B, A, 4) xyxy.
        centres, strides: (A, 2), (A, 1) of the cells.
        truth: (B, M, 4) xyxy; labels: (B, M) class; owed: (B, M) True for objects to be found.

    Returns:
        (B, A) index of the object or -1, and (B, A) the soft target score.
    """
    objects = labels.shape[1]
    # A cell may serve an object whose (slightly widened) box holds its centre; narrow ones keep at least a cell.
    middle, half = (truth[..., :2] + truth[..., 2:]) / 2, (truth[..., 2:] - truth[..., :2]) / 2
    reach = torch.maximum(half[:, :, None], strides[None, None] * 0.6)
    near = ((centres[None, None] - middle[:, :, None]).abs() < reach).all(-1) & owed[..., None]
    overlap = plain_iou(truth[:, :, None], boxes[:, None]) * near
    chosen = labels[:, :, None].expand(-1, -1, scores.shape[1])
    alignment = scores.transpose(1, 2).gather(1, chosen).sqrt() * overlap**6 + near * 1e-12
    best = alignment.topk(TOP_CELLS, dim=-1)
    serving = torch.zeros_like(near).scatter_(-1, best.indices, True) & near
    # A cell claimed by several objects serves the one it overlaps most.
    rival = torch.where(serving, overlap + 1e-6, torch.zeros_like(overlap))
    value, index = rival.max(1)
    index = torch.where(value > 0, index, torch.full_like(index, -1))
    mine = serving & (index[:, None] == torch.arange(objects, device=index.device)[None, :, None])
    strongest = (alignment * mine).amax(-1, keepdim=True)
    widest = (overlap * mine).amax(-1, keepdim=True)
    target = (alignment * mine / (strongest + 1e-12) * widest).amax(1)
    return index, target


def detection_loss(
    raw: Tensor, centres: Tensor, strides: Tensor, truth: Tensor, labels: Tensor, ignore: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of a batch.

    Args:
        raw: (B, A, 4 + C) outputs of the network.
        centres, strides: of the cells.
        truth: (B, M, 4) xyxy in input pixels; labels: (B, M), -1 for unused rows; ignore: (B, M) bool.

    Returns:
        The loss, and its parts for the log.
    """
    raw = raw.float()
    boxes = to_corners(decode(raw, centres, strides))
    logits = raw[..., 4:]
    used = labels >= 0
    index, target = assign(
        logits.detach().sigmoid(), boxes.detach(), centres, strides, truth, labels.clamp(min=0), used & ~ignore
    )
    served = index >= 0
    label = labels.gather(1, index.clamp(min=0))
    wanted = functional.one_hot(label.clamp(min=0), logits.shape[-1]) * (target * served)[..., None]
    hidden = used & ignore
    within = (centres[None, None] >= truth[:, :, None, :2]) & (centres[None, None] <= truth[:, :, None, 2:])
    exempt = (within.all(-1) & hidden[..., None]).any(1) & ~served
    total = wanted.sum().clamp(min=1.0)
    score_loss = (
        functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(-1) * ~exempt
    ).sum() / total
    chosen = truth.gather(1, index.clamp(min=0)[..., None].expand(-1, -1, 4))[served]
    box_loss = ((1 - complete_iou(boxes[served], chosen)) * target[served]).sum() / total
    return BOX_WEIGHT * box_loss + SCORE_WEIGHT * score_loss, {"box": box_loss.detach(), "score": score_loss.detach()}

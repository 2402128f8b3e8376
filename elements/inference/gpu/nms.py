"""Non-maximum suppression of a whole batch on a torch device."""

from __future__ import annotations

import torch


def suppress(boxes: torch.Tensor, class_ids: torch.Tensor, counts: torch.Tensor, iou: torch.Tensor) -> torch.Tensor:
    """Greedy suppression within each class, in plain torch: for the CPU, and where Triton is missing.

    The greedy answer is the one set that agrees with itself: a box stays if no better box that stays overlaps it. It
    is reached by asking again and again, each time with at least one more box settled, so a few rounds usually do.

    Args:
        boxes: (B, K, 4) xyxy, best first.
        class_ids: (B, K).
        counts: (B,) how many of the first rows count.
        iou: scalar: a box goes if it overlaps a better one of its class by more than this.

    Returns:
        (B, K) bool, the rows that stay.
    """
    corner, opposite = boxes[..., :2], boxes[..., 2:]
    shared = torch.minimum(opposite[:, :, None], opposite[:, None]) - torch.maximum(corner[:, :, None], corner[:, None])
    shared = shared.clamp_(min=0).prod(dim=-1)  # (B, K, K)
    area = (opposite - corner).prod(dim=-1)
    union = (area[:, :, None] + area[:, None] - shared).clamp_(min=torch.finfo(torch.float32).tiny)
    beats = (shared / union > iou) & (class_ids[:, :, None] == class_ids[:, None])
    beats = beats.triu_(diagonal=1)  # [better, worse]
    valid = torch.arange(boxes.shape[1], device=boxes.device) < counts[:, None]
    kept = valid
    while True:
        settled = valid & ~(beats & kept[:, :, None]).any(dim=1)
        if torch.equal(settled, kept):
            return kept
        kept = settled

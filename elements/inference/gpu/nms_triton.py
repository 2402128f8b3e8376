"""Non-maximum suppression as one kernel: one program per frame, no answer from the host needed in between."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def suppress_fused(
    boxes: torch.Tensor, class_ids: torch.Tensor, counts: torch.Tensor, iou: torch.Tensor
) -> torch.Tensor:
    """The same as `elements.inference.gpu.nms.suppress`, which says what the arguments are."""
    batch, rows, _ = boxes.shape
    kept = torch.empty((batch, rows), dtype=torch.bool, device=boxes.device)
    block = triton.next_power_of_2(rows)
    _kernel[(batch,)](
        boxes.contiguous(),
        class_ids.to(torch.int32).contiguous(),
        counts.to(torch.int32).contiguous(),
        iou,
        kept,
        rows,
        block=block,
        num_warps=min(16, max(1, block // 64)),
    )
    return kept


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(boxes, class_ids, counts, iou, kept, rows, block: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
    """Walk one frame's boxes, best first; each that still stands takes those that overlap it."""
    frame = tl.program_id(0)
    boxes += frame * rows * 4
    class_ids += frame * rows
    place = tl.arange(0, block)
    there = place < rows
    x1 = tl.load(boxes + place * 4, mask=there, other=0.0)
    y1 = tl.load(boxes + place * 4 + 1, mask=there, other=0.0)
    x2 = tl.load(boxes + place * 4 + 2, mask=there, other=0.0)
    y2 = tl.load(boxes + place * 4 + 3, mask=there, other=0.0)
    own_class = tl.load(class_ids + place, mask=there, other=-1)
    area = (x2 - x1) * (y2 - y1)
    count = tl.minimum(tl.load(counts + frame), rows)
    limit = tl.load(iou)
    alive = (place < count).to(tl.int32)
    for best in range(count):
        stands = tl.max(tl.where(place == best, alive, 0), axis=0)
        bx1 = tl.load(boxes + best * 4)
        by1 = tl.load(boxes + best * 4 + 1)
        bx2 = tl.load(boxes + best * 4 + 2)
        by2 = tl.load(boxes + best * 4 + 3)
        across = tl.maximum(tl.minimum(x2, bx2) - tl.maximum(x1, bx1), 0.0)
        down = tl.maximum(tl.minimum(y2, by2) - tl.maximum(y1, by1), 0.0)
        shared = across * down
        union = tl.maximum(area + (bx2 - bx1) * (by2 - by1) - shared, 1.1754944e-38)
        beaten = (shared / union > limit) & (own_class == tl.load(class_ids + best)) & (place > best) & (stands > 0)
        alive = tl.where(beaten, 0, alive)
    tl.store(kept + frame * rows + place, alive > 0, mask=there)

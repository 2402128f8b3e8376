"""4:2:0 pictures on a torch device as RGB, at their own size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from elements.inference.frame import DevicePlanes
from elements.inference.gpu import resampling
from elements.inference.gpu.letterbox import TABLE_COLUMNS, fill_table, has_triton
from elements.inference.letterbox import Size, place_all
from elements.inference.preprocess import Preprocess

_UNCHANGED = Preprocess(letterbox="stretch", scale="0-255")


def to_rgb(pictures: Sequence[DevicePlanes]) -> list[torch.Tensor]:
    """Each as (height, width, 3) uint8 RGB, queued on the current stream: the letterbox to the picture's own size.

    One kernel for all of one size. The pictures are on one device.
    """
    if not has_triton():
        return [resampling.to_rgb(resampling.tensors_of(one), one.matrix, (one.width, one.height)) for one in pictures]
    by_size: dict[Size, list[int]] = {}
    for number, one in enumerate(pictures):
        by_size.setdefault((one.width, one.height), []).append(number)
    made: dict[int, torch.Tensor] = {}
    for size, numbers in by_size.items():
        made |= zip(numbers, _to_rgb([pictures[number] for number in numbers], size), strict=True)
    return [made[number] for number in range(len(pictures))]


def _to_rgb(pictures: list[DevicePlanes], size: Size) -> torch.Tensor:
    """(N, height, width, 3) of pictures of one size."""
    from elements.inference.gpu.letterbox_triton import letterbox_fused

    count, device = len(pictures), torch.device("cuda", pictures[0].device)
    out = torch.empty((count, size[1], size[0], 3), dtype=torch.uint8, device=device)
    table = torch.zeros((count, TABLE_COLUMNS), dtype=torch.int64)
    packed = fill_table(pictures, place_all(np.array([size] * count), size, "stretch"), table.numpy(), device)
    letterbox_fused(table.to(device), packed, count, out.permute(0, 3, 1, 2), _UNCHANGED)
    return out

"""4:2:0 pictures on a torch device as RGB, at their own size."""

from __future__ import annotations

import numpy as np
import torch

from elements.inference.frame import DevicePlanes
from elements.inference.gpu import resampling
from elements.inference.gpu.letterbox import TABLE_COLUMNS, fill_table, has_triton
from elements.inference.letterbox import place_all
from elements.inference.preprocess import Preprocess

_UNCHANGED = Preprocess(letterbox="stretch", scale="0-255")


def to_rgb(planes: DevicePlanes) -> torch.Tensor:
    """(height, width, 3) uint8 RGB, queued on the current stream: the letterbox to the picture's own size."""
    device, size = torch.device("cuda", planes.device), (planes.width, planes.height)
    if not has_triton():
        return resampling.to_rgb(resampling.tensors_of(planes), planes.matrix, size)
    from elements.inference.gpu.letterbox_triton import letterbox_fused

    out = torch.empty((1, planes.height, planes.width, 3), dtype=torch.uint8, device=device)
    table = torch.zeros((1, TABLE_COLUMNS), dtype=torch.int64)
    packed = fill_table([planes], place_all(np.array([size]), size, "stretch"), table.numpy(), device)
    letterbox_fused(table.to(device), packed, 1, out.permute(0, 3, 1, 2), _UNCHANGED)
    return out[0]

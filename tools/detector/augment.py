"""Augmentation of a batch on the GPU: flip, scale and shift, colour, noise, lost sharpness."""

import torch
from torch import Tensor
from torch.nn import functional

from tools.detector.pictures import MIN_PIXELS


def augment(pictures: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Changes each picture at random and moves its boxes along.

    Args:
        pictures: (B, 3, H, W) in 0..1.
        rows: (B, M, 6) truth rows as `pictures.truth_rows` gives them.

    Returns:
        Pictures and rows of the same shapes; what has left the picture is unused, what is cut or small is ignored.
    """
    pictures, rows = _move(pictures, rows)
    return _disturb(_recolour(pictures)), rows


def _uniform(count: int, low: float, high: float, device: torch.device) -> Tensor:
    return torch.empty(count, device=device).uniform_(low, high)


def _move(pictures: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    batch, _, height, width = pictures.shape
    device = pictures.device
    moved = torch.rand(batch, device=device) < 0.7
    zoom = torch.where(moved, torch.exp(_uniform(batch, -0.45, 0.45, device)), torch.ones(batch, device=device))
    stretch = torch.where(moved, torch.exp(_uniform(batch, -0.08, 0.08, device)), torch.ones(batch, device=device))
    flip = torch.where(torch.rand(batch, device=device) < 0.5, -1.0, 1.0)
    room = torch.clamp((zoom - 1).abs(), min=0.05) * moved
    shift_x, shift_y = _uniform(batch, -1, 1, device) * room, _uniform(batch, -1, 1, device) * room
    zoom_x, zoom_y = zoom * stretch * flip, zoom
    # Normalised coordinates: out = in * zoom + shift; grid_sample wants the inverse.
    inverse = torch.zeros(batch, 2, 3, device=device)
    inverse[:, 0, 0], inverse[:, 0, 2] = 1 / zoom_x, -shift_x / zoom_x
    inverse[:, 1, 1], inverse[:, 1, 2] = 1 / zoom_y, -shift_y / zoom_y
    grid = functional.affine_grid(inverse, [batch, 3, height, width], align_corners=False)
    grey = 114 / 255
    result = (
        functional.grid_sample(pictures - grey, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + grey
    )

    def along(values: Tensor, size: int, scale: Tensor, shift: Tensor) -> Tensor:
        return (((values / size * 2 - 1) * scale[:, None] + shift[:, None]) + 1) / 2 * size

    x1, x2 = along(rows[..., 0], width, zoom_x, shift_x), along(rows[..., 2], width, zoom_x, shift_x)
    y1, y2 = along(rows[..., 1], height, zoom_y, shift_y), along(rows[..., 3], height, zoom_y, shift_y)
    whole = torch.stack([torch.minimum(x1, x2), y1, torch.maximum(x1, x2), y2], -1)
    limit = torch.tensor([width, height, width, height], device=device, dtype=whole.dtype)
    cut = torch.minimum(whole.clamp(min=0), limit)
    size = (cut[..., 2:] - cut[..., :2]).clamp(min=0)
    kept = size.prod(-1) / (whole[..., 2:] - whole[..., :2]).prod(-1).clamp(min=1e-6)
    label = torch.where((kept > 0.02) & (size.amin(-1) > 1), rows[..., 4], torch.full_like(rows[..., 4], -1))
    ignore = (rows[..., 5] > 0) | (kept < 0.4) | (size[..., 1] < MIN_PIXELS)
    return result, torch.cat([cut, label[..., None], ignore[..., None].to(cut.dtype)], -1)


def _recolour(pictures: Tensor) -> Tensor:
    batch, device = len(pictures), pictures.device

    def per_picture(low: float, high: float, channels: int = 1) -> Tensor:
        return _uniform(batch * channels, low, high, device).view(batch, channels, 1, 1)

    grey = pictures.mean(1, keepdim=True)
    pictures = grey + (pictures - grey) * per_picture(0.4, 1.5)
    pictures = pictures * per_picture(0.65, 1.4) * per_picture(0.92, 1.08, 3)
    middle = pictures.mean((1, 2, 3), keepdim=True)
    pictures = (middle + (pictures - middle) * per_picture(0.7, 1.25)).clamp(1e-4, 1)
    return pictures ** torch.exp(per_picture(-0.25, 0.25))


def _disturb(pictures: Tensor) -> Tensor:
    batch, device = len(pictures), pictures.device
    coarse = functional.interpolate(
        functional.avg_pool2d(pictures, 2), scale_factor=2.0, mode="bilinear", align_corners=False
    )
    amount = (_uniform(batch, -1.0, 0.8, device).clamp(min=0)).view(batch, 1, 1, 1)
    pictures = pictures * (1 - amount) + coarse * amount
    noise = _uniform(batch, -0.02, 0.03, device).clamp(min=0).view(batch, 1, 1, 1)
    return (pictures + torch.randn_like(pictures) * noise).clamp(0, 1)

"""A detector the size of the smallest YOLOs (3.2 million weights, 8.7 GFLOPs at 640x640), with random weights.

It is for timing: convolutions, shapes and head are those of the field (CSP blocks, pyramid pooling, a path-aggregation
neck, three strides, box edges as distributions), written here from their descriptions.
"""

from __future__ import annotations

import math

import torch
from torch import nn

CLASSES = 80
BINS = 16
STRIDES = (8, 16, 32)


def conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> nn.Sequential:
    """Convolution and SiLU; batch norm is taken as folded into the weights."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), nn.SiLU(inplace=True))


class Csp(nn.Module):
    """Cross-stage block: half of the channels pass through ``depth`` bottlenecks, all stages are joined."""

    def __init__(self, inputs: int, outputs: int, depth: int, shortcut: bool = True) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = conv(inputs, outputs)
        self.leave = conv((2 + depth) * half, outputs)
        self.steps = nn.ModuleList(nn.Sequential(conv(half, half, 3), conv(half, half, 3)) for _ in range(depth))
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for step in self.steps:
            parts.append(parts[-1] + step(parts[-1]) if self.shortcut else step(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Pooling(nn.Module):
    """Pyramid pooling: three max pools in a row, joined."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter, self.leave = conv(channels, channels // 2), conv(channels * 2, channels)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Detector(nn.Module):
    """(B, 3, H, W) to (B, 84, A): cx, cy, w, h in input pixels and 80 sigmoid scores."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.to8 = nn.Sequential(
            conv(3, 16, 3, 2), conv(16, 32, 3, 2), Csp(32, 32, 1), conv(32, 64, 3, 2), Csp(64, 64, 2)
        )
        self.to16 = nn.Sequential(conv(64, 128, 3, 2), Csp(128, 128, 2))
        self.to32 = nn.Sequential(conv(128, 256, 3, 2), Csp(256, 256, 1), Pooling(256))
        self.up = nn.Upsample(scale_factor=2)
        self.up16, self.up8 = Csp(384, 128, 1, False), Csp(192, 64, 1, False)
        self.down16, self.down32 = conv(64, 64, 3, 2), conv(128, 128, 3, 2)
        self.out16, self.out32 = Csp(192, 128, 1, False), Csp(384, 256, 1, False)
        self.boxes = nn.ModuleList(self._branch(c, 64, 4 * BINS) for c in (64, 128, 256))
        self.scores = nn.ModuleList(self._branch(c, 80, CLASSES) for c in (64, 128, 256))
        for branch, stride in zip(self.scores, STRIDES, strict=True):
            bias = math.log(5 / CLASSES / (640 / stride) ** 2)  # few detections, as in a trained network
            nn.init.constant_(branch[-1].bias, bias)  # type: ignore[index, union-attr, arg-type]
        self.bins: torch.Tensor
        self.register_buffer("bins", torch.arange(float(BINS)))
        self.grid: tuple[torch.Tensor, torch.Tensor] | None = None
        self.grid_of: tuple[object, ...] = ()

    @staticmethod
    def _branch(inputs: int, inner: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(conv(inputs, inner, 3), conv(inner, inner, 3), nn.Conv2d(inner, outputs, 1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        p8 = self.to8(image)
        p16 = self.to16(p8)
        p32 = self.to32(p16)
        n16 = self.up16(torch.cat([self.up(p32), p16], 1))
        n8 = self.up8(torch.cat([self.up(n16), p8], 1))
        n16 = self.out16(torch.cat([self.down16(n8), n16], 1))
        n32 = self.out32(torch.cat([self.down32(n16), p32], 1))
        levels = (n8, n16, n32)
        raw = torch.cat([b(level).flatten(2) for b, level in zip(self.boxes, levels, strict=True)], 2)
        scores = torch.cat([s(level).flatten(2) for s, level in zip(self.scores, levels, strict=True)], 2)
        cells, strides = self._cells(levels, image.dtype)
        edges = raw.unflatten(1, (4, BINS)).softmax(2)
        edges = (edges * self.bins[:, None]).sum(2)  # left, top, right, bottom in cells
        near, far = edges[:, :2], edges[:, 2:]
        boxes = torch.cat([cells + (far - near) / 2, near + far], 1) * strides
        return torch.cat([boxes, scores.sigmoid()], 1)

    def _cells(self, levels: tuple[torch.Tensor, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Cell centres (2, A) and strides (A,); kept while the input's shape stays, as heads in the field do."""
        key = (*(level.shape for level in levels), dtype)
        if self.grid is None or self.grid_of != key:
            centers, strides = [], []
            for level, stride in zip(levels, STRIDES, strict=True):
                height, width = level.shape[2:]
                y, x = torch.meshgrid(
                    torch.arange(height, device=level.device), torch.arange(width, device=level.device), indexing="ij"
                )
                centers.append(torch.stack([x, y]).flatten(1) + 0.5)
                strides.append(torch.full((height * width,), float(stride), device=level.device))
            self.grid, self.grid_of = (torch.cat(centers, 1).to(dtype), torch.cat(strides).to(dtype)), key
        return self.grid

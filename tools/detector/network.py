"""A small anchor-free detector with three output levels.

Plain 3x3 convolutions with ReLU, because ONNX Runtime fuses the two and runs them fastest on a CPU for their accuracy.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

STRIDES = (8, 16, 32)


class Conv(nn.Sequential):
    """Convolution, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.03),
            nn.ReLU(inplace=True),
        )


class Residual(nn.Module):
    """Two 3x3 convolutions around which the input is carried."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(Conv(channels, channels), Conv(channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, as large as `x`."""
        return x + self.body(x)


class Stage(nn.Module):
    """Cross-stage partial block: `hidden` of the channels go through residuals, all intermediate results are merged."""

    def __init__(self, inputs: int, outputs: int, hidden: int, depth: int = 1) -> None:
        super().__init__()
        self.split = [outputs - hidden, hidden]
        self.enter = Conv(inputs, outputs, 1)
        self.blocks = nn.ModuleList(Residual(hidden) for _ in range(depth))
        self.leave = Conv(outputs + depth * hidden, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The merged parts, as large as `x` but for the channels."""
        parts = list(self.enter(x).split(self.split, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class Context(nn.Module):
    """Three stacked poolings so that the coarsest level sees most of the picture."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = Conv(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.leave = Conv(channels * 2, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """`x` with what its surroundings hold."""
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class Detector(nn.Module):
    """Backbone, top-down and bottom-up neck, one light head per level.

    Input: (B, 3, H, W) RGB in 0..1, H and W multiples of 32.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.level8 = nn.Sequential(Conv(3, 16, 3, 2), Conv(16, 32, 3, 2), Conv(32, 48, 3, 2), Stage(48, 48, 32))
        self.level16 = nn.Sequential(Conv(48, 96, 3, 2), Stage(96, 96, 48))
        self.level32 = nn.Sequential(Conv(96, 128, 3, 2), Stage(128, 128, 64), Context(128))
        self.from32 = Conv(128, 64, 1)
        self.down16 = Stage(64 + 96, 80, 48)
        self.from16 = Conv(80, 32, 1)
        self.down8 = Stage(32 + 48, 48, 32)
        self.to16 = Conv(48, 48, 3, 2)
        self.up16 = Stage(48 + 80, 80, 32)
        self.to32 = Conv(80, 80, 3, 2)
        self.up32 = Stage(80 + 128, 128, 64)
        widths = ((48, 32), (80, 64), (128, 80))
        self.heads = nn.ModuleList(
            nn.Sequential(Conv(width, inner), nn.Conv2d(inner, 4 + classes, 1)) for width, inner in widths
        )
        for head in self.heads:
            nn.init.constant_(head[1].bias[4:], -4.6)  # scores start near 0.01, the share of cells with an object

    def forward(self, images: Tensor) -> Tensor:
        """Raw outputs (B, A, 4 + classes) of all cells, finest level first, row by row."""
        p8 = self.level8(images)
        p16 = self.level16(p8)
        p32 = self.level32(p16)
        n16 = self.down16(torch.cat([functional.interpolate(self.from32(p32), scale_factor=2.0), p16], 1))
        n8 = self.down8(torch.cat([functional.interpolate(self.from16(n16), scale_factor=2.0), p8], 1))
        m16 = self.up16(torch.cat([self.to16(n8), n16], 1))
        m32 = self.up32(torch.cat([self.to32(m16), p32], 1))
        outputs = [head(level).flatten(2) for head, level in zip(self.heads, (n8, m16, m32), strict=True)]
        return torch.cat(outputs, 2).transpose(1, 2)


def cells(height: Tensor | int, width: Tensor | int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Centres (A, 2) in pixels and strides (A, 1) of the cells for an input of that size."""
    centres, strides = [], []
    for stride in STRIDES:
        rows = (torch.arange(height // stride, device=device, dtype=torch.float32) + 0.5) * stride
        columns = (torch.arange(width // stride, device=device, dtype=torch.float32) + 0.5) * stride
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        centres.append(torch.stack([x, y], -1).reshape(-1, 2))
        strides.append(torch.full_like(x, stride).reshape(-1, 1))
    return torch.cat(centres), torch.cat(strides)


def decode(raw: Tensor, centres: Tensor, strides: Tensor) -> Tensor:
    """Boxes (B, A, 4) as x, y of the centre, width and height in pixels."""
    middle = centres + raw[..., :2] * strides
    size = raw[..., 2:4].clamp(max=4.0).exp() * strides
    return torch.cat([middle, size], -1)


class Exported(nn.Module):
    """The detector with the raw YOLOv8 output layout: (B, 4 + classes, A), xywh in input pixels and scores in 0..1."""

    def __init__(self, detector: Detector) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, images: Tensor) -> Tensor:
        """Output (B, 4 + classes, A) for images (B, 3, H, W)."""
        raw = self.detector(images)
        centres, strides = cells(images.shape[2], images.shape[3], images.device)
        return torch.cat([decode(raw, centres, strides), raw[..., 4:].sigmoid()], -1).transpose(1, 2)

"""The finders of `tests.onnx_models` as torch modules, and frames whose pixels are torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from elements.inference.frame import ArrayFrame, Image
from tests.pictures import SCORE

LAYOUTS = ("yolov5", "yolov8", "yolov8-transposed", "yolox", "yolox-decoded", "end2end")


class Finder(torch.nn.Module):
    """Finds the pure red, green and blue rectangles and answers in ``layout``; see `tests.onnx_models`.

    It computes in float32 whatever its input is, and answers in the input's type. Like real heads it keeps what depends
    on the input's shape from call to call, and drops it when another shape comes.
    """

    def __init__(self, layout: str = "yolov8", broken_rows: bool = False) -> None:
        super().__init__()
        self.layout = layout
        self.broken_rows = broken_rows
        self.score = torch.nn.Parameter(torch.tensor(SCORE))
        self.cells: torch.Tensor | None = None
        self.register_buffer("first_cells", torch.tensor([[0.0, 0], [1, 0], [2, 0]]), persistent=False)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        dtype = image.dtype
        image = image.float()
        batch, _, height, width = image.shape
        if self.layout.startswith("yolox"):
            image = image.flip(1) / 255
        color = colors(image)
        across, down = color.amax(2), color.amax(3)
        center_x, box_w = self._extent(across)
        center_y, box_h = self._extent(down)
        score = self.score.float() * ((box_w > 2) & (box_h > 2)).float()
        rows = self._rows(torch.stack([center_x, center_y, box_w, box_h], 2), score[..., None])
        if self.broken_rows:
            broken = torch.full((batch, 2, rows.shape[2]), float("nan"), device=rows.device)
            broken[:, 1] = 0.95
            broken[:, 1, :4] = float("inf")
            if self.layout == "end2end":
                broken[:, 1, 5] = 0
            rows = torch.cat([rows, broken], 1)
        count = 300 if self.layout == "end2end" else width * height * 21 // 1024 * (3 if self.layout == "yolov5" else 1)
        if self.cells is None or self.cells.shape != (batch, count - rows.shape[1], rows.shape[2]):
            self.cells = torch.zeros((batch, count - rows.shape[1], rows.shape[2]), device=rows.device)
        rows = torch.cat([rows, self.cells], 1)
        return (rows.transpose(1, 2) if self.layout == "yolov8" else rows).to(dtype)

    @staticmethod
    def _extent(profile: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Centre and extent of (B, 3, N) profiles."""
        total = profile.sum(2)
        place = torch.arange(profile.shape[2], device=profile.device) + 0.5
        return (profile * place).sum(2) / total.clamp(min=1e-3), total

    def _rows(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        one_hot = torch.eye(3, device=boxes.device).expand(boxes.shape[0], 3, 3)
        if self.layout.startswith("yolov8"):
            return torch.cat([boxes, scores * one_hot], 2)
        center, size = boxes[..., :2], boxes[..., 2:]
        if self.layout == "end2end":
            number = torch.arange(3.0, device=boxes.device).expand(boxes.shape[0], 3)[..., None]
            return torch.cat([center - size / 2, center + size / 2, scores, number], 2)
        if self.layout == "yolox":  # row k stands in cell (k, 0) of the grid of stride 8
            center = center / 8 - self.first_cells
            size = (size / 8).clamp(min=1e-3).log()
        return torch.cat([center, size, scores, one_hot], 2)


class NanLater(Finder):
    """A finder whose numbers are NaN from its 30th run on, also in a CUDA graph."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(()))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        self.runs.add_(1)
        one = 1 + 0 * (29.5 - self.runs).log()  # NaN where there is no logarithm
        return super().forward(image) * one.to(image.dtype)


class FixedFinder(Finder):
    """A finder without anything kept, which can be traced and exported."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        self.cells = None
        result = super().forward(image)
        self.cells = None
        return result


class MaskFinder(FixedFinder):
    """A finder whose masks are the shapes themselves: three prototypes, the three colours."""

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        rows = super().forward(image)
        planes = torch.nn.functional.avg_pool2d(colors(image.float()), 4) - 0.5
        identity = torch.eye(3, dtype=rows.dtype, device=rows.device).expand(len(rows), 3, 3)
        own = torch.nn.functional.pad(identity, (0, rows.shape[2] - 3))
        return torch.cat([rows, own], 1), planes.to(rows.dtype)


class MostColor(torch.nn.Module):
    """A classifier: logits for red, green and blue, by how much of the input they cover."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return (colors(image.float()).mean((2, 3)) * 20).to(image.dtype)


def colors(image: torch.Tensor) -> torch.Tensor:
    """(B, 3, H, W): how red, green and blue the pixels of an RGB 0-1 ``image`` are, 0 for greys."""
    others = torch.maximum(image.roll(-1, 1), image.roll(1, 1))
    return ((image - others - 0.25) / 0.5).clamp(0, 1)


class Crowd(torch.nn.Module):
    """600 boxes side by side in each frame, more than there is room for at first."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        number = torch.arange(8400, device=image.device)
        boxes = torch.stack([number % 60 * 10 + 5, number // 60 * 10 + 5, 0 * number + 8, 0 * number + 8])
        scores = torch.where(number < 600, 0.9, 0.0)[None]
        output = torch.cat([boxes, scores]).to(image.dtype) + 0 * image.mean()
        return output.expand(len(image), 5, 8400)


class Waiting(Finder):
    """A finder that looks at a value while it runs, so it cannot be captured in a CUDA graph."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        assert float(image.amax()) <= 300
        return super().forward(image)


class TensorFrame(ArrayFrame):
    """A frame whose pixels are on a torch device, with padded rows as a decoder gives them."""

    __slots__ = ("tensor",)

    def __init__(self, pixels: Image, device: str = "cpu", source_id: int = 0, pitch: int = 256) -> None:
        super().__init__(pixels, source_id)
        self.tensor = padded(pixels, device, pitch)

    def resized(self, width: int, height: int, out: Image | None = None, region: Any = None) -> Image:
        raise AssertionError("pixels must not go through the host")


def padded(pixels: Image, device: str, pitch: int = 256) -> torch.Tensor:
    """(H, W, 3) view of memory whose rows are a multiple of ``pitch`` bytes long."""
    height, width, _ = pixels.shape
    row = -(-width * 3 // pitch) * pitch
    memory = torch.zeros((height, row), dtype=torch.uint8, device=device)
    memory[:, : width * 3] = torch.from_numpy(np.ascontiguousarray(pixels)).to(device).reshape(height, width * 3)
    return memory.as_strided((height, width, 3), (row, 3, 1))

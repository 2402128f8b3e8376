"""From a network's output to one packed tensor of detections per batch, on the device and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elements.inference.decoders import Decoder
from elements.inference.decoders.base import looks_normalized
from elements.inference.gpu.decode import read_rows
from elements.inference.letterbox import Size
from elements.metadata.detections import Detections, FloatArray
from elements.metadata.placement import Placement

# Packed: (B, 1 + K, 6) float32. Row 0: number of candidates, rows that are no numbers, unused. Others: xyxy in the
# model's own unit, score (-1: suppressed or unused), class; best first.
COLUMNS = 6
SCORE, CLASS = 4, 5

Suppress = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Detector:
    """Decodes, suppresses and packs.

    Attributes:
        layout: name of the output's layout.
        suppress: how overlaps are suppressed, ``None`` if the model did it.
        thresholds: (2,) float32 on the device: confidence and iou.
        allowed: (C,) bool on the device: class numbers to report; ``None``: all.
    """

    layout: str
    suppress: Suppress | None
    thresholds: torch.Tensor
    allowed: torch.Tensor | None

    def pack(self, output: torch.Tensor, size: Size, most: int) -> torch.Tensor:
        """The packed detections of ``output`` (B, D1, D2) for a ``size`` input, the best ``most`` candidates a frame.

        Nothing here waits for the host (with a fused ``suppress``), so it can be captured in a CUDA graph.
        """
        confidence, iou = self.thresholds.unbind()
        rows = read_rows(self.layout, output, size, confidence)
        candidate = (rows.scores >= confidence) & ~rows.broken
        finite = rows.scores.isfinite() & rows.boxes.isfinite().all(dim=2)
        invalid = (rows.broken | (candidate & ~finite)).sum(dim=1)
        candidate &= finite
        if self.allowed is not None:
            known = rows.class_ids.clamp(0, len(self.allowed) - 1)
            candidate &= self.allowed[known] & (known == rows.class_ids)
        ranked = torch.where(candidate, rows.scores, -1.0)
        scores, index = ranked.sort(dim=1, descending=True, stable=True)
        scores, index = scores[:, :most], index[:, :most]
        boxes = rows.boxes.gather(1, index[..., None].expand(-1, -1, 4))
        class_ids = rows.class_ids.gather(1, index)
        counts = candidate.sum(dim=1)
        if self.suppress is not None:
            scores = torch.where(self.suppress(boxes, class_ids, counts, iou), scores, -1.0)
        found = torch.cat([boxes, scores[..., None], class_ids[..., None].float()], dim=2)
        header = torch.zeros((len(found), 1, COLUMNS), dtype=torch.float32, device=found.device)
        header[:, 0, 0] = counts
        header[:, 0, 1] = invalid
        return torch.cat([header, found], dim=1)


def most_candidates(packed: FloatArray) -> int:
    """How many candidates the fullest frame had, whether or not they all fitted."""
    return int(packed[:, 0, 0].max(initial=0))


def unpack(
    packed: FloatArray, placements: Sequence[Placement], size: Size, decoder: Decoder
) -> list[tuple[Detections, int]]:
    """Detections in source pixels, cut at the frame's edges, and the number of broken rows, for each frame.

    What lies in the padding alone is no object of the frame.

    Args:
        packed: (N, 1 + K, 6) on the host, as `Detector.pack` makes it.
        placements: where each frame's picture lies in the input.
        size: (width, height) of the network's input.
        decoder: knows the unit of the boxes, or learns it here.
    """
    frames, places = np.nonzero(packed[:, 1:, SCORE] >= 0)
    found = packed[frames, places + 1]
    boxes = found[:, :4]
    if decoder.normalized is None:
        decoder.normalized = looks_normalized(boxes)
    if decoder.normalized:
        boxes = boxes * np.array(size * 2, np.float32)
    scale = np.array([place.scale * 2 for place in placements], np.float32)
    offset = np.array([(place.left, place.top) * 2 for place in placements], np.float32)
    limit = np.array([(place.source_width, place.source_height) * 2 for place in placements], np.float32)
    boxes = np.clip((boxes - offset[frames]) / scale[frames], 0, limit[frames])
    inside = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    boxes, found, frames = boxes[inside], found[inside], frames[inside]
    ends = np.bincount(frames, minlength=len(placements)).cumsum()
    class_ids = found[:, CLASS].astype(np.int64)
    return [
        (Detections(boxes[start:end], found[start:end, SCORE], class_ids[start:end]), int(header[1]))
        for start, end, header in zip([0, *ends[:-1]], ends, packed[:, 0], strict=True)
    ]

"""From a network's outputs to one packed tensor per batch, on the device, and from that to detections on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elements.inference.decoders import Candidates, Decoder
from elements.inference.decoders.rows import looks_normalized
from elements.inference.decoders.whole import WholePicture
from elements.inference.finish import finish, finish_whole, to_source
from elements.inference.gpu.decode import can_read, read_rows
from elements.inference.letterbox import Size
from elements.metadata.batch_detections import BatchDetections
from elements.metadata.detections import Detections, FloatArray
from elements.metadata.placement import Placements

# Packed, for each frame: 1 + K rows of 6 + E numbers, and after them the mask prototypes, if any. Row 0: number of
# candidates, rows that are no numbers, K, unused. Others: xyxy in the model's own unit, score (-1: suppressed or
# unused), class, what the task adds; best first.
COLUMNS = 6
COUNT, INVALID, ROOM = 0, 1, 2
SCORE, CLASS = 4, 5

Suppress = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Found = tuple[Sequence[Detections], int]
Shapes = Sequence[tuple[int, ...]]
Thresholds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Detector:
    """Decodes on the device, suppresses upright boxes there, and packs; rotated boxes are suppressed on the host.

    Attributes:
        decoder: knows the layout, and the unit of the boxes or learns it here.
        suppress: how overlaps are suppressed.
        thresholds: (2,) float32 on the device: confidence and iou.
        allowed: (C,) bool on the device: class numbers to report; ``None``: all.
    """

    decoder: Decoder
    suppress: Suppress
    thresholds: torch.Tensor
    allowed: torch.Tensor | None

    @staticmethod
    def fits(decoder: Decoder) -> bool:
        """Whether ``decoder``'s layout can be read on the device."""
        return can_read(decoder.layout)

    def pack(self, outputs: Sequence[torch.Tensor], size: Size, most: int) -> torch.Tensor:
        """(B, P) float32: the best ``most`` candidates of each frame, for a ``size`` input.

        Nothing here waits for the host (with a fused ``suppress``), so it can be captured in a CUDA graph.
        """
        confidence, iou = self.thresholds.unbind()
        reading = self.decoder.reading
        rows, extras = read_rows(self.decoder.layout, outputs[0], size, confidence, reading.task, reading.extras)
        candidate = (rows.scores >= confidence) & ~rows.broken
        finite = rows.scores.isfinite() & rows.boxes.isfinite().all(dim=2)
        if reading.extras:
            finite &= extras.isfinite().all(dim=2)
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
        if self.decoder.suppress and reading.task != "obb":
            scores = torch.where(self.suppress(boxes, class_ids, counts, iou), scores, -1.0)
        columns = [boxes, scores[..., None], class_ids[..., None].float()]
        if reading.extras:
            columns.append(extras.gather(1, index[..., None].expand(-1, -1, reading.extras)).float())
        found = torch.cat(columns, dim=2)
        header = torch.zeros((len(found), 1, found.shape[2]), dtype=torch.float32, device=found.device)
        header[:, 0, COUNT] = counts
        header[:, 0, INVALID] = invalid
        header[:, 0, ROOM] = found.shape[1]
        return torch.cat([part.flatten(1) for part in (header, found, *(o.float() for o in outputs[1:]))], dim=1)

    def overflow(self, packed: FloatArray) -> int:
        """How many candidates the fullest frame had if they did not all fit, else 0."""
        fullest = int(packed[:, COUNT].max(initial=0))
        return fullest if fullest > packed[:, ROOM].min(initial=np.inf) else 0

    def unpack(
        self, packed: FloatArray, shapes: Shapes, placements: Placements, size: Size, thresholds: Thresholds
    ) -> Found:
        """Detections of each frame in source pixels, cut at the frame's edges, and the number of broken rows.

        Args:
            packed: (N, P) on the host, as `pack` makes it.
            shapes: of the outputs, without the batch.
            placements: where each frame's picture lies in the input.
            size: (width, height) of the network's input.
            thresholds: confidence and iou.
        """
        if not len(packed):
            return [], 0
        columns = COLUMNS + self.decoder.reading.extras
        end = (1 + int(packed[0, ROOM])) * columns
        rows = packed[:, :end].reshape(len(packed), -1, columns)[:, 1:]
        rows = rows[:, : int(packed[:, COUNT].max())]
        invalid = int(packed[:, INVALID].sum())
        if self.decoder.task == "detect":
            return _boxes(rows, self.decoder, placements, size), invalid
        more = packed[:, end:].reshape(len(packed), *(shapes[1] if len(shapes) > 1 else (0,)))
        found = []
        for frame, prototypes, placement in zip(rows, more, placements, strict=True):
            best = frame[frame[:, SCORE] >= 0]
            class_ids = best[:, CLASS].astype(np.int64)
            candidates = Candidates(best[:, :4], best[:, SCORE], class_ids, 0, best[:, COLUMNS:])
            candidates = self.decoder.in_pixels(candidates, size)
            outputs = (frame, prototypes)
            if self.decoder.task == "obb":
                found.append(finish(candidates, outputs, self.decoder, size, placement, thresholds[1]))
            else:
                found.append(to_source(candidates, outputs, self.decoder, size, placement))
        return found, invalid


@dataclass(frozen=True, slots=True)
class HostDetector:
    """Packs whole outputs, for layouts that are decoded on the host. Has the methods of `Detector`.

    Attributes:
        decoder: decodes.
        keep: class numbers to report; empty: all.
    """

    decoder: Decoder
    keep: frozenset[int]

    def pack(self, outputs: Sequence[torch.Tensor], size: Size, most: int) -> torch.Tensor:
        """(B, P) float32: all numbers."""
        return torch.cat([output.flatten(1).float() for output in outputs], dim=1)

    def overflow(self, packed: FloatArray) -> int:
        """0: everything fits."""
        return 0

    def unpack(
        self, packed: FloatArray, shapes: Shapes, placements: Placements, size: Size, thresholds: Thresholds
    ) -> Found:
        """See `Detector.unpack`."""
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(packed, ends[:-1], axis=1)
        outputs = [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
        if isinstance(self.decoder, WholePicture):
            return finish_whole(self.decoder.said(outputs[0]), placements.sources, thresholds[0], self.keep)
        decoded = self.decoder.decode_batch(outputs, size, thresholds[0])
        found = [
            finish(candidates, own, self.decoder, size, placement, thresholds[1], self.keep)
            for candidates, own, placement in zip(decoded, zip(*outputs, strict=True), placements, strict=True)
        ]
        return found, sum(candidates.invalid for candidates in decoded)


def _boxes(rows: FloatArray, decoder: Decoder, placements: Placements, size: Size) -> BatchDetections:
    """Upright boxes of all frames at once. What lies in the padding alone is no object of the frame."""
    frames, places = np.nonzero(rows[..., SCORE] >= 0)
    if not len(frames):  # often, and what follows takes as long for none as for dozens
        return BatchDetections(Detections(), np.zeros(len(placements), np.int64))
    found = rows[frames, places]
    boxes = found[:, :4]
    if decoder.normalized is None:
        decoder.normalized = looks_normalized(boxes)
    if decoder.normalized:
        boxes = boxes * np.array(size * 2, np.float32)
    limit = np.tile(placements.sources, 2).astype(np.float32)
    offset = np.tile(placements.areas[:, :2], 2).astype(np.float32)
    scale = np.tile(placements.areas[:, 2:] / placements.sources, 2).astype(np.float32)
    boxes = np.clip((boxes - offset[frames]) / scale[frames], 0, limit[frames])
    inside = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    boxes, found, frames = boxes[inside], found[inside], frames[inside]
    detections = Detections(boxes, found[:, SCORE], found[:, CLASS].astype(np.int64))
    return BatchDetections(detections, np.bincount(frames, minlength=len(placements)))

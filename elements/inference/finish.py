"""From one frame's candidates to its detections: suppression, the way back through the letterbox, masks, key points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elements.inference.decoders import Candidates, Decoder
from elements.inference.decoders.whole import Answers
from elements.inference.letterbox import Size
from elements.inference.masks import crop_masks
from elements.inference.nms import nms, rotated_nms
from elements.metadata.batch_detections import BatchDetections
from elements.metadata.detections import Detections, FloatArray, IntArray
from elements.metadata.placement import Placement
from elements.metadata.rotated import rescaled


def finish(
    found: Candidates,
    outputs: Sequence[FloatArray],
    decoder: Decoder,
    size: Size,
    placement: Placement,
    iou: float,
    keep: frozenset[int] = frozenset(),
) -> Detections:
    """Detections in source pixels, best first. What lies in the padding alone is no object of the frame.

    Args:
        found: what `Decoder.decode` gave.
        outputs: the frame's outputs, from which masks are made.
        decoder: what decoded them.
        size: (width, height) of the network's input.
        placement: where the frame lies in it.
        iou: overlap above which the lesser of two boxes of one class goes.
        keep: class numbers to report; empty: all.
    """
    if keep:
        found = found[np.isin(found.class_ids, list(keep))]
    found = _with_area(found)
    return to_source(found[_kept(found, decoder, iou)], outputs, decoder, size, placement)


def finish_whole(
    said: Answers, sources: NDArray[np.floating], confidence: float, keep: frozenset[int] = frozenset()
) -> tuple[BatchDetections, int]:
    """What was said of B pictures as a whole: a box around each of which something is known, and how many were broken.

    Args:
        said: what `WholePicture.said` gave.
        sources: (B, 2) width and height of the pictures.
        confidence: lowest score.
        keep: class numbers to report; empty: all.
    """
    there = np.logical_not(said.broken) & (said.scores >= confidence)
    if keep:
        there &= np.isin(said.class_ids, list(keep))
    boxes = np.zeros((len(sources), 4), np.float32)
    boxes[:, 2:] = sources
    vectors = None if said.vectors is None else said.vectors[there]
    rows = Detections(boxes[there], said.scores[there], said.class_ids[there], embeddings=vectors)
    return BatchDetections(rows, there.astype(np.int64)), int(np.count_nonzero(said.broken))


def to_source(
    found: Candidates, outputs: Sequence[FloatArray], decoder: Decoder, size: Size, placement: Placement
) -> Detections:
    """Finished candidates as detections: see `finish`, which says what the arguments are."""
    width, height = placement.source_width, placement.source_height
    extras = found.extras
    detections = Detections(placement.to_source(found.boxes), found.scores, found.class_ids)
    if extras is not None and decoder.task == "obb":
        return _rotated(found, extras[:, 0], placement)
    detections.clipped(width, height)
    inside = (detections.boxes[:, 2:] > detections.boxes[:, :2]).all(axis=1)
    if not inside.all():
        detections = detections[inside]
        extras = None if extras is None else extras[inside]
    if extras is not None and decoder.task == "pose":
        detections.keypoints = _keypoints(extras, decoder.values_per_point, placement)
    elif extras is not None and decoder.task == "segment":
        logits = decoder.mask_logits(extras, outputs)
        detections.masks = crop_masks(logits, detections.boxes, size, placement)
    return detections


def _with_area(found: Candidates) -> Candidates:
    """Without boxes whose sides are not above 0: they are no objects, and suppression is not defined for them."""
    has_area = (found.boxes[:, 2:] > found.boxes[:, :2]).all(axis=1)
    return found if has_area.all() else found[has_area]


def _kept(found: Candidates, decoder: Decoder, iou: float) -> IntArray:
    """Rows that stay, best first."""
    if not decoder.suppress:
        return np.argsort(-found.scores, kind="stable")
    if decoder.task == "obb" and found.extras is not None:
        return rotated_nms(found.boxes, found.extras[:, 0], found.scores, found.class_ids, iou)
    return nms(found.boxes, found.scores, found.class_ids, iou)


def _rotated(found: Candidates, angles: FloatArray, placement: Placement) -> Detections:
    """Rotated boxes whose centre is in the frame; they are not cut at its edges."""
    scale_x, scale_y = placement.scale
    boxes, turned = rescaled(
        found.boxes, angles, (1 / scale_x, 1 / scale_y), (-placement.left / scale_x, -placement.top / scale_y)
    )
    center = (boxes[:, :2] + boxes[:, 2:]) / 2
    inside = ((center >= 0) & (center <= (placement.source_width, placement.source_height))).all(axis=1)
    inside &= (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    detections = Detections(boxes.astype(np.float32), found.scores, found.class_ids, angles=turned.astype(np.float32))
    return detections if inside.all() else detections[inside]


def _keypoints(extras: FloatArray, values: int, placement: Placement) -> FloatArray:
    """(N, K, 3) x, y, score in source pixels, within the frame; the score is 1 where the model gives none."""
    points = extras.reshape(len(extras), extras.shape[1] // values, values)
    offset = np.array([placement.left, placement.top], np.float32)
    result = np.ones((*points.shape[:2], 3), np.float32)
    result[..., :2] = (points[..., :2] - offset) / np.array(placement.scale, np.float32)
    np.clip(result[..., :2], 0, (placement.source_width, placement.source_height), out=result[..., :2])
    result[..., 2:] = points[..., 2:] if values == 3 else 1
    return result

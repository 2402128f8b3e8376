"""A frame's metadata as a plain dict: what ``BatchMetadata.extract`` hands out."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from elements.portable import meta as data
from elements.portable import osd


def extract_frame(frame: data.FrameMeta) -> dict[str, Any]:
    """Copies of what a frame holds, objects newest first.

    Keys: ``shape`` [height, width] of the mux frame; per object ``bboxes`` [left, top, right, bottom] truncated to int,
    ``probs``, ``labels`` (own label, then the classifiers'), ``objects`` (id as C int: -1 if untracked); ``seg_maps``
    (int arrays); ``timestamp`` (PTS in ns).
    """
    objects = frame.objects[::-1]
    return {
        "shape": [frame.pipeline_height, frame.pipeline_width],
        "bboxes": [_corners(o.rect) for o in objects],
        "probs": [o.confidence for o in objects],
        "labels": [_all_labels(o) for o in objects],
        "objects": [ctypes.c_int32(o.object_id).value for o in objects],
        "seg_maps": [o.mask.mask_array.astype(np.int32) for o in objects if o.mask.mask_array.size],
        "timestamp": ctypes.c_int64(frame.buffer_pts).value,
    }


def _corners(rect: osd.Rect) -> list[int]:
    left, top, width, height = int(rect.left), int(rect.top), int(rect.width), int(rect.height)
    return [left, top, left + width, top + height]


def _all_labels(item: data.ObjectMeta) -> list[str]:
    own = [item.label] if item.label else []
    return own + [info.label for c in reversed(item.classifiers) for info in c.labels]

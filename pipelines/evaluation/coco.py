"""Truth in COCO's JSON: instances with boxes, masks, and where the images are frames of videos, tracks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from pipelines.evaluation.annotations import UNTRACKED, Annotations, EvaluationError, Mask, Row, Sequence, read_text
from pipelines.evaluation.events import mask_of

_FINE = 8  # points per pixel, to each side, at which an outline is filled
_FRAME_KEYS = ("frame_id", "frame_index")  # 0-based, of COCO files for videos

Place = tuple[str, int, tuple[int, int] | None]  # sequence, frame, size


def read_coco(path: Path) -> Annotations:
    """Read a COCO instances file.

    An image is a sequence of one frame, named like its file without the ending. If the file has ``videos`` and images
    have ``video_id`` and ``frame_id`` (from 0), the videos are the sequences, and ``track_id`` of annotations their
    tracks. ``iscrowd`` makes an object that need not be found. A box that has a fifth number is turned by it: radians,
    clockwise, about its centre.

    Raises:
        EvaluationError: with file and line or entry, for what is no COCO file.
    """
    text = read_text(path)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    if not isinstance(data, dict) or not isinstance(data.get("images"), list):
        raise EvaluationError(f"{path}: is no COCO file: it needs 'images', 'annotations' and 'categories'")
    names = _Entries(path, data, "categories").each(lambda item: (item["id"], str(item["name"])))
    videos = _Entries(path, data, "videos").each(lambda item: (item["id"], Path(str(item["name"])).stem))
    places = _Entries(path, data, "images").each(lambda item: (item["id"], _place(item, videos)))
    result = Annotations(str(path), names=tuple(names.values()))
    for place in places.values():
        sequence, frame, size = place
        frames = result.sequences.setdefault(sequence, Sequence(size=size)).frames
        if frame in frames:
            raise EvaluationError(f"{path}: two images are frame {frame} of '{sequence}'")
        frames[frame] = []

    def add(item: dict[str, Any]) -> tuple[int, None]:
        sequence, frame, size = places[item["image_id"]]
        result.sequences[sequence].frames[frame].append(_row(item, names, size))
        return 0, None

    _Entries(path, data, "annotations").each(add)
    if not places:
        raise EvaluationError(f"{path}: has no images")
    return result


class _Entries:
    """A list of the file, whose entries are read one by one so that errors name them."""

    def __init__(self, path: Path, data: Mapping[str, Any], key: str) -> None:
        self._path, self._key = path, key
        self._items = data.get(key, [])
        if not isinstance(self._items, list):
            raise EvaluationError(f"{path}: {key} is not a list")

    def each(self, read: Any) -> dict[Any, Any]:
        """What ``read`` makes of the entries: pairs of key and value, as a mapping."""
        result = {}
        for number, item in enumerate(self._items):
            try:
                key, value = read(item)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                reason = f"{error} is missing or not known" if isinstance(error, KeyError) else str(error)
                raise EvaluationError(f"{self._path}: {self._key}[{number}]: {reason}") from error
            result[key] = value
        return result


def _place(image: dict[str, Any], videos: Mapping[Any, str]) -> Place:
    size = (int(image["width"]), int(image["height"])) if "width" in image and "height" in image else None
    frame = next((image[key] for key in _FRAME_KEYS if key in image), None)
    if "video_id" in image and frame is not None:
        return videos[image["video_id"]], int(frame), size
    return Path(str(image["file_name"])).stem, 0, size


def _row(item: dict[str, Any], names: Mapping[Any, str], size: tuple[int, int] | None) -> Row:
    x, y, width, height, *angle = (float(value) for value in item["bbox"])
    if len(angle) > 1 or not all(map(math.isfinite, (x, y, width, height))):
        raise ValueError(f"bbox {item['bbox']} is not [x, y, width, height]")
    return Row(
        names[item["category_id"]],
        (x, y, x + width, y + height),
        track_id=int(item.get("track_id", item.get("instance_id", UNTRACKED))),
        angle=angle[0] if angle else 0.0,
        ignore=bool(item.get("iscrowd", 0)),
        mask=_mask(item["segmentation"], size) if item.get("segmentation") else None,
    )


def _mask(segmentation: Any, size: tuple[int, int] | None) -> Mask:
    if isinstance(segmentation, dict):
        return mask_of(segmentation)
    if size is None:
        raise ValueError("its image lacks width and height, which the outline of a mask needs")
    outlines = [np.array(points, np.float64).reshape(-1, 2) for points in segmentation]
    return filled(outlines, size)


def filled(outlines: list[np.ndarray[Any, np.dtype[np.float64]]], size: tuple[int, int]) -> Mask:
    """The pixels of which at least half lies inside of the outlines.

    Args:
        outlines: (K, 2) points x, y in pixels, each.
        size: (width, height) of the frame.
    """
    points = np.concatenate(outlines)
    low = np.floor(points.min(axis=0)).astype(int).clip(0, size)
    high = np.ceil(points.max(axis=0)).astype(int).clip(low, size)
    width, height = high - low
    if not width or not height:
        return Mask(0, 0, np.zeros((0, 0), bool))
    fine = np.zeros((height * _FINE, width * _FINE), np.uint8)
    for outline in outlines:
        cv2.fillPoly(fine, [np.round((outline - low) * _FINE - 0.5).astype(np.int32)], 255)
    pixels = cv2.resize(fine, (int(width), int(height)), interpolation=cv2.INTER_AREA) >= 128
    return Mask(int(low[0]), int(low[1]), pixels)

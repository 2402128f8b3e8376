"""Truth in COCO's JSON: instances with boxes, masks, and where the images are frames of videos, tracks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np

from pipelines.evaluation.annotations import (
    UNTRACKED,
    Annotations,
    EvaluationError,
    Mask,
    Points,
    Row,
    Sequence,
    read_text,
)
from pipelines.evaluation.events import mask_of
from pipelines.evaluation.values import finite, parsed, text, whole

_FINE = 8  # points per pixel, to each side, at which an outline is filled
_FARTHEST = 1e6  # pixels; OpenCV counts in 32 bits
_FRAME_KEYS = ("frame_id", "frame_index")  # 0-based, of COCO files for videos

T = TypeVar("T")
Place = tuple[str, int, tuple[int, int] | None]  # sequence, frame, size


def read_coco(path: Path) -> Annotations:
    """Read a COCO instances file.

    An image is a sequence of one frame, named like its file without the ending. If the file has ``videos`` and images
    have ``video_id`` and ``frame_id`` (from 0), the videos are the sequences, and ``track_id`` of annotations their
    tracks. ``iscrowd`` makes an object that need not be found. A box that has a fifth number is turned by it: radians,
    clockwise, about its centre. ``keypoints`` are three numbers per point; ``area`` is the scale of their distances.

    Raises:
        EvaluationError: with file and line or entry, for what is no COCO file.
    """
    content = read_text(path)
    try:
        data = parsed(content)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    if isinstance(data, list):
        raise EvaluationError(f"{path}: is a list, as COCO's results are: truth has 'images' and 'categories', too")
    if not isinstance(data, dict) or not isinstance(data.get("images"), list):
        raise EvaluationError(f"{path}: is no COCO file: it needs 'images', 'annotations' and 'categories'")
    names = _Entries(path, data, "categories").by_id(lambda item: text(item["name"], "name"))
    videos = _Entries(path, data, "videos").by_id(lambda item: Path(text(item["name"], "name")).stem)
    places = _Entries(path, data, "images").by_id(lambda item: _place(item, videos))
    result = Annotations(str(path), names=tuple(names.values()))
    for place in places.values():
        sequence, frame, size = place
        frames = result.sequences.setdefault(sequence, Sequence(size=size)).frames
        if frame in frames:
            raise EvaluationError(f"{path}: two images are frame {frame} of '{sequence}'")
        frames[frame] = []

    def add(item: dict[str, Any]) -> None:
        sequence, frame, size = places[item["image_id"]]
        result.sequences[sequence].frames[frame].append(_row(item, names, size))

    _Entries(path, data, "annotations").go_through(add)
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

    def by_id(self, read: Callable[[Any], T]) -> dict[Any, T]:
        """What ``read`` makes of each entry, by the entry's id. Two entries of one id are an error."""
        result: dict[Any, T] = {}

        def add(item: Any) -> None:
            if item["id"] in result:
                raise ValueError(f"id {item['id']} is there for the second time")
            result[item["id"]] = read(item)

        self.go_through(add)
        return result

    def go_through(self, read: Callable[[Any], None]) -> None:
        """Call ``read`` with each entry.

        Raises:
            EvaluationError: naming the entry, for what it raises.
        """
        for number, item in enumerate(self._items):
            try:
                read(item)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                reason = f"{error} is missing or not known" if isinstance(error, KeyError) else str(error)
                raise EvaluationError(f"{self._path}: {self._key}[{number}]: {reason}") from error


def _place(image: dict[str, Any], videos: Mapping[Any, str]) -> Place:
    size = (whole(image["width"]), whole(image["height"])) if "width" in image and "height" in image else None
    frame = next((image[key] for key in _FRAME_KEYS if key in image), None)
    if "video_id" in image and frame is not None:
        return videos[image["video_id"]], whole(frame), size
    return Path(text(image["file_name"], "file_name")).stem, 0, size


def _row(item: dict[str, Any], names: Mapping[Any, str], size: tuple[int, int] | None) -> Row:
    x, y, width, height, *angle = map(finite, item["bbox"])
    if len(angle) > 1 or width < 0 or height < 0:
        raise ValueError(f"bbox {item['bbox']} is not [x, y, width, height]")
    return Row(
        names[item["category_id"]],
        (x, y, x + width, y + height),
        track_id=whole(item.get("track_id", item.get("instance_id", UNTRACKED))),
        angle=angle[0] if angle else 0.0,
        ignore=bool(item.get("iscrowd", 0)),
        mask=_mask(item["segmentation"], size) if item.get("segmentation") else None,
        keypoints=_keypoints(item["keypoints"]) if item.get("keypoints") else None,
        area=finite(item["area"]) if item.get("area") is not None else None,
    )


def _keypoints(values: Any) -> Points:
    """``[x, y, v, …]``; ``v`` is 0 for a point that is not labelled."""
    if not isinstance(values, list) or len(values) % 3:
        raise ValueError("keypoints is not [x, y, v] of each point in a row")
    return np.array([finite(value) for value in values]).reshape(-1, 3)


def _mask(segmentation: Any, size: tuple[int, int] | None) -> Mask:
    if isinstance(segmentation, dict):
        return mask_of(segmentation)
    if size is None:
        raise ValueError("its image lacks width and height, which the outline of a mask needs")
    outlines = [np.array(points, np.float64).reshape(-1, 2) for points in segmentation]
    if not all((np.abs(points) < _FARTHEST).all() for points in outlines):
        raise ValueError("the outline of its mask has points that are not finite or far outside of any picture")
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

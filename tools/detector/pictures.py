"""Training pictures: generated scenes, letterboxed, endlessly, from worker processes."""

import multiprocessing
import queue
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes import CLASSES, Scene, TruthObject

FIRST_TRAINING_SEED = 100_000
"""Demo and evaluation use lower seeds."""

LONG, SHORT = 960, 576
"""Sides of the network's input; landscape pictures use it lying, portrait pictures standing."""

MAX_OBJECTS = 96
MIN_PIXELS = 9.0
"""Height in network pixels below which an object is ignored in training."""

_PAD = 114

COMPRESSED = 0.5
"""Share of the pictures that have been through lossy compression, as a video's have."""


@dataclass(frozen=True)
class Letterbox:
    """Where a picture lies in the network's input: x' = x * scale + left, y' = y * scale + top."""

    scale: float
    left: float
    top: float


def letterbox(picture: NDArray[np.uint8], width: int, height: int) -> tuple[NDArray[np.uint8], Letterbox]:
    """Scales a picture (H, W, 3) to fit (height, width), centred on grey 114."""
    scale = min(width / picture.shape[1], height / picture.shape[0])
    new_width, new_height = round(picture.shape[1] * scale), round(picture.shape[0] * scale)
    left, top = (width - new_width) // 2, (height - new_height) // 2
    result = np.full((height, width, 3), _PAD, np.uint8)
    result[top : top + new_height, left : left + new_width] = cv2.resize(
        picture, (new_width, new_height), interpolation=cv2.INTER_LINEAR
    )
    return result, Letterbox(scale, left, top)


def canvas(width: int, height: int) -> tuple[int, int]:
    """Width and height of the network's input for a picture of that size."""
    return (LONG, SHORT) if width >= height else (SHORT, LONG)


def truth_rows(objects: list[TruthObject], placed: Letterbox) -> NDArray[np.float32]:
    """(MAX_OBJECTS, 6) rows of x1, y1, x2, y2 in network pixels, class (-1 in unused rows) and ignore (0 or 1).

    Raises:
        ValueError: more than `MAX_OBJECTS` objects.
    """
    if len(objects) > MAX_OBJECTS:
        raise ValueError(f"{len(objects)} objects in one picture; raise MAX_OBJECTS")
    rows = np.zeros((MAX_OBJECTS, 6), np.float32)
    rows[:, 4] = -1
    for row, item in zip(rows, objects, strict=False):
        row[:4] = np.array(item.box) * placed.scale + (placed.left, placed.top, placed.left, placed.top)
        row[4] = CLASSES.index(item.label)  # type: ignore[arg-type]
        row[5] = item.ignore or row[3] - row[1] < MIN_PIXELS
    return rows


def compressed(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """The picture (H, W, 3) after JPEG of that quality, 1 to 100: blocks, ringing and colour at half resolution."""
    coded = cv2.imencode(".jpg", picture, (cv2.IMWRITE_JPEG_QUALITY, quality))[1]
    return np.asarray(cv2.imdecode(coded, cv2.IMREAD_COLOR), np.uint8)


def training_pictures(seed: int, frames_per_scene: int) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32]]]:
    """Endless letterboxed pictures and their truth rows from random scenes of random size and shape."""
    rng = np.random.default_rng(seed)
    while True:
        longest = int(rng.choice([640, 800, 960, 1280], p=[0.1, 0.2, 0.3, 0.4]))
        shortest = int(longest * rng.choice([9 / 16, 0.6, 2 / 3, 3 / 4], p=[0.7, 0.1, 0.1, 0.1])) // 2 * 2
        width, height = (longest, shortest) if rng.random() < 0.5 else (shortest, longest)
        scene = Scene(FIRST_TRAINING_SEED + int(rng.integers(1 << 40)), width, height, 25)
        size = canvas(width, height)
        if rng.random() < 0.06:
            size = size[::-1]
        for _ in range(frames_per_scene):
            picture, objects = scene.render(int(rng.integers(0, 3000)))
            if rng.random() < COMPRESSED:
                picture = compressed(picture, int(rng.integers(40, 95)))
            boxed, placed = letterbox(picture, *size)
            yield boxed, truth_rows(objects, placed)


def _work(seed: int, frames_per_scene: int, chunk: int, results: Any) -> None:
    cv2.setNumThreads(1)
    pending: dict[tuple[int, int], list[tuple[NDArray[np.uint8], NDArray[np.float32]]]] = {}
    for picture, rows in training_pictures(seed, frames_per_scene):
        shape = (picture.shape[0], picture.shape[1])
        pending.setdefault(shape, []).append((picture, rows))
        if len(pending[shape]) == chunk:
            pictures, truths = zip(*pending.pop(shape), strict=True)
            results.put((np.stack(pictures), np.stack(truths)))


class PictureFactory:
    """Worker processes that render; `take` gives what they finished. Use as a context manager.

    Args:
        workers: number of processes.
        seed: other seeds give other pictures.
        frames_per_scene: pictures from one scene.
        chunk: pictures of one shape handed over at a time.
    """

    def __init__(self, workers: int, seed: int, frames_per_scene: int = 40, chunk: int = 8) -> None:
        context = multiprocessing.get_context("spawn")
        self._results: Any = context.Queue(maxsize=workers * 2)
        self._processes = [
            context.Process(
                target=_work, args=(seed * 1000 + index, frames_per_scene, chunk, self._results), daemon=True
            )
            for index in range(workers)
        ]

    def __enter__(self) -> "PictureFactory":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()

    def take(self, timeout: float) -> tuple[NDArray[np.uint8], NDArray[np.float32]] | None:
        """The next chunk: pictures (N, H, W, 3) and truth rows (N, MAX_OBJECTS, 6); None after `timeout` seconds.

        Raises:
            RuntimeError: a worker has died.
        """
        try:
            chunk: tuple[NDArray[np.uint8], NDArray[np.float32]] = self._results.get(timeout=timeout)
            return chunk
        except queue.Empty:
            if any(process.exitcode is not None for process in self._processes):
                raise RuntimeError("a rendering process has died; its trace is above") from None
            return None

"""How far boxes move with the way pixels are made: the CPU path, the GPU path's arithmetic, exact arithmetic, noise.

    python -m benchmarks.box_sensitivity MODEL.onnx CLIP... [--step 2] [--confidence 0.3]

All on the CPU, with one model and one decoder (PyAV); 4:2:0 clips only. The GPU path is that of NVIDIA's converter and
our letterbox: chroma brought to full size, RGB rounded to 8 bit there, scaled in float. "Exact" is float32 throughout.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from elements.inference.compare import matches
from elements.inference.config import ModelConfig
from elements.inference.finish import finish
from elements.inference.letterbox import place
from elements.inference.model import DetectionModel
from elements.metadata.detections import Detections
from elements.portable.color import BT601, BT709, ColorSpace
from elements.portable.picture import Picture

Plane = NDArray[Any]
Planes = tuple[Plane, Plane, Plane]
Maker = Callable[[Planes, ColorSpace, tuple[int, int]], Plane]
CLASSES = ((0.0, 0.35), (0.35, 0.5), (0.5, 0.7), (0.7, 1.01))
SITED = 0.25  # chroma samples to the side: MPEG-2's and H.264's are at the left one of two luma columns
_random = np.random.default_rng(0)


def cpu_path(planes: Planes, color: ColorSpace, size: tuple[int, int]) -> Plane:
    """What runs on the CPU: planes scaled in 8 bit, then converted."""
    picture = Picture("I420", planes, color)
    return picture.rgb(picture.whole, *size).astype(np.float32)


def exact(planes: Planes, color: ColorSpace, size: tuple[int, int], shift: float = 0.0) -> Plane:
    """Planes scaled and converted in float; ``shift`` moves chroma."""
    luma, *chroma = planes
    parts = [_scaled(luma, size), *(_scaled(plane, size, shift) for plane in chroma)]
    pixels: Plane = np.clip(cv2.transform(cv2.merge(parts), color.to_rgb), 0, 255)
    return pixels


def rounded(planes: Planes, color: ColorSpace, size: tuple[int, int]) -> Plane:
    """`exact` in whole grey levels."""
    return np.rint(exact(planes, color, size))


def noisy(planes: Planes, color: ColorSpace, size: tuple[int, int]) -> Plane:
    """`exact` with -1, 0 or 1 added."""
    return np.clip(exact(planes, color, size) + _random.integers(-1, 2, (size[1], size[0], 3)), 0, 255)


def gpu_path(planes: Planes, color: ColorSpace, size: tuple[int, int], interpolation: int = cv2.INTER_LINEAR) -> Plane:
    """RGB of 8 bit at full size, then scaled in float; ``interpolation`` brings chroma to full size."""
    luma, *chroma = planes
    full = (luma.shape[1], luma.shape[0])
    parts = [luma, *(cv2.resize(np.ascontiguousarray(plane), full, interpolation=interpolation) for plane in chroma)]
    rgb = np.clip(np.rint(cv2.transform(cv2.merge(parts).astype(np.float32), color.to_rgb)), 0, 255)
    pixels: Plane = cv2.resize(rgb, size, interpolation=cv2.INTER_LINEAR)
    return pixels


MAKERS: dict[str, Maker] = {
    "CPU path": cpu_path,
    "GPU path, chroma repeated": functools.partial(gpu_path, interpolation=cv2.INTER_NEAREST),
    "GPU path, chroma interpolated": gpu_path,
    "exact": exact,
    "exact, rounded": rounded,
    "exact, noise of 1": noisy,
    "exact, chroma to the side": functools.partial(exact, shift=SITED),
}
PAIRS = [("CPU path", other) for other in list(MAKERS)[1:4]] + [("exact", other) for other in list(MAKERS)[4:]]


def _scaled(plane: Plane, size: tuple[int, int], shift: float = 0.0) -> Plane:
    """Bilinear in float, as `elements.portable.picture.sample`."""
    (width, height), rows, columns = size, plane.shape[0], plane.shape[1]
    sx, sy = columns / width, rows / height
    x = (np.arange(width, dtype=np.float32) + 0.5) * np.float32(sx) - np.float32(0.5 - shift)
    y = (np.arange(height, dtype=np.float32) + 0.5) * np.float32(sy) - np.float32(0.5)
    return _lerp(_lerp(plane.astype(np.float32), y).T, x).T


def _lerp(lines: Plane, at: Plane) -> Plane:
    """Lines at fractional places; the first and last repeat outside."""
    low = np.floor(at).astype(int)
    part = (at - low)[:, None]
    last = len(lines) - 1
    between: Plane = lines[np.clip(low, 0, last)] * (1 - part) + lines[np.clip(low + 1, 0, last)] * part
    return between


def pictures(clip: Path, step: int) -> Iterator[tuple[Planes, ColorSpace]]:
    """Every ``step``-th frame, in the colours that are assumed where a clip names none."""
    with av.open(str(clip)) as container:
        for frame in itertools.islice(container.decode(video=0), 0, None, step):
            if "420p" not in frame.format.name or "10" in frame.format.name:
                raise SystemExit(f"{clip}: its frames are {frame.format.name}, 8 bit 4:2:0 is needed")
            y, u, v = (
                np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
                for plane in frame.planes
            )
            yield (y, u, v), BT709 if frame.height > 576 else BT601


def detect(model: DetectionModel, rgb: Plane, source: tuple[int, int]) -> Detections:
    """What the model finds in a picture of the size of its input, stretched from ``source``; 0-255, BGR as YOLOX."""
    network = model._network
    assert network is not None
    tensor = np.ascontiguousarray(rgb[..., ::-1].transpose(2, 0, 1))[None].astype(np.float32)
    outputs = network.engine.run(tensor)
    own = [outputs[number][0] for number in network.outputs]
    found = network.decoder.decode(own, network.size, model.confidence)
    at = place(source, network.size, "stretch")
    return finish(found, own, network.decoder, network.size, at, model.iou, network.keep)


def row(name: str, first: list[Detections], second: list[Detections]) -> str:
    """One row of the table: matched, median, over 1 pixel, by confidence, IoU below 0.9."""
    moved, scores, overlaps = [], [], []
    for one, other in zip(first, second, strict=True):
        rows, columns, ious = matches(one, other)
        moved += np.abs(one.boxes[rows] - other.boxes[columns]).max(axis=1, initial=0).tolist()
        scores += one.scores[rows].tolist()
        overlaps += ious.tolist()
    far, score = np.array(moved) > 1, np.array(scores)
    classes = [(score >= low) & (score < high) for low, high in CLASSES]
    by_class = " | ".join(f"{int(far[part].sum())}/{int(part.sum())}" for part in classes)
    poor = int((np.array(overlaps) < 0.9).sum())
    return f"| {name} | {len(far)} | {np.median(moved):.2f} | {far.sum()} ({far.mean():.1%}) | {by_class} | {poor} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--confidence", type=float, default=0.3)
    options = parser.parse_args()
    model = DetectionModel(ModelConfig(options.model, letterbox="stretch", confidence=options.confidence))
    model.load()
    assert model._network is not None
    found: dict[str, list[Detections]] = {name: [] for name in MAKERS}
    for clip in options.clips:
        for planes, color in pictures(clip, options.step):
            size = (planes[0].shape[1], planes[0].shape[0])
            for name, make in MAKERS.items():
                found[name].append(detect(model, make(planes, color, model._network.size), size))
    print(
        "| compared | matched | median, pixels | over 1 | below 0.35 | 0.35-0.5 | 0.5-0.7 | from 0.7 | IoU below 0.9 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for one, other in PAIRS:
        print(row(f"{one}; {other}", found[one], found[other]))


if __name__ == "__main__":
    main()

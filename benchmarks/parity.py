"""The same boxes as the programs that models come from, on real clips: tables for benchmarks/results/parity.md.

    python -m benchmarks.parity DATA [--kinds yolo11n yolo11n-pose] [--frames 20] [--path]

DATA has ``videos/`` and ``models/yolox_nano_416.onnx``. YOLOX is compared with the NumPy version in the tests, and
``--kinds`` with ultralytics (AGPL, dev only), on networks with made-up weights. Without ``--path`` both sides get the
same pictures. With it, ours is ``gstorch run`` on the file, and what makes the difference is told apart: the pictures
that OpenCV decodes (what the others see), our conversion of whole frames to RGB, and our pipeline, which scales the
planes first and converts then; the first clip is left out, as it is long.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.box_sensitivity import pictures
from elements.inference.config import ModelConfig
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel
from elements.metadata.detections import Detections
from elements.portable.picture import Picture
from tests.gstorch_cli import events, gstorch
from tests.parity import Comparison, bgr_frames, detections_of, rgb_frame, slightly_other
from tests.ultralytics_reference import predict, settings, task_of
from tests.yolos import yolo_file
from tests.yolox_reference import YoloxReference

CLIPS = (
    "one-by-one-person-detection.mp4",
    "store-aisle_from_preview_gif.mp4",
    "udacity_test_video.mp4",
    "rot90_display_matrix.mp4",
    "odd_427x241_vp9.webm",
    "vfr_irregular.mp4",
    "hevc_main10.mp4",
)
PLAIN = CLIPS[1:3] + CLIPS[4:6]  # 8 bit and upright as stored, so that their planes can be read without a pipeline
CONFIDENCE, IOU = 0.25, 0.45
FAR = 20.0  # pixels; boxes further apart are not taken for one object
SAME_COLUMNS = (
    "model", "ours", "theirs", "paired", "median px", "max px", "score", "key points px", "mask IoU", "without partner",
)  # fmt: skip
PATH_COLUMNS = (
    "model", "clip", "from → to", "first", "second", "paired", "median px", "p95", "max", "≤ 0.5 px", "score",
)  # fmt: skip
Frames = Sequence[NDArray[np.uint8]]


@dataclass(frozen=True)
class Model:
    """A model for both sides.

    Attributes:
        name: for the tables.
        ours: how gstorch runs it.
        theirs: what the reference finds in BGR pictures.
    """

    name: str
    ours: ModelConfig
    theirs: Callable[[Frames], list[Detections]]


def yolox(data: Path) -> Model:
    """The real network of the data folder."""
    path = str(data / "models" / "yolox_nano_416.onnx")
    reference = YoloxReference(path, 416)

    def look(frames: Frames) -> list[Detections]:
        return [reference.predict(frame, CONFIDENCE, IOU) for frame in frames]

    return Model("YOLOX-nano, onnx", ModelConfig(path, confidence=CONFIDENCE, iou=IOU), look)


def made_up(kind: str, folder: Path, frames: Frames) -> Iterator[Model]:
    """A network of ultralytics' as a checkpoint and as an ONNX export of a fixed size."""
    import ultralytics

    checkpoint = yolo_file(kind, folder, frames)
    export = Path(ultralytics.YOLO(checkpoint).export(format="onnx", imgsz=320, verbose=False))
    for path in (checkpoint, export):
        config = ModelConfig(**settings(path), confidence=CONFIDENCE, iou=IOU)

        def look(given: Frames, path: Path = path) -> list[Detections]:
            return predict(path, task_of(kind), given, 320, CONFIDENCE, IOU)

        yield Model(f"{kind}, {config.engine if path is checkpoint else 'onnx'}", config, look)


def same_pictures(model: Model, clips: dict[str, list[NDArray[np.uint8]]]) -> None:
    """A row: both sides on the frames that OpenCV decodes."""
    ours = DetectionModel(model.ours)
    ours.load()
    sums = Comparison(CONFIDENCE, IOU, fast_nms=ours.task == "obb")
    points, overlaps = [0.0], [1.0]
    for frames in clips.values():
        for bgr, theirs in zip(frames, model.theirs(frames), strict=True):
            (found,) = ours.infer([rgb_frame(bgr)])
            rows, columns = sums.add(found, theirs, slightly_other(ours, rgb_frame(bgr)))
            for row, column in zip(rows, columns, strict=True):
                if found.keypoints is not None and theirs.keypoints is not None:
                    points.append(float(np.abs(found.keypoints[row] - theirs.keypoints[column])[:, :2].max()))
                if found.masks is not None:
                    size = (bgr.shape[1], bgr.shape[0])
                    overlaps.append(_overlap(found[[row]].full_masks(*size), theirs[[column]].full_masks(*size)))
    print(
        f"| {model.name} | {sums.ours} | {sums.theirs} | {sums.paired} | {np.median(sums.shifts):.4f} "
        f"| {max(sums.shifts):.3f} | {max(sums.score_shifts):.4f} | {max(points):.2f} | {np.median(overlaps):.3f} "
        f"| {', '.join(f'{count} {why}' for why, count in sums.reasons.most_common()) or 'none'} |",
        flush=True,
    )
    ours.close()


def _overlap(mine: Any, others: Any) -> float:
    together = int((mine | others).sum())
    return float((mine & others).sum() / together) if together else 1.0


def whole_path(model: Model, clip: Path, step: int) -> None:
    """Rows: what the file gives in ``gstorch run``, and each cause of the difference."""
    decoded = bgr_frames(clip, step)
    theirs = model.theirs(decoded)
    path = _run(model.ours, clip)[::step]
    _row(model.name, clip, "all: reference, OpenCV's pictures → `gstorch run`", theirs, path)
    if clip.name in PLAIN:
        ours = DetectionModel(model.ours)
        ours.load()
        whole = [ours.infer([ArrayFrame(rgb)])[0] for rgb in _converted(clip, step)]
        ours.close()
        _row(model.name, clip, "OpenCV's conversion to RGB → ours", theirs, whole)
        _row(model.name, clip, "frame converted, then scaled → scaled, then converted", whole, path)


def _converted(clip: Path, step: int) -> Iterator[NDArray[np.uint8]]:
    for planes, color in pictures(clip, step):
        picture = Picture("I420", planes, color)
        yield picture.rgb(picture.whole, picture.width, picture.height)


def _run(config: ModelConfig, clip: Path) -> list[Detections]:
    """What `gstorch run` writes for each frame; no tracker."""
    keys = {"engine": config.engine, "trust": str(config.trust).lower(), "device": config.device}
    keys |= {"input_size": str(config.input_size[0])} if config.input_size else {}
    infer = ", ".join(f"{key}: {value}" for key, value in keys.items())
    with tempfile.TemporaryDirectory() as folder:
        out, definition = Path(folder) / "events.jsonl", Path(folder) / "parity.yaml"
        definition.write_text(
            f"pipeline: parity\nsources: [{{name: clip, uri: {clip}}}]\n"
            f"stages: [infer: {{model: {config.path}, confidence: {CONFIDENCE}, iou: {IOU}, {infer}}}]\n"
            f"outputs: [events: {{path: {out}}}]\n"
        )
        result = gstorch("run", definition, "-q")
        if result.code:
            raise SystemExit(result.stderr)
        return [detections_of(event["objects"]) for event in events(out)]


def _row(name: str, clip: Path, cause: str, first: list[Detections], second: list[Detections]) -> None:
    sums = Comparison(CONFIDENCE, IOU, far=FAR)
    for one, other in zip(first, second, strict=True):
        sums.add(one, other)
    shifts = np.array(sums.shifts or [0.0])
    print(
        f"| {name} | {clip.stem[:12]} | {cause} | {sums.ours} | {sums.theirs} | {sums.paired} "
        f"| {np.median(shifts):.2f} | {np.quantile(shifts, 0.95):.2f} | {shifts.max():.2f} "
        f"| {(shifts <= 0.5).mean():.0%} | {max(sums.score_shifts, default=0):.3f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--frames", type=int, default=20, help="most of each clip")
    parser.add_argument("--path", action="store_true")
    options = parser.parse_args()
    files = {name: options.data / "videos" / name for name in CLIPS}
    steps = {name: max(1, _length(path) // options.frames) for name, path in files.items()}
    clips = {name: bgr_frames(path, steps[name], options.frames) for name, path in files.items()}
    columns = PATH_COLUMNS if options.path else SAME_COLUMNS
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with tempfile.TemporaryDirectory() as folder:
        some = [frame for frames in clips.values() for frame in frames[len(frames) // 2 :][:1]]
        others = itertools.chain.from_iterable(made_up(kind, Path(folder), some) for kind in options.kinds)
        for model in itertools.chain([yolox(options.data)], others):
            if not options.path:
                same_pictures(model, clips)
                continue
            for name in CLIPS[1:]:
                whole_path(model, files[name], steps[name])


def _length(path: Path) -> int:
    return len(bgr_frames(path))


if __name__ == "__main__":
    main()

"""Whether one definition finds the same boxes on CPU and GPU, on real clips: decoder to events.

    python -m benchmarks.box_parity MODEL CLIP... [--device cuda] [--save FILE]
    python -m benchmarks.box_parity MODEL CLIP... --against FILE     # saved where software decoders are

The model runs stretched to its input in float32 (TorchScript: `benchmarks.to_torchscript`). Exit code 1 if a larger
share of the boxes than ``--allowed`` has a corner more than a pixel away, or has no twin and a confidence that is more
than 0.05 above the threshold.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elements.inference.compare import matches
from elements.metadata.detections import Detections
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner

LIMIT = 1.0  # pixels
NEAR = 0.05  # above the threshold: on which side of it an object is depends on the last bits

Boxes = dict[str, list[list[float]]]  # "clip/frame": rows of class, confidence, x1, y1, x2, y2 in source pixels


def run(model: str, clips: Sequence[Path], device: str, confidence: float) -> Boxes:
    """The boxes of every frame."""
    found: Boxes = {}
    for clip in clips:
        with tempfile.TemporaryDirectory() as folder:
            events = Path(folder) / "events.jsonl"
            infer: dict[str, Any] = {"model": model, "letterbox": "stretch", "confidence": confidence}
            infer |= {"layout": "yolox", "input_size": 416, "precision": "fp32", "device": device}
            definition = {
                "pipeline": "parity",
                "sources": [str(clip)],
                "stages": [{"infer": infer}],
                "outputs": [{"events": {"path": str(events)}}],
            }
            runner = open_runner(make_plan(definition_from_mapping(definition, Path.cwd())))
            outcome = runner.run()
            if outcome.error or runner.exit_code():
                raise SystemExit(f"{clip} on {device}: {outcome.error or 'failed'}")
            for event in map(json.loads, events.read_text().splitlines()):
                found[f"{clip.stem}/{event['frame']}"] = [
                    [o["class_id"], o["confidence"], *o["bbox"]] for o in event["objects"]
                ]
    return found


def detections(rows: Iterable[Sequence[float]]) -> Detections:
    """Rows as `Detections`."""
    table = np.array(list(rows), np.float32).reshape(-1, 6)
    return Detections(table[:, 2:], table[:, 1], table[:, 0].astype(np.int64))


def compare(first: Boxes, second: Boxes, confidence: float, allowed: float) -> bool:
    """Print one row per clip and one for all; whether the bound holds."""
    print("| clip | frames | matched | median, pixels | largest | over 1 | not matched | clear of them | worst IoU |")
    print("|---|---|---|---|---|---|---|---|---|")
    clips = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in first))
    far = total = 0
    for clip in [*clips, ""]:
        moved: list[float] = []
        overlaps: list[float] = [1.0]
        alone: list[float] = []
        keys = [key for key in first if key.startswith(f"{clip}/" if clip else "")]
        for key in keys:
            one, other = detections(first[key]), detections(second.get(key, []))
            rows, columns, ious = matches(one, other)
            moved += np.abs(one.boxes[rows] - other.boxes[columns]).max(axis=1, initial=0).tolist()
            overlaps += ious.tolist()
            alone += np.delete(one.scores, rows).tolist() + np.delete(other.scores, columns).tolist()
        over = sum(value > LIMIT for value in moved)
        clear = sum(score > confidence + NEAR for score in alone)
        far, total = over + clear, len(moved) + len(alone)
        middle, largest = (np.median(moved), max(moved)) if moved else (0.0, 0.0)
        name = clip or "all"
        print(
            f"| {name} | {len(keys)} | {len(moved)} | {middle:.3f} | {largest:.2f} | {over} | {len(alone)} | {clear} "
            f"| {min(overlaps):.3f} |"
        )
    missing = sorted(first.keys() ^ second.keys())
    if missing:
        print(f"frames that only one of both has: {len(missing)}, such as {missing[:3]}")
    holds = not missing and far <= allowed * total
    print(f"{far} of {total} boxes are elsewhere, {allowed:.1%} are allowed: {'holds' if holds else 'DOES NOT HOLD'}")
    return holds


def main() -> int:
    """Run and compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("clips", type=Path, nargs="+")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--confidence", type=float, default=0.3)
    parser.add_argument("--allowed", type=float, default=0.01, help="share of the boxes")
    parser.add_argument("--save", type=Path, help="write the boxes that the device finds, and compare with nothing")
    parser.add_argument("--against", type=Path, help="boxes to compare with, instead of a run on the CPU")
    options = parser.parse_args()
    found = run(options.model, options.clips, options.device, options.confidence)
    if options.save:
        options.save.write_text(json.dumps(found))
        return 0
    if options.against:
        expected = json.loads(options.against.read_text())
    else:
        expected = run(options.model, options.clips, "cpu", options.confidence)
    return 0 if compare(expected, found, options.confidence, options.allowed) else 1


if __name__ == "__main__":
    sys.exit(main())

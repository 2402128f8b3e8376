"""Clips for the GPU tests, with their frames as decoded on a CPU, for machines that can make neither.

Usage: ``python -m tests.gpu.make_clips FOLDER`` where ffmpeg and software decoders are; the tests find the folder
through GSTORCH_GPU_CLIPS.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.clips import make_clip

# 642 pixels of RGB don't fill a pitch; a picture of more than 576 lines that says nothing of its colours is in BT.709
SIZES = {"plain": (642, 362), "small": (320, 240), "large": (1280, 720)}
FRAMES, LONG, EVERY = 60, 2400, 5  # frames of a clip, of the long one, and which are kept


def make(folder: Path) -> None:
    """Write the clips of `SIZES`, turned.mp4, long.mp4, and frames.npz: every fifth frame of the others as RGB."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (width, height) in SIZES.items():
        make_clip(folder / f"{name}.mp4", width, height, FRAMES)
    small = str(folder / "small.mp4")
    _copy(folder / "turned.mp4", "-i", small, "-metadata:s:v", "rotate=90")
    _copy(folder / "long.mp4", "-stream_loop", str(LONG // FRAMES - 1), "-i", small)
    names = (*SIZES, "turned")
    np.savez_compressed(folder / "frames.npz", **{name: np.stack(_decode(folder / f"{name}.mp4")) for name in names})


def _copy(target: Path, *options: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *options, "-c", "copy", str(target)], check=True)


def _decode(clip: Path) -> list[np.ndarray]:
    from elements.portable.carrier import batch_of
    from tests.media import run

    frames: list[np.ndarray] = []

    def look(buffer: Any) -> None:
        surface = batch_of(buffer).surfaces[0]
        place = surface.placement
        assert surface.source_tensor is None, "these are to be decoded on the CPU"
        whole = (place.left, place.top, place.left + place.width, place.top + place.height)
        frames.append(surface.resample(place.source_width, place.source_height, whole).copy())

    line = f"nvurisrcbin uri={clip.resolve().as_uri()} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=480 "
    outcome, _ = run(line + "! fakesink name=out", look=look)
    assert (outcome.end, len(frames)) == ("eos", FRAMES)
    return frames[::EVERY]


if __name__ == "__main__":
    make(Path(sys.argv[1]))

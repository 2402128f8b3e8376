"""Makes the demo clips: `python -m tools.scenes.make_clips OUT_DIR`.

Writes `street.mp4` (landscape) and `alley.mp4` (portrait) with `street.truth.json` and `alley.truth.json` beside them,
and the same as MOT files in the folder `truth`.
Clips that are there already are kept.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes.encode import write_mp4
from tools.scenes.mot import write_mot
from tools.scenes.scene import Scene
from tools.scenes.street import Style
from tools.scenes.traffic import CLASSES
from tools.scenes.truth import Truth, TruthObject, load_truth, write_truth

RECIPE_VERSION = 1
"""Raise when generated pictures change, so that old clips are made anew."""


@dataclass(frozen=True)
class Clip:
    """What one demo clip shows; sizes in pixels, duration in seconds."""

    name: str
    seed: int
    style: Style
    width: int
    height: int
    fps: int = 25
    duration: float = 15.0


CLIPS = (Clip("street", 38, "street", 1280, 720), Clip("alley", 14, "alley", 720, 1280))


def missing_clips(folder: Path) -> list[Clip]:
    """The clips that `make_clips` would make there."""
    return [clip for clip in CLIPS if not _is_made(clip, folder)]


def make_clip(clip: Clip, folder: Path) -> Path:
    """Renders and encodes a clip and its truth into `folder`, unless they are there already.

    Returns:
        The clip's path.
    """
    path, truth_path, recipe_path = _files(clip, folder)
    if _is_made(clip, folder):
        return path
    cv2.setNumThreads(1)  # the clips are made side by side
    scene = Scene(clip.seed, clip.width, clip.height, clip.fps, clip.style)
    frames: list[tuple[TruthObject, ...]] = []

    def pictures() -> Iterator[NDArray[np.uint8]]:
        for index in range(round(clip.duration * clip.fps)):
            picture, objects = scene.render(index)
            frames.append(tuple(objects))
            yield picture

    recipe_path.unlink(missing_ok=True)
    write_mp4(path, pictures(), clip.width, clip.height, clip.fps)
    write_truth(truth_path, Truth(path.name, clip.width, clip.height, clip.fps, CLASSES, tuple(frames)))
    recipe_path.write_text(_recipe(clip), encoding="utf-8")
    return path


def _files(clip: Clip, folder: Path) -> tuple[Path, Path, Path]:
    """The clip, its truth, and the recipe that it was made by."""
    return folder / f"{clip.name}.mp4", folder / f"{clip.name}.truth.json", folder / f"{clip.name}.recipe.json"


def _recipe(clip: Clip) -> str:
    return json.dumps({"version": RECIPE_VERSION, **asdict(clip)})


def _is_made(clip: Clip, folder: Path) -> bool:
    path, truth_path, recipe_path = _files(clip, folder)
    if not (path.exists() and truth_path.exists() and recipe_path.exists()):
        return False
    return recipe_path.read_text(encoding="utf-8") == _recipe(clip)


def make_clips(folder: Path) -> list[Path]:
    """Makes all demo clips in `folder`, in parallel, and their truth as MOT files in `truth`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(len(CLIPS)) as pool:
        paths = pool.starmap(make_clip, [(clip, folder) for clip in CLIPS])
    for clip in CLIPS:
        write_mot(folder / "truth", load_truth(folder / f"{clip.name}.truth.json"))
    return paths


def main(arguments: list[str] | None = None) -> int:
    """Command line entry; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make the demo clips and their truth.")
    parser.add_argument("folder", type=Path, help="where the clips go, for example out/demo")
    for path in make_clips(parser.parse_args(arguments).folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Clips for the GPU tests, with their frames as decoded on a CPU, for machines that can make neither.

Usage: ``python -m tests.gpu.make_clips FOLDER`` where ffmpeg and software decoders are; the tests find the folder
through GSTORCH_GPU_CLIPS.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.clips import make_clip

# 642 pixels of RGB don't fill a pitch; a picture of more than 576 lines that says nothing of its colours is in BT.709
SIZES = {"plain": (642, 362), "small": (320, 240), "large": (1280, 720)}
_OPTIONS = {
    "libx264": ["-pix_fmt", "yuv420p", "-preset", "veryfast"],
    "libx265": ["-pix_fmt", "yuv420p10le", "-x265-params", "log-level=error", "-tag:v", "hvc1"],
    "libvpx-vp9": ["-pix_fmt", "yuv420p", "-b:v", "0"],
}
FRAMES, LONG, EVERY = 60, 2400, 5  # frames of a clip, of the long one, and which are kept
INPUT = (320, 192)  # of a model, width and height


class Textured(NamedTuple):
    """A clip of a test pattern with noise; ``matrix`` as H.264 numbers it, 0: it does not say."""

    size: str
    matrix: int = 0
    full_range: bool = False
    codec: str = "libx264"

    @property
    def suffix(self) -> str:
        return ".webm" if self.codec == "libvpx-vp9" else ".mp4"


TEXTURED = {
    "sd": Textured("640x360"),
    "sd-bt709": Textured("640x360", 1),
    "sd-full": Textured("640x360", 6, True),
    "hd": Textured("1280x720"),
    "hd-bt601": Textured("1280x720", 6),
    "hd-bt2020": Textured("1280x720", 9),
    "hd-full": Textured("1280x720", 1, True),
    "odd": Textured("427x241", codec="libvpx-vp9"),
    "narrow": Textured("502x282"),
    "uhd": Textured("3840x2160"),
    "ten-bit": Textured("640x360", codec="libx265"),
    "hd-ten-bit": Textured("1280x720", codec="libx265"),
}


def make(folder: Path) -> None:
    """Write the clips of `SIZES`, turned.mp4, long.mp4, and frames.npz: every fifth frame of the others as RGB.

    And those of `TEXTURED`, 3 frames each, with inputs.npz: each frame scaled to `INPUT`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, (width, height) in SIZES.items():
        make_clip(folder / f"{name}.mp4", width, height, FRAMES)
    small = str(folder / "small.mp4")
    _copy(folder / "turned.mp4", "-i", small, "-metadata:s:v", "rotate=90")
    _copy(folder / "long.mp4", "-stream_loop", str(LONG // FRAMES - 1), "-i", small)
    names = (*SIZES, "turned")
    frames = {name: np.stack(_decode(folder / f"{name}.mp4", None)[::EVERY]) for name in names}
    np.savez_compressed(folder / "frames.npz", **frames)
    for name, clip in TEXTURED.items():
        _make_textured(folder / f"{name}{clip.suffix}", clip)
    inputs = {name: np.stack(_decode(folder / f"{name}{clip.suffix}", INPUT)) for name, clip in TEXTURED.items()}
    np.savez_compressed(folder / "inputs.npz", **inputs)


def _copy(target: Path, *options: str) -> None:
    _ffmpeg(*options, "-c", "copy", str(target))


def _make_textured(target: Path, clip: Textured) -> None:
    noise = 0 if clip.size == "3840x2160" else 6  # which makes large files
    scaled = clip.size.replace("x", ":")  # the pattern itself comes in even sizes only
    pattern = f"testsrc2=s={clip.size}:r=25,format=yuv420p,scale={scaled},noise=alls={noise}:allf=t"
    codec = ["-c:v", clip.codec, *_OPTIONS[clip.codec]]
    plain = target.with_name(f"plain-{target.name}") if clip.matrix else target
    _ffmpeg("-f", "lavfi", "-i", pattern, "-frames:v", "3", *codec, "-crf", "26", str(plain))
    if clip.matrix:
        names = ("colour_primaries", "transfer_characteristics", "matrix_coefficients")
        marks = ":".join([f"{name}={clip.matrix}" for name in names] + [f"video_full_range_flag={clip.full_range:d}"])
        _copy(target, "-i", str(plain), "-bsf:v", f"h264_metadata={marks}")
        plain.unlink()


def _ffmpeg(*options: str) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *options], check=True)


def _decode(clip: Path, size: tuple[int, int] | None) -> list[np.ndarray]:
    """Its frames as the CPU path makes them, at their own or the given size."""
    from elements.portable.carrier import batch_of
    from tests.media import run

    frames: list[np.ndarray] = []

    def look(buffer: Any) -> None:
        surface = batch_of(buffer).surfaces[0]
        place = surface.placement
        assert surface.source_tensor is None, "these are to be decoded on the CPU"
        whole = (place.left, place.top, place.left + place.width, place.top + place.height)
        frames.append(surface.resample(*(size or (place.source_width, place.source_height)), whole).copy())

    line = f"nvurisrcbin uri={clip.resolve().as_uri()} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=480 "
    outcome, _ = run(line + "! fakesink name=out", look=look)
    assert (outcome.end, len(frames)) == ("eos", 3 if clip.stem in TEXTURED else FRAMES)
    return frames


if __name__ == "__main__":
    make(Path(sys.argv[1]))

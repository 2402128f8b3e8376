"""What is really in a frame, and the JSON file that keeps it beside a clip."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MIN_VISIBILITY = 0.35
"""Part of an object that must be seen for a detector to owe it."""

MIN_HEIGHT = 0.02
"""Height of the box, as part of the longer side of the picture, from which a detector owes an object."""

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class TruthObject:
    """One object of one frame.

    Attributes:
        track_id: the same for the same object in every frame of a scene.
        label: person, cyclist (with the bicycle), car or truck.
        box: (x1, y1, x2, y2) in pixels around the whole object, also where another hides it, cut to the
            picture; x2 and y2 exclusive.
        visibility: part of the object that is seen, 0..1: neither hidden nor outside the picture.
        ignore: too small or too hidden to count; a detection of it is neither right nor wrong.
    """

    track_id: int
    label: str
    box: tuple[float, float, float, float]
    visibility: float
    ignore: bool

    @classmethod
    def judged(
        cls, track_id: int, label: str, box: tuple[float, float, float, float], visibility: float, longest: int
    ) -> "TruthObject":
        """An object with `ignore` set by `MIN_VISIBILITY` and `MIN_HEIGHT` in a picture with that longer side."""
        ignore = visibility < MIN_VISIBILITY or box[3] - box[1] < MIN_HEIGHT * longest
        return cls(track_id, label, box, round(visibility, 3), ignore)


@dataclass(frozen=True)
class Truth:
    """Truth of a clip: `frames[i]` lists the objects of frame i."""

    source: str
    width: int
    height: int
    fps: float
    classes: tuple[str, ...]
    frames: tuple[tuple[TruthObject, ...], ...]


def write_truth(path: Path, truth: Truth) -> None:
    """Writes a truth file.

    Layout: an object with `version` 1, `source` (file name of the clip), `width`, `height`, `fps`, `frames` (how many),
    `classes`, and `objects`: a list with one entry per object and frame in the manner of MOT files, with `frame` (from
    0), `track_id`, `label`, `box` [x1, y1, x2, y2] in pixels, `visibility` 0..1 and `ignore`.
    """
    rows = [{"frame": index, **asdict(item)} for index, items in enumerate(truth.frames) for item in items]
    head: dict[str, Any] = {
        "version": SCHEMA_VERSION,
        "source": truth.source,
        "width": truth.width,
        "height": truth.height,
        "fps": truth.fps,
    }
    head |= {"frames": len(truth.frames), "classes": list(truth.classes)}
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(json.dumps(head)[:-1] + ', "objects": [\n' + lines + "\n]}\n", encoding="utf-8")


def load_truth(path: Path) -> Truth:
    """Reads a truth file.

    Raises:
        ValueError: the file is not a truth file of this version.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("version") != SCHEMA_VERSION:
        raise ValueError(
            f"{path}: not a truth file of version {SCHEMA_VERSION}; make it with `python -m tools.scenes.make_clips`"
        )
    frames: list[list[TruthObject]] = [[] for _ in range(data["frames"])]
    for row in data["objects"]:
        x1, y1, x2, y2 = row["box"]
        frames[row["frame"]].append(
            TruthObject(row["track_id"], row["label"], (x1, y1, x2, y2), row["visibility"], row["ignore"])
        )
    return Truth(data["source"], data["width"], data["height"], data["fps"], tuple(data["classes"]), _frozen(frames))


def _frozen(frames: Sequence[Sequence[TruthObject]]) -> tuple[tuple[TruthObject, ...], ...]:
    return tuple(tuple(items) for items in frames)

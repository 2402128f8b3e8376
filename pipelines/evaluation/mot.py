"""Truth in the format of the MOT challenges: ``gt.txt``, one object of one frame per line."""

from __future__ import annotations

import configparser
import math
from pathlib import Path

from pipelines.evaluation.annotations import Annotations, EvaluationError, Row, Sequence, read_text
from pipelines.evaluation.values import whole

CLASSES = (  # of MOT16, 17 and 20
    "pedestrian", "person on vehicle", "car", "bicycle", "motorbike", "non motorized vehicle", "static person",
    "distractor", "occluder", "occluder on the ground", "occluder full", "reflection", "crowd",
)  # fmt: skip
_WITH_CLASS = (8, 9)  # columns; files of MOT15 have 10, the last three of which are places in the world
_LABELS = "labels.txt"


def read_mot(path: Path) -> Annotations:
    """Read one ``gt.txt``: ``frame, id, left, top, width, height, flag, class, visibility``; frames count from 1.

    Left and top are taken as pixels from 0. Flag 0 makes an object that need not be found. Class names come from
    ``labels.txt`` beside the file (line n is class n, as CVAT writes it), else those of MOT16 to MOT20. The sequence's
    name is that of the folder that holds ``gt/gt.txt``, else the file's; ``seqinfo.ini`` there gives size and length.

    Raises:
        EvaluationError: with file and line.
    """
    folder = path.parent.parent if path.parent.name == "gt" else path.parent
    name = folder.resolve().name if path.stem == "gt" else path.stem
    sequence = _described(folder / "seqinfo.ini")
    labels = path.parent / _LABELS
    names = tuple(read_text(labels).split("\n")) if labels.is_file() else CLASSES
    names = tuple(line.strip() for line in names if line.strip())
    seen: set[tuple[int, int]] = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            frame, row = _row(line, names)
            if (frame, row.track_id) in seen:
                raise ValueError(f"object {row.track_id} is in frame {frame + 1} for the second time")
        except ValueError as error:
            raise EvaluationError(f"{path}:{number}: {error}") from error
        seen.add((frame, row.track_id))
        sequence.frames.setdefault(frame, []).append(row)
    declared = names if labels.is_file() else ()
    return Annotations(str(path), {name: sequence}, declared)


def read_mot_folder(folder: Path) -> Annotations:
    """All ``*/gt/gt.txt`` of a folder, or the one of a sequence's own folder.

    Raises:
        EvaluationError: if there is none, or as `read_mot`.
    """
    files = sorted(folder.glob("gt/gt.txt")) or sorted(folder.glob("*/gt/gt.txt"))
    if not files:
        raise EvaluationError(f"{folder}: has neither gt/gt.txt nor */gt/gt.txt")
    result = read_mot(files[0])
    for file in files[1:]:
        result = result.merged(read_mot(file))
    return result


def _row(line: str, names: tuple[str, ...]) -> tuple[int, Row]:
    columns = line.replace(",", " ").split()
    if len(columns) < 6:
        raise ValueError("a line needs at least frame, id, left, top, width, height")
    try:
        frame, track, left, top, width, height, *rest = (float(column) for column in columns)
    except ValueError as error:
        raise ValueError(f"not a number: {str(error).partition(': ')[2]}") from error
    if frame < 1 or not all(map(math.isfinite, (frame, track, left, top, width, height))):
        raise ValueError("frames count from 1, and boxes are finite")
    if width < 0 or height < 0:
        raise ValueError(f"width {width:g} and height {height:g} are not from 0 on")
    number = whole(rest[1]) if len(columns) in _WITH_CLASS else 1
    label = names[number - 1] if 0 < number <= len(names) else str(number)
    box = (left, top, left + width, top + height)
    return whole(frame) - 1, Row(label, box, track_id=whole(track), ignore=bool(rest) and rest[0] == 0)


def _described(path: Path) -> Sequence:
    if not path.is_file():
        return Sequence()
    info = configparser.ConfigParser()
    try:
        info.read_string(read_text(path))
        section = info["Sequence"]
        return Sequence(size=(int(section["imWidth"]), int(section["imHeight"])), length=int(section["seqLength"]))
    except (configparser.Error, KeyError, ValueError) as error:
        raise EvaluationError(f"{path}: needs imWidth, imHeight and seqLength under [Sequence]: {error}") from error

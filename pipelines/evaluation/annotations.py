"""Objects of frames, as evaluation sees them: the same for truth and predictions, from whatever file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elements.metadata.detections import BoolArray

Floats = NDArray[np.float64]
Points = Floats
"""(K, 3): x and y in source pixels, and of truth whether it is labelled (above 0), of predictions the score. NaN where
a point was not found."""
UNTRACKED = -1


class EvaluationError(ValueError):
    """Input that cannot be evaluated. The text names the file, and line or entry, and what to do."""


class Mask(NamedTuple):
    """Pixels of an object: ``pixels`` (h, w) bool, whose first pixel lies at column ``x``, row ``y`` of the frame."""

    x: int
    y: int
    pixels: BoolArray


class Row(NamedTuple):
    """One object. ``box`` is xyxy in source pixels, ``angle`` radians clockwise about the box's centre.

    ``ignore`` is for truth: such an object need not be found, and what is found inside of it is not wrong. ``area`` in
    pixels, if it is not the mask's or else the box's, is for the scale of key points.
    """

    label: str
    box: tuple[float, float, float, float]
    score: float = 1.0
    track_id: int = UNTRACKED
    angle: float = 0.0
    ignore: bool = False
    mask: Mask | None = None
    keypoints: Points | None = None
    area: float | None = None


@dataclass(slots=True)
class Objects:
    """Objects of one frame as arrays, one row per object; the fields are those of `Row`.

    ``crowd``: objects that any number of predictions may take.
    """

    labels: NDArray[np.str_]
    boxes: Floats
    scores: Floats
    track_ids: NDArray[np.int64]
    angles: Floats
    ignore: BoolArray
    crowd: BoolArray
    areas: Floats
    masks: list[Mask | None]
    keypoints: list[Points | None]

    @classmethod
    def of(cls, rows: list[Row]) -> Objects:
        """The arrays of rows."""
        return cls(
            np.array([row.label for row in rows], np.str_),
            np.array([row.box for row in rows], np.float64).reshape(-1, 4),
            np.array([row.score for row in rows], np.float64),
            np.array([row.track_id for row in rows], np.int64),
            np.array([row.angle for row in rows], np.float64),
            np.array([row.ignore for row in rows], bool),
            np.array([row.ignore for row in rows], bool),
            np.array([_area(row) for row in rows], np.float64),
            [row.mask for row in rows],
            [row.keypoints for row in rows],
        )

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, which: BoolArray | NDArray[np.intp]) -> Objects:
        """Rows picked by a boolean mask or an index array."""
        index = np.arange(len(self))[which]
        masks, keypoints = [self.masks[i] for i in index], [self.keypoints[i] for i in index]
        picked = (self.labels[index], self.boxes[index], self.scores[index], self.track_ids[index])
        more = (self.angles[index], self.ignore[index], self.crowd[index], self.areas[index])
        return Objects(*picked, *more, masks, keypoints)


def _area(row: Row) -> float:
    if row.area is not None:
        return row.area
    if row.mask is not None:
        return float(np.count_nonzero(row.mask.pixels))
    x1, y1, x2, y2 = row.box
    return max(0.0, x2 - x1) * max(0.0, y2 - y1)


@dataclass(slots=True)
class Sequence:
    """Frames of one video, or one picture (then its only frame is 0).

    Attributes:
        frames: rows by 0-based frame number; frames without objects have an empty list or are left out.
        size: (width, height) in pixels, if known.
        length: how many frames there are, if known.
    """

    frames: dict[int, list[Row]] = field(default_factory=dict)
    size: tuple[int, int] | None = None
    length: int | None = None


@dataclass(slots=True)
class Annotations:
    """Sequences by name.

    Attributes:
        origin: the file or folder, for messages.
        sequences: by name: a source's name, or a picture's file name without its ending.
        names: class names that the file declares, in its order; those that only occur on objects come after.
    """

    origin: str
    sequences: dict[str, Sequence] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """All objects of all frames."""
        return [row for sequence in self.sequences.values() for rows in sequence.frames.values() for row in rows]

    def all_names(self) -> tuple[str, ...]:
        """Class names, those declared first."""
        return tuple(dict.fromkeys([*self.names, *(row.label for row in self.rows())]))

    def renamed(self, names: Mapping[str, str]) -> Annotations:
        """The same with other class names, as far as ``names`` has them."""
        result = Annotations(self.origin, names=tuple(names.get(name, name) for name in self.names))
        for key, sequence in self.sequences.items():
            frames = {
                number: [row._replace(label=names.get(row.label, row.label)) for row in rows]
                for number, rows in sequence.frames.items()
            }
            result.sequences[key] = Sequence(frames, sequence.size, sequence.length)
        return result

    def merged(self, other: Annotations) -> Annotations:
        """Both together.

        Raises:
            EvaluationError: if both have a sequence of the same name.
        """
        twice = sorted(self.sequences.keys() & other.sequences.keys())
        if twice:
            raise EvaluationError(f"{self.origin} and {other.origin} both have '{twice[0]}'")
        names = tuple(dict.fromkeys([*self.names, *other.names]))
        return Annotations(f"{self.origin}, {other.origin}", self.sequences | other.sequences, names)


def read_text(path: Path) -> str:
    """The file's text.

    Raises:
        EvaluationError: if it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"{path}: cannot read it: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{path}: is not UTF-8 text") from error

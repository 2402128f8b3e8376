"""A frame as operators of one's own see it: arrays to read, and changes that are made when the operator returns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elements.metadata.detections import Detections

MOST_CLASSES = 2**31
"""Class numbers are below this: DeepStream's field is an int."""

Point = tuple[float, float]
Colour = tuple[float, float, float, float]

WHITE: Colour = (1.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Something to draw on a frame; source-frame pixels, colours RGBA from 0 to 1.

    A text starts at its one point (top left); a line joins its points.
    """

    points: tuple[Point, ...]
    colour: Colour
    text: str = ""
    size: int = 0


@dataclass(slots=True)
class Changes:
    """What an operator asked for; rows are those of the view's ``objects``."""

    removed: set[int] = field(default_factory=set)
    labels: dict[int, tuple[str, int | None]] = field(default_factory=dict)
    attributes: list[tuple[int, str, str, float]] = field(default_factory=list)
    object_data: list[tuple[int, str, Any]] = field(default_factory=list)
    frame_data: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    added: list[tuple[Detections, tuple[str, ...]]] = field(default_factory=list)


class FrameView:
    """One frame and its objects. Places are source-frame pixels (upright), as in the event file.

    Reading gives what the frame has when the operator is called; changes are made after it has returned, in the order
    of the methods' names here: objects go, are relabelled, get attributes and data, new ones come.

    Attributes:
        source: name of the source.
        source_id: its number, from 0.
        number: number of the frame, from 0 per source.
        time_s: the frame's own timestamp, seconds of stream time.
        time_utc: UTC time as ISO 8601, ``None`` where it is not known.
        width: width of the source's picture, pixels.
        height: its height.
        objects: the objects, oldest first: ``boxes`` (N, 4) xyxy, ``scores`` (NaN where the tracker continued an object
            without a detection), ``class_ids``, ``angles``, ``track_ids`` (-1: none), ``keypoints`` and ``attributes``
            (see `Detections`).
        labels: class name of each object.
        component_ids: (N,) which model found each object (``unique_id`` of its stage).
        data: what was attached to the frame, by name (``analytics`` of the analyze stage, say).
        object_data: the same for each object.
    """

    def __init__(
        self,
        source: str,
        source_id: int,
        number: int,
        time_s: float,
        time_utc: str | None,
        size: tuple[int, int],
        objects: Detections,
        labels: Sequence[str],
        component_ids: ArrayLike = (),
        data: Mapping[str, Any] | None = None,
        object_data: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.source, self.source_id, self.number = source, source_id, number
        self.time_s, self.time_utc = time_s, time_utc
        self.width, self.height = size
        self.objects, self.labels = objects, tuple(labels)
        self.component_ids: NDArray[np.int64] = np.asarray(component_ids, np.int64)
        self.data = dict(data or {})
        self.object_data = list(object_data) if object_data is not None else [{} for _ in self.labels]
        self.changes = Changes()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def centers(self) -> NDArray[np.float32]:
        """(N, 2) x, y of the boxes' centres."""
        boxes = self.objects.boxes
        return ((boxes[:, :2] + boxes[:, 2:]) / 2).astype(np.float32)

    # --- changes ------------------------------------------------------------------------------------------------------

    def keep(self, which: ArrayLike) -> None:
        """Remove all objects but these: a boolean per object, or row numbers.

        >>> frame.keep(frame.objects.scores > 0.5)
        """
        kept = set(self._rows(which))
        self.changes.removed |= {row for row in range(len(self)) if row not in kept}

    def remove(self, which: ArrayLike) -> None:
        """Remove these objects: a boolean per object, or row numbers."""
        self.changes.removed |= set(self._rows(which))

    def relabel(self, which: ArrayLike, label: str, class_id: int | None = None) -> None:
        """Give objects another class name, and another number if there is one."""
        for row in self._rows(which):
            self.changes.labels[row] = (_text("label", label), None if class_id is None else _class_id(class_id))

    def set_attribute(self, which: ArrayLike, name: str, value: str, probability: float = 1.0) -> None:
        """Give objects an attribute, as a classifier does: ``set_attribute(0, "colour", "red", 0.9)``."""
        for row in self._rows(which):
            given = (row, _text("name", name), _text("value", value), _number("probability", probability))
            self.changes.attributes.append(given)

    def attach(self, name: str, data: Any) -> None:
        """Attach data to the frame, in place of what it has under this name: anything that JSON can say.

        Raises:
            ValueError: if the name is one under which the program itself keeps data of another form.
        """
        self.changes.frame_data[_name(name, data)] = _plain(data)

    def attach_to(self, which: ArrayLike, name: str, data: Any) -> None:
        """Attach data to objects, as `attach` does to the frame."""
        name, plain = _name(name, data), _plain(data)
        self.changes.object_data += [(row, name, plain) for row in self._rows(which)]

    def emit(self, event: str, **data: Any) -> None:
        """Tell the world: the event stands in the frame's line of the event file, and messages carry it.

        >>> frame.emit("too-close", tracks=[3, 7], distance=12.5)
        """
        self.changes.events.append({"event": _text("event", event), **_plain(data)})

    def add(self, objects: Detections, labels: Sequence[str]) -> None:
        """Add objects, with a class name each.

        Raises:
            ValueError: if there is not one label per object, or a box or class number cannot be written.
        """
        if len(objects) != len(labels):
            raise ValueError(f"{len(objects)} objects need as many labels, not {len(labels)}")
        if not np.isfinite(objects.boxes).all() or not np.isfinite(objects.scores).all():
            raise ValueError("boxes and scores of added objects are finite numbers")
        for class_id in objects.class_ids.tolist():
            _class_id(class_id)
        self.changes.added.append((objects, tuple(_text("label", label) for label in labels)))

    def draw_text(self, text: str, x: float, y: float, colour: Colour = WHITE, size: int = 14) -> None:
        """Write a text whose top left corner is at (x, y); ``size`` in points."""
        drawing = Drawing((_point(x, y),), _colour(colour), _text("text", text), _thickness(size))
        self.changes.drawings.append(drawing)

    def draw_line(self, *points: Point, colour: Colour = WHITE, width: int = 2) -> None:
        """Draw a line through two or more points (x, y); ``width`` in pixels.

        Raises:
            ValueError: if there are fewer than two points.
        """
        if len(points) < 2:
            raise ValueError("a line needs two points at least")
        corners = tuple(_point(x, y) for x, y in points)
        self.changes.drawings.append(Drawing(corners, _colour(colour), size=_thickness(width)))

    def _rows(self, which: ArrayLike) -> list[int]:
        """Row numbers from a number, a list of numbers, or a boolean per object.

        Raises:
            IndexError: if there is no such row, or not one boolean per object.
        """
        asked = np.atleast_1d(np.asarray(which))
        if asked.dtype == bool and len(asked) != len(self):
            raise IndexError(f"{len(asked)} booleans for {len(self)} objects")
        if asked.dtype != bool and asked.size and not np.issubdtype(asked.dtype, np.integer):
            raise TypeError(f"objects are chosen by booleans or row numbers, not by {asked.dtype}")
        rows: list[int] = np.arange(len(self))[asked if asked.size else []].tolist()
        return rows


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{what} is a text that is not empty, not {value!r}")
    return _encodable(value)


def _encodable(text: str) -> str:
    """The text without the halves of UTF-16 pairs that Python tolerates and UTF-8 does not have: U+FFFD instead."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_KEPT = {
    "events": "emit() adds to them",
    "models": "it has the versions of the models",
    "keypoints": "add() takes objects with keypoints",
    "embedding": "add() takes objects with embeddings",
}


def _name(name: Any, data: Any) -> str:
    if name in _KEPT:
        raise ValueError(f"'{name}' is a name of the program's own: {_KEPT[name]}; choose another one")
    if name == "analytics" and not isinstance(data, Mapping):
        raise ValueError("'analytics' is a mapping by stage: choose another name, or attach {…}")
    return _text("name", name)


def _class_id(value: Any) -> int:
    if not 0 <= int(value) < MOST_CLASSES:
        raise ValueError(f"a class number is from 0 to {MOST_CLASSES - 1}, not {value}")
    return int(value)


def _number(what: str, value: Any) -> float:
    if not np.isfinite(float(value)):
        raise ValueError(f"{what} is a finite number, not {value}")
    return float(value)


def _point(x: Any, y: Any) -> Point:
    return _number("x", x), _number("y", y)


def _thickness(value: Any) -> int:
    if not 1 <= int(value) <= 1000:
        raise ValueError(f"a width or size to draw with is from 1 to 1000, not {value}")
    return int(value)


def _colour(value: Sequence[float]) -> Colour:
    red, green, blue, alpha = (_number("a part of a colour", part) for part in (*value, 1.0)[:4])
    return red, green, blue, alpha


def _plain(data: Any) -> Any:
    """The same data with nothing but JSON's types: NumPy's become plain, numbers that are none become null.

    Raises:
        TypeError: if there is something in it that JSON cannot say.
    """
    if isinstance(data, np.ndarray | np.generic):
        data = data.tolist()
    if isinstance(data, Mapping):
        return {_encodable(str(key)): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple | set | frozenset):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not np.isfinite(data):
        return None
    if isinstance(data, str):
        return _encodable(data)
    json.dumps(data)  # raises TypeError
    return data

"""What was found, in the formats that other tools read: KITTI, MOT and COCO."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from elements.base import ElementError
from pipelines.operators.base import Operator, Report
from pipelines.operators.frame_event import EventMaker

Event = Mapping[str, Any]

SOURCE_FIELD = "{source}"
NO_TRACK = -1


class Recording(ABC):
    """The files of one source. ``path`` is that of the definition with the source's name put in.

    Raises:
        OSError: from every method, if it cannot be written.
    """

    FORMAT: str

    def __init__(self, path: Path) -> None:
        self._path = path

    @abstractmethod
    def write(self, event: Event) -> None:
        """Write one frame."""

    def close(self) -> None:  # noqa: B027 (not all have something to close)
        """Finish the files."""


class Kitti(Recording):
    """A folder with one text file per frame, named as deepstream-app names them: ``00_SOURCE_FRAME.txt``.

    A line per object: ``label 0.0 0 0.0 left top right bottom 0.0 0.0 0.0 0.0 0.0 0.0 0.0 confidence``. A label's
    blanks become underscores. Frames without objects have an empty file.
    """

    FORMAT = "kitti"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        path.mkdir(parents=True, exist_ok=True)

    def write(self, event: Event) -> None:
        """See `Recording`."""
        lines = [
            f"{_word(item)} 0.0 0 0.0 {box} {'0.0 ' * 7}{_score(item):.6f}\n"
            for item in event["objects"]
            if (box := _text(item["bbox"], " ")) is not None
        ]
        name = f"00_{event['source_id']:03d}_{event['frame']:06d}.txt"
        (self._path / name).write_text("".join(lines), encoding="utf-8")


class _TextFile(Recording):
    """One text file, flushed after each frame."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file: TextIO = path.open("w", encoding="utf-8")

    def _add(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        """See `Recording`."""
        self._file.close()


class Mot(_TextFile):
    """One file of results as the MOT challenges take them, and TrackEval reads them.

    A line per object: ``frame,id,left,top,width,height,confidence,-1,-1,-1``; frames count from 1, pixels from 0; id -1
    where an object is not tracked, confidence 0 where only the tracker continued it.
    """

    FORMAT = "mot"

    def write(self, event: Event) -> None:
        """See `Recording`."""
        lines = []
        for item in event["objects"]:
            if None in item["bbox"]:
                continue
            x1, y1, x2, y2 = item["bbox"]
            track = NO_TRACK if item["track_id"] is None else item["track_id"]
            place = _text([x1, y1, x2 - x1, y2 - y1], ",")
            lines.append(f"{event['frame'] + 1},{track},{place},{_score(item):.6f},-1,-1,-1\n")
        self._add("".join(lines))


class Coco(_TextFile):
    """One JSON array of results as pycocotools takes them (``loadRes``).

    ``image_id`` is the number of the frame, ``category_id`` that of the class, ``bbox`` is left, top, width and height;
    ``segmentation``, ``keypoints`` and ``track_id`` where there are some. The array is closed when the run ends.
    """

    FORMAT = "coco"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._separator = "[\n"

    def write(self, event: Event) -> None:
        """See `Recording`."""
        for item in event["objects"]:
            if None not in item["bbox"]:
                self._add(self._separator + json.dumps(_coco_result(event["frame"], item), allow_nan=False))
                self._separator = ",\n"

    def close(self) -> None:
        """Close the array and the file."""
        self._add(("[" if self._separator == "[\n" else "\n") + "]\n")
        super().close()


FORMATS: dict[str, type[Recording]] = {kind.FORMAT: kind for kind in (Kitti, Mot, Coco)}


class Recorder(Operator):
    """Writes every frame in one of the `FORMATS`.

    Args:
        path: of the files; ``{source}`` stands for the source's name.
        fmt: name of the format.
        sources: source names, indexed by source id.
        padding: whether the stream mux keeps the aspect ratio by padding.
        mux_size: see `EventMaker`.
        report: see `Operator`.

    Raises:
        ElementError: if a file cannot be written.
    """

    def __init__(
        self,
        path: str,
        fmt: str,
        sources: Sequence[str],
        padding: bool,
        mux_size: tuple[int, int] | None,
        report: Report,
    ) -> None:
        super().__init__(report)
        self._path, self._sources = path, sources
        self._maker = EventMaker("", sources, padding, mux_size)
        self._recordings: dict[str, Recording] = {}
        try:
            for source in sources:
                target = self._target(source)
                if target not in self._recordings:
                    self._recordings[target] = FORMATS[fmt](Path(target))
        except OSError as error:
            raise _cannot_write(target, error) from None

    def process(self, batch_meta: Any) -> None:
        """Write the frames of one batch."""
        for frame in batch_meta.frame_items:
            event = self._maker.event_of(frame)
            target = self._target(event["source"])
            try:
                self._recordings[target].write(event)
            except OSError as error:
                raise _cannot_write(target, error) from None

    def close(self) -> None:
        """Finish every file.

        Raises:
            ElementError: if one cannot be finished: COCO's array would stay open.
        """
        problem = None
        for target, recording in self._recordings.items():
            try:
                recording.close()
            except OSError as error:
                problem = problem or _cannot_write(target, error)
        if problem is not None:
            raise problem

    def _target(self, source: str) -> str:
        return self._path.replace(SOURCE_FIELD, source)


def _cannot_write(path: str, error: OSError) -> ElementError:
    return ElementError(f"cannot write '{path}': {error.strerror}")


def _word(item: Mapping[str, Any]) -> str:
    return "_".join(str(item["label"]).split()) or str(item["class_id"])


def _score(item: Mapping[str, Any]) -> float:
    return 0.0 if item["confidence"] is None else float(item["confidence"])


def _text(values: Sequence[float | None], separator: str) -> str | None:
    """Numbers with two digits; ``None`` if one of them is none."""
    known = [value for value in values if value is not None]
    return separator.join(f"{value:.2f}" for value in known) if len(known) == len(values) else None


def _coco_result(frame: int, item: Mapping[str, Any]) -> dict[str, Any]:
    x1, y1, x2, y2 = item["bbox"]
    result: dict[str, Any] = {
        "image_id": frame,
        "category_id": item["class_id"],
        "bbox": [round(value, 2) for value in (x1, y1, x2 - x1, y2 - y1)],
        "score": _score(item),
    }
    if "mask" in item:
        result["segmentation"] = item["mask"]
    if "keypoints" in item:
        result["keypoints"] = [0.0 if value is None else value for point in item["keypoints"] for value in point]
    if item["track_id"] is not None:
        result["track_id"] = item["track_id"]
    return result

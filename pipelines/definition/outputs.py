"""Outputs: what a pipeline writes and shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Strict,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)

from pipelines.definition.fields import VARIABLE, Boolean, FilePath, Rate, as_path, wrong
from pipelines.definition.scalars import resolve
from pipelines.definition.sections import OneKey, one_key_tag, option

TileGrid = tuple[int, int]
EvenPixels = Annotated[int, Strict(), Field(ge=16, le=16384, multiple_of=2), BeforeValidator(resolve)]

SOURCE_FIELD = "{source}"
"""Stands for the source's name in the path of an output that writes one file per source."""


def _parse_tile(value: Any) -> str | TileGrid:
    if isinstance(value, tuple) or value in ("auto", "off"):
        return value if isinstance(value, tuple) else str(value)
    match = re.fullmatch(r"([1-9]\d?)x([1-9]\d?)", value) if isinstance(value, str) else None
    if match is None:
        raise wrong("is not a tiling", "write auto, off, or rows x columns like 2x3")
    return int(match[1]), int(match[2])


def _check_mp4(path: Path) -> Path:
    if path.suffix.lower() != ".mp4":
        raise wrong("does not end in .mp4", "video files are written as MP4")
    return path


def _events_path(value: Any, info: ValidationInfo) -> Any:
    return Path(value) if value == "-" else as_path(value, info)


Tile = Annotated[
    Literal["auto", "off"] | TileGrid,
    PlainValidator(_parse_tile),
    WithJsonSchema({"anyOf": [{"enum": ["auto", "off"]}, {"type": "string", "pattern": rf"^\d+x\d+$|{VARIABLE}"}]}),
]


class FileOutput(OneKey):
    """A video file (MP4) of the annotated frames: all sources in tiles, or one file per source."""

    KEY: ClassVar[str] = "file"

    path: Annotated[FilePath, AfterValidator(_check_mp4)] = Field(
        description="Path of the MP4; with tile: off, {source} stands for the source's name."
    )
    tile: Tile = option("auto", description="auto, off (one file per source) or rows x columns, e.g. 2x3.")
    width: EvenPixels | None = option(None, description="Width of the video, pixels; default: the mux's.")
    height: EvenPixels | None = option(None, description="Height of the video, pixels; default: the mux's.")
    codec: Literal["h264", "h265"] = option("h264", description="Video codec.")
    bitrate: Rate = option("4M", description="Bits per second of each file, e.g. 4M.")

    def path_for(self, source: str) -> Path:
        """The path with the source's name put in."""
        return Path(str(self.path).replace(SOURCE_FIELD, source))


class EventsOutput(OneKey):
    """Detections and tracks as JSON Lines, one line per source and frame."""

    KEY: ClassVar[str] = "events"

    path: Annotated[Path, BeforeValidator(_events_path)] = Field(
        description="Path of the .jsonl file; - is standard output."
    )
    embeddings: Boolean = option(False, description="Write the objects' embeddings, too.")

    @property
    def to_stdout(self) -> bool:
        """True when the lines go to standard output."""
        return str(self.path) == "-"


class RecordOutput(OneKey):
    """Detections and tracks in a format that other tools read."""

    KEY: ClassVar[str] = "record"

    format: Literal["kitti", "mot", "coco"] = Field(
        description="kitti: a folder of text files, one per frame; mot: a text file; coco: a JSON file of results."
    )
    path: FilePath = Field(
        description="Path of the file, for kitti of the folder; {source} stands for the source's name."
    )

    def path_for(self, source: str) -> Path:
        """The path with the source's name put in."""
        return Path(str(self.path).replace(SOURCE_FIELD, source))


class DisplayOutput(OneKey):
    """A window with the annotated frames of all sources in tiles."""

    KEY: ClassVar[str] = "display"


class NullOutput(OneKey):
    """No output: frames are processed and thrown away, to measure or to test."""

    KEY: ClassVar[str] = "null"


Output = Annotated[
    Annotated[FileOutput, Tag("file")]
    | Annotated[EventsOutput, Tag("events")]
    | Annotated[RecordOutput, Tag("record")]
    | Annotated[DisplayOutput, Tag("display")]
    | Annotated[NullOutput, Tag("null")],
    Discriminator(one_key_tag),
]

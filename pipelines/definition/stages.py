"""Stages: what happens to each batch, in order."""

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
from pydantic import Secret as PydanticSecret

from pipelines.definition.fields import (
    VARIABLE,
    Auto,
    BatchSize,
    Boolean,
    FilePath,
    Integer,
    Name,
    Number,
    Text,
    as_path,
    wrong,
    wrong_text,
)
from pipelines.definition.scalars import Scalar, resolve
from pipelines.definition.sections import OneKey, one_key_tag, option
from pipelines.definition.uris import unique_names

PropertyValue = bool | int | float | str

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")
_DEVICE = r"(auto|cpu|cuda(:\d+)?)"
_RESERVED = re.compile(r"mux|track|outputs|sink|(source|output)-\d+.*|.*-(queue|convert|caps)")
_SIZE = re.compile(r"([1-9]\d*)(?:x([1-9]\d*))?")


def _parse_model(value: Any, info: ValidationInfo) -> Path | str:
    if isinstance(value, str) and _IMPORT_PATH.fullmatch(value):
        return str(value)
    path = as_path(value, info)
    if not isinstance(path, Path):
        raise wrong_text("is not text", "write a path, or package.module:Class")
    return path


def _parse_labels(value: Any, info: ValidationInfo) -> Path | tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        if not value or not all(isinstance(item, str) for item in value):
            raise wrong_text(
                "needs one text per class", "write [person, car], or the path of a file with one name per line"
            )
        return tuple(_check_inline_label(str(item)) for item in value)
    path = as_path(value, info)
    if not isinstance(path, Path):
        raise wrong_text(
            "is neither a path nor a list", "write the path of a file with one name per line, or [person, car]"
        )
    return path


def _check_stage_name(name: str) -> str:
    if _RESERVED.fullmatch(name):
        raise wrong("is a name that the pipeline's own elements have", "choose another one")
    return name


def _check_inline_label(name: str) -> str:
    if "," in name:
        raise wrong_text(f"the name '{name}' has a comma in it", "write the names into a file, one per line")
    return name


def _parse_device(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(_DEVICE, value):
        raise wrong("is not a device", "use auto, cpu, cuda or cuda:N")
    return str(value)


def _parse_size(value: Any) -> tuple[int, int] | None:
    if value is None or isinstance(value, tuple):
        return value
    match = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None:
        raise wrong("is not a size", "write auto, 640, or width x height like 640x384")
    return int(match[1]), int(match[2] or match[1])


def _class(value: Any) -> Any:
    value = resolve(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong("is neither a class name nor a number", "write names or ids: [person, 2]")
    return value


def _property(value: Any) -> Any:
    if isinstance(value, PydanticSecret):
        return value
    plain = resolve(value)
    if not isinstance(plain, bool | int | float | str):
        raise wrong_text("is not a single value", "write text, a number, true or false")
    return PydanticSecret(plain) if isinstance(value, Scalar) and value.secret else plain


def _text_or(*alternatives: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "string"}, *alternatives]})


StageName = Annotated[Name, AfterValidator(_check_stage_name)]
TrackerPixels = Annotated[int, Strict(), Field(ge=32, le=16384, multiple_of=32), BeforeValidator(resolve)]
ClassId = Annotated[int, Strict(), Field(ge=0), BeforeValidator(resolve)]
UniqueId = Annotated[int, Strict(), Field(ge=1), BeforeValidator(resolve)]
ByteValue = Annotated[int, Strict(), Field(ge=0, le=255), BeforeValidator(resolve)]
Model = Annotated[Path | str, PlainValidator(_parse_model), WithJsonSchema({"type": "string"})]
Labels = Annotated[
    Path | tuple[str, ...] | None,
    PlainValidator(_parse_labels),
    _text_or({"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "null"}),
]
Device = Annotated[
    str, PlainValidator(_parse_device), WithJsonSchema({"type": "string", "pattern": f"^{_DEVICE}$|{VARIABLE}"})
]
Size = Annotated[
    tuple[int, int],
    PlainValidator(_parse_size),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": rf"^\d+(x\d+)?$|{VARIABLE}"}]}
    ),
]
ClassFilter = Annotated[int | str, PlainValidator(_class), WithJsonSchema({"type": ["string", "integer"]})]
NodeProperty = Annotated[
    PropertyValue | PydanticSecret[PropertyValue],
    PlainValidator(_property),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


class InferStage(OneKey):
    """Run a model on every frame."""

    KEY: ClassVar[str] = "infer"

    name: StageName | None = option(None, description="Name of this stage; default: infer, infer-2 …")
    model: Model = Field(description="Path of a model file, or a Python class as package.module:Class.")
    task: Literal["detect"] = option("detect", description="What the model does.")
    engine: Literal["auto", "onnx", "torch", "tensorrt", "ultralytics"] = option(
        "auto", description="What runs the model; auto: by file type."
    )
    precision: Literal["auto", "fp32", "fp16"] = option(
        "auto", description="auto: as the file was made, and fp16 for torch on a GPU."
    )
    weights: FilePath | None = option(None, description="State dict for a torch.nn.Module class of your own.")
    trust: Boolean = option(
        False, description="Load a pickled model, which can run any code when it is loaded: only from who you trust."
    )
    layout: Literal["auto", "yolov5", "yolov8", "yolov8-transposed", "yolox", "yolox-decoded", "end2end"] = option(
        "auto", description="Layout of the model's output; auto: read from the model."
    )
    labels: Labels = option(
        None, description="File with one class name per line, or the names; default: the model's own."
    )
    confidence: Number = option(0.25, ge=0, le=1, description="Objects below this confidence are left out.")
    iou: Number = option(0.45, ge=0, le=1, description="Boxes of one class that overlap more are merged (NMS).")
    interval: Integer = option(0, ge=0, description="Frames skipped between two inferences of a source.")
    device: Device = option("auto", description="auto, cpu, cuda or cuda:N; only auto falls back.")
    batch_size: Auto[BatchSize] = option("auto", description="Frames per inference; auto: the mux's batch.")
    unique_id: UniqueId | None = option(None, description="Component id in the metadata; default: 1, 2 … by order.")
    letterbox: Literal["auto", "center", "top-left", "stretch"] = option(
        "auto", description="How a frame is fitted to the model's input; auto: by layout."
    )
    color: Literal["auto", "rgb", "bgr"] = option("auto", description="Channel order of the model's input.")
    scale: Literal["auto", "0-1", "0-255"] = option("auto", description="Range of the model's input values.")
    pad: Auto[ByteValue] = option("auto", description="Value of the letterbox border; auto: by layout.")
    coordinates: Literal["auto", "pixel", "normalized"] = option("auto", description="Unit of the model's boxes.")
    input_size: Auto[Size] = option(
        "auto", description="Input of a model with free size: 640 or 640x384 (width x height)."
    )
    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Classes to keep, names or ids; default: all."
    )
    on_error: Literal["stop", "skip"] = option(
        "stop", description="When the model fails on a frame: stop the run, or skip the frame and count it."
    )


class TrackStage(OneKey):
    """Follow objects from frame to frame and give them ids (nvtracker)."""

    KEY: ClassVar[str] = "track"

    config: FilePath | None = option(
        None, description="Tracker configuration file (DeepStream's YAML); default: built in."
    )
    width: TrackerPixels | None = option(None, description="Width that the tracker works at, pixels.")
    height: TrackerPixels | None = option(None, description="Height that the tracker works at, pixels.")
    classes: tuple[ClassId, ...] | None = option(
        None, min_length=1, description="Class ids to follow; others pass untouched; default: all."
    )


class DrawStage(OneKey):
    """Draw boxes and labels into the frames (nvdsosd)."""

    KEY: ClassVar[str] = "draw"

    boxes: Boolean = option(True, description="Draw the boxes.")
    labels: Boolean = option(True, description="Draw the class names.")
    confidence: Boolean = option(False, description="Add the confidence to the label.")
    ids: Boolean = option(True, description="Add the track id to the label.")
    line_width: Integer = option(3, ge=1, le=64, description="Width of box borders, pixels of the output.")
    font_size: Integer = option(12, ge=4, le=200, description="Size of label text, points.")


class NodeStage(OneKey):
    """Any GStreamer element, with its own properties, at this place of the order."""

    KEY: ClassVar[str] = "node"

    factory: Text = Field(description="Element factory, as gst-inspect-1.0 lists it.")
    name: StageName | None = option(None, description="Name of the element; default: the factory's.")
    properties: dict[Text, NodeProperty] = option({}, description="Properties of the element and their values.")


Stage = Annotated[
    Annotated[InferStage, Tag("infer")]
    | Annotated[TrackStage, Tag("track")]
    | Annotated[DrawStage, Tag("draw")]
    | Annotated[NodeStage, Tag("node")],
    Discriminator(one_key_tag),
]


def with_names(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The same stages; every infer and node stage has a name of its own, every infer stage a unique id."""
    named = [s for s in stages if isinstance(s, InferStage | NodeStage)]
    defaults = [s.factory if isinstance(s, NodeStage) else s.KEY for s in named]
    names = iter(unique_names([s.name for s in named], defaults))
    taken = {s.unique_id for s in stages if isinstance(s, InferStage)}
    free_ids = (n for n in range(1, len(stages) + len(taken) + 1) if n not in taken)
    result: list[Stage] = []
    for stage in stages:
        update: dict[str, Any] = {}
        if isinstance(stage, InferStage | NodeStage):
            update["name"] = next(names)
        if isinstance(stage, InferStage) and stage.unique_id is None:
            update["unique_id"] = next(free_ids)
        result.append(stage.model_copy(update=update))
    return tuple(result)

"""Types of the values that stages take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic import Secret as PydanticSecret

from pipelines.definition.fields import (
    VARIABLE,
    Name,
    as_path,
    wrong,
    wrong_text,
)
from pipelines.definition.scalars import Scalar, resolve

PropertyValue = bool | int | float | str

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")
_DEVICE = r"(auto|cpu|cuda(:\d+)?)"
_RESERVED = re.compile(
    r"mux|track|outputs|sink|counter|angles|draw-(keypoints|analytics)|(events|record)-\d+|(source|output)-\d+.*|"
    r".*-(queue|convert|caps|tee)"
)
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
        raise wrong("is not a size", "write 640, or width x height like 640x384")
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


def _parse_params(value: Any) -> Any:
    if isinstance(value, PydanticSecret) or value is None:
        return value or PydanticSecret({})
    if not isinstance(value, dict):
        raise wrong_text("is not a mapping of parameters", "write {threshold: 0.5}")
    return PydanticSecret({str(key): plain_tree(item) for key, item in value.items()})


def plain_tree(value: Any) -> Any:
    """Plain values all the way down."""
    if isinstance(value, dict):
        return {str(key): plain_tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_tree(item) for item in value]
    return None if isinstance(value, Scalar) and value.null else resolve(value)


def _parse_import_path(value: Any) -> str:
    if not isinstance(value, str) or not _IMPORT_PATH.fullmatch(value):
        raise wrong("is not an import path", "write package.module:name")
    return str(value)


def _text_or(*alternatives: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": "string"}, *alternatives]})


StageName = Annotated[Name, AfterValidator(_check_stage_name)]
TrackerPixels = Annotated[int, Strict(), Field(ge=32, le=16384, multiple_of=32), BeforeValidator(resolve)]
ClassId = Annotated[int, Strict(), Field(ge=0), BeforeValidator(resolve)]
UniqueId = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1), BeforeValidator(resolve)]
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
ImportPath = Annotated[str, PlainValidator(_parse_import_path), WithJsonSchema({"type": "string"})]
Params = Annotated[
    PydanticSecret[dict[str, Any]], PlainValidator(_parse_params), WithJsonSchema({"type": ["object", "null"]})
]
"""Parameters of a class or function of the user's. Hidden, since they may come from the environment."""

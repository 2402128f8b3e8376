"""The two shapes of a definition: a section of keys, and an item of one key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


def option(default: Any, *, description: str, **limits: Any) -> Any:
    """A key with a default, given as it would be written in a file (``10s``, ``auto``) and validated like it."""
    return Field(default, description=description, **limits)


class Section(BaseModel):
    """A group of keys. Unknown keys are refused, and ``key:`` with nothing after it means all defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def accept(cls, data: Any) -> Any:
        """Other ways to write this section, as a mapping of its fields."""
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        keys = handler.resolve_ref_schema(schema)
        if "required" not in keys:
            keys["type"] = ["object", "null"]
        return schema


class OneKey(Section):
    """An item of an ordered list, written as a mapping of one key (``KEY``) to its options."""

    KEY: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def accept(cls, data: Any) -> Any:
        """The options, without the key."""
        if isinstance(data, Mapping) and list(data) == [cls.KEY]:
            data = data[cls.KEY]
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        options = super().__get_pydantic_json_schema__(core, handler)
        description = handler.resolve_ref_schema(options)["description"]
        return {
            "type": "object",
            "title": cls.KEY,
            "description": description,
            "properties": {cls.KEY: {**options, "title": cls.KEY, "description": description}},
            "required": [cls.KEY],
            "additionalProperties": False,
        }


def one_key_tag(item: Any) -> str | None:
    """The key of a one-key item; None when it has none or several."""
    if isinstance(item, OneKey):
        return item.KEY
    return str(next(iter(item))) if isinstance(item, Mapping) and len(item) == 1 else None

"""The JSON Schema of definitions, for editors."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pipelines.definition.definition import Definition
from pipelines.definition.fields import VARIABLE

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """A number, a boolean or a choice may also be written as an environment variable."""

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return _or_variable(super().int_schema(schema))

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return _or_variable(super().float_schema(schema))

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return _or_variable(super().bool_schema(schema))

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _or_variable(super().literal_schema(schema))


def _or_variable(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"anyOf": [schema, {"type": "string", "pattern": f"^{VARIABLE}$"}]}


def definition_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a definition file, generated from the models."""
    schema = Definition.model_json_schema(schema_generator=_Generator)
    schema.update({"title": "gstorch pipeline definition", "description": Definition.__doc__})
    return {"$schema": DIALECT, **schema}

"""The node stage."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.definition.fields import Text
from pipelines.definition.sections import OneKey, option
from pipelines.definition.stages.types import NodeProperty, StageName


class NodeStage(OneKey):
    """Any GStreamer element, with its own properties, at this place of the order."""

    KEY: ClassVar[str] = "node"

    factory: Text = Field(description="Element factory, as gst-inspect-1.0 lists it.")
    name: StageName | None = option(None, description="Name of the element; default: the factory's.")
    properties: dict[Text, NodeProperty] = option({}, description="Properties of the element and their values.")

"""The definition of a pipeline: models, loader and JSON Schema. No GStreamer here."""

from pipelines.definition.catalog import Catalog, PropertyInfo
from pipelines.definition.definition import Definition
from pipelines.definition.loader import definition_from_mapping, load_definition
from pipelines.definition.mux import Mux
from pipelines.definition.outputs import DisplayOutput, EventsOutput, FileOutput, NullOutput, Output, RecordOutput
from pipelines.definition.problems import DefinitionError, Problem
from pipelines.definition.runtime import Runtime
from pipelines.definition.schema import definition_schema
from pipelines.definition.source_infer import SourceInfer
from pipelines.definition.sources import Reconnect, Source
from pipelines.definition.stages import (
    AnalyzeStage,
    DrawStage,
    FilterStage,
    InferStage,
    MessageStage,
    NodeStage,
    OperateStage,
    PromptStage,
    Stage,
    TrackStage,
)
from pipelines.definition.swap import Swap

__all__ = [
    "AnalyzeStage",
    "Catalog",
    "Definition",
    "DefinitionError",
    "DisplayOutput",
    "DrawStage",
    "EventsOutput",
    "FileOutput",
    "FilterStage",
    "InferStage",
    "MessageStage",
    "Mux",
    "NodeStage",
    "NullOutput",
    "OperateStage",
    "Output",
    "Problem",
    "PromptStage",
    "PropertyInfo",
    "Reconnect",
    "RecordOutput",
    "Runtime",
    "Source",
    "SourceInfer",
    "Stage",
    "Swap",
    "TrackStage",
    "definition_from_mapping",
    "definition_schema",
    "load_definition",
]

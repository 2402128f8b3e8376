"""Checks that need more than one value, or the file system.

Source files are not looked for: a source that is missing fails alone, in the run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elements.portable.tracking import TrackerConfigError, read_tracker_file
from pipelines.definition.analyze_checks import check_analyze_stages
from pipelines.definition.catalog import Catalog, check_node
from pipelines.definition.document import Document
from pipelines.definition.infer_checks import check_infer_stages
from pipelines.definition.message_checks import check_message_stages
from pipelines.definition.outputs import SOURCE_FIELD, EventsOutput, FileOutput, Output, RecordOutput
from pipelines.definition.own_code_checks import check_operators
from pipelines.definition.problems import KeyPath
from pipelines.definition.prompt_checks import check_prompt_stages
from pipelines.definition.sections import one_key_tag
from pipelines.definition.source_checks import check_source_infer, check_source_keys, model_files
from pipelines.definition.sources import Source
from pipelines.definition.stages import (
    AnalyzeStage,
    InferStage,
    MessageStage,
    NodeStage,
    Stage,
    TrackStage,
    can_be_named,
)
from pipelines.definition.validation import SURE, did_you_mean

ONCE = ("track", "draw")
"""Stages that a definition has at most once."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The items of a definition that could be read, by their index; all have names."""

    sources: Mapping[int, Source]
    stages: Mapping[int, Stage]
    outputs: Mapping[int, Output]


def check_parts(document: Document, parts: Parts, catalog: Catalog | None) -> None:
    """Add what is wrong between the parts to the problems of ``document``."""
    _check_unique(document, "name", [(("sources", i, "name"), s.name) for i, s in parts.sources.items()])
    _check_stage_names(document, parts.stages)
    _check_stage_order(document)
    for index, stage in parts.stages.items():
        _check_stage(document, ("stages", index, stage.KEY), stage, catalog)
    check_infer_stages(document, parts.stages)
    check_operators(document, parts.stages)
    check_analyze_stages(document, parts.sources, parts.stages)
    check_prompt_stages(document, parts.stages)
    check_message_stages(document, parts.sources, parts.stages, parts.outputs)
    check_source_keys(document, parts.sources)
    check_source_infer(document, parts.sources, parts.stages)
    for path, model in model_files(parts.sources).items():
        _check_file(document, path, model)
    _check_outputs(document, parts)


def _check_unique(document: Document, what: str, values: Sequence[tuple[KeyPath, object]]) -> None:
    first: dict[object, KeyPath] = {}
    for path, value in values:
        if value in first:
            taken = document.place(first[value])
            where = f"in line {taken.line}" if taken.line is not None else "by another one"
            document.problem(path, f"{what} {document.shown(path)} is already taken {where}", "each needs its own")
        first.setdefault(value, path)


# --- stages -----------------------------------------------------------------------------------------------------------


def _check_stage_names(document: Document, stages: Mapping[int, Stage]) -> None:
    named: dict[int, Any] = {i: s for i, s in stages.items() if can_be_named(s)}
    _check_unique(document, "name", [(("stages", i, s.KEY, "name"), s.name) for i, s in named.items()])
    infer = {i: s for i, s in named.items() if isinstance(s, InferStage) and s.merge_with is None}
    ids = [(("stages", i, s.KEY, "unique_id"), s.unique_id) for i, s in infer.items()]
    _check_unique(document, "unique_id", ids)


def _check_stage_order(document: Document) -> None:
    """Objects must be found before they are followed, and be there before they are drawn."""
    items = document.at(("stages",))
    keys = [one_key_tag(item) or "" for item in items] if isinstance(items, list) else []
    for index, key in enumerate(keys):
        path = ("stages", index, key)
        if key in ONCE and key in keys[:index]:
            document.problem(path, f"a second {key} stage", "remove one", of_key=True)
        elif key == "track" and not {"infer", "node"} & set(keys[:index]):
            hint = _below(keys, "infer") if "infer" in keys else "add an infer stage above it"
            document.problem(path, "nothing to track: no infer stage comes before it", hint, of_key=True)
        elif key == "draw":
            for late in ("track", "infer"):
                if late in keys[index:]:
                    document.problem(
                        path, f"{late} comes after it, too late to be drawn", _below(keys, late), of_key=True
                    )


def _below(keys: list[str], stage: str) -> str:
    return f"move it below stages[{len(keys) - 1 - keys[::-1].index(stage)}].{stage}"


def _check_stage(document: Document, path: KeyPath, stage: Stage, catalog: Catalog | None) -> None:
    if isinstance(stage, InferStage):
        _check_file(document, (*path, "model"), stage.model)
        _check_file(document, (*path, "labels"), stage.labels)
        _check_file(document, (*path, "weights"), stage.weights)
    elif isinstance(stage, TrackStage | AnalyzeStage):
        _check_file(document, (*path, "config"), stage.config)
        if isinstance(stage, TrackStage):  # after that: a file that is not there is told once
            _check_tracker_file(document, (*path, "config"), stage.config)
    elif isinstance(stage, MessageStage):
        for key in ("config", "adaptor_config"):
            _check_file(document, (*path, key), getattr(stage, key))
        for key in ("ca", "cert", "key"):
            _check_file(document, (*path, "tls", key), getattr(stage.tls, key))
    elif isinstance(stage, NodeStage) and catalog is not None:
        check_node(document, path, stage, catalog)


def _check_file(document: Document, key: KeyPath, file: object) -> None:
    if not isinstance(file, Path) or not document.look_for_files:
        return
    shown = document.shown(key)
    try:
        if file.is_file():
            return
        if file.is_dir():
            document.problem(key, f"{shown} is a folder", "write the path of a file in it")
            return
        siblings = [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []
    except OSError as error:
        document.problem(key, f"{shown} cannot be read: {error.strerror}")
        return
    from_environment = "${" in document.place(key).text
    hint = did_you_mean(file.name, siblings, SURE) or ("" if from_environment else f"looked in {file.parent}")
    if file.suffix == ".engine" and (onnx := file.with_suffix(".onnx")).name in siblings and not from_environment:
        hint = f"make it for this machine: gstorch models build {onnx}"
    document.problem(key, f"no file {shown}", hint)


def _check_tracker_file(document: Document, key: KeyPath, file: Path | None) -> None:
    if file is None or not document.look_for_files:
        return
    try:
        read_tracker_file(file)
    except TrackerConfigError as error:
        document.problem(key, str(error))


# --- outputs ----------------------------------------------------------------------------------------------------------


def _check_outputs(document: Document, parts: Parts) -> None:
    names = [str(source.name) for source in parts.sources.values()]
    inputs = {os.path.realpath(s.location): s.name for s in parts.sources.values() if s.kind == "file"}
    written: dict[str, KeyPath] = {}
    for index, output in parts.outputs.items():
        if not isinstance(output, FileOutput | EventsOutput | RecordOutput):
            continue
        path: KeyPath = ("outputs", index, output.KEY, "path")
        if isinstance(output, FileOutput):
            _check_layout(document, ("outputs", index, "file"), output, len(names))
        elif isinstance(output, RecordOutput):
            _check_recording(document, path, output, len(names))
        targets = [output.path] if isinstance(output, EventsOutput) else [output.path_for(name) for name in names]
        for target in {str(t) if str(t) == "-" else os.path.realpath(t) for t in targets}:
            if target in inputs:
                document.problem(path, f"would overwrite the source '{inputs[target]}'", "write to another path")
            if target in written and written[target] != path:
                other = document.place(written[target]).line
                where = f"in line {other}" if other is not None else "by another output"
                document.problem(path, f"{document.shown(path)} is already written {where}", "write to another path")
            written.setdefault(target, path)


def _check_recording(document: Document, path: KeyPath, output: RecordOutput, sources: int) -> None:
    """MOT and COCO count the frames of one video; a folder of KITTI files has the source in their names."""
    if output.format != "kitti" and sources > 1 and SOURCE_FIELD not in str(output.path):
        hint = f"e.g. out/{SOURCE_FIELD}.{'txt' if output.format == 'mot' else 'json'}"
        document.problem(path, f"one {output.format} file per source needs {SOURCE_FIELD} in its path", hint)


def _check_layout(document: Document, path: KeyPath, output: FileOutput, sources: int) -> None:
    """Whether tiles, size and path fit each other and the number of sources."""
    has_field = SOURCE_FIELD in str(output.path)
    if output.tile == "off" and sources > 1 and not has_field:
        hint = f"e.g. out/{SOURCE_FIELD}.mp4"
        document.problem((*path, "path"), f"one file per source needs {SOURCE_FIELD} in its path", hint)
    if output.tile != "off" and sources > 1 and has_field:
        document.problem((*path, "path"), f"{SOURCE_FIELD} needs one file per source", "add 'tile: off'")
    if isinstance(output.tile, tuple) and output.tile[0] * output.tile[1] < sources:
        shown, places = document.shown((*path, "tile")), output.tile[0] * output.tile[1]
        document.problem((*path, "tile"), f"{shown} holds {places} of {sources} sources", "make it larger, or auto")
    if (output.width is None) != (output.height is None):
        given, missing = ("width", "height") if output.height is None else ("height", "width")
        document.problem((*path, given), f"needs {missing} too", "give both, or neither")

"""Whether a source's keys mean something for it, and whether what it wants of infer stages can be had."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.source_infer import SourceInfer
from pipelines.definition.sources import Source
from pipelines.definition.stages import InferStage, Stage
from pipelines.definition.uris import Kind
from pipelines.definition.validation import did_you_mean

_CAMERA_KEYS = ("latency", "timeout", "reconnect")
_WITHOUT_EFFECT: dict[Kind, tuple[str, ...]] = {
    "file": ("username", "password", *_CAMERA_KEYS),
    "http": (*_CAMERA_KEYS, "loop"),
    "rtsp": ("loop",),
}
_SHOWN: dict[Kind, str] = {"file": "a file", "http": "an http source", "rtsp": "a camera"}


def check_source_keys(document: Document, sources: Mapping[int, Source]) -> None:
    """Add keys that do nothing for their kind of source to the problems of ``document``.

    A definition for cameras may be tried on files, so keys are left alone where a variable is the start of the uri, or
    where ``--set`` replaced the uri but not the key.
    """
    for index, source in sources.items():
        path: KeyPath = ("sources", index)
        uri = document.place((*path, "uri"))
        if uri.text.startswith("${"):
            continue
        for key in _WITHOUT_EFFECT[source.kind]:
            replaced = uri.file != document.file == document.place((*path, key), of_key=True).file
            given = document.at((*path, key))
            if replaced or given is None or (key == "loop" and not source.loop):
                continue
            hint = "remove it: only a file is looped"
            if key != "loop":
                hint = "remove it, or write a camera's address as uri"
            document.problem((*path, key), f"has no effect on {_SHOWN[source.kind]}", hint, of_key=True)


def check_source_infer(document: Document, sources: Mapping[int, Source], stages: Mapping[int, Stage]) -> None:
    """Add what is wrong to the problems of ``document``. Items by their index in the definition."""
    infer = {str(stage.name): stage for stage in stages.values() if isinstance(stage, InferStage)}
    for index, source in sources.items():
        for name, options in source.infer.items():
            path: KeyPath = ("sources", index, "infer", name)
            finder = infer[name].operate_on if name in infer else None
            if finder is not None and options.region is not None:
                hint = f"write it at stage '{finder.stage}', which finds the objects"
                document.problem((*path, "region"), "this stage works on objects, not on the picture", hint)
            elif name in infer:
                _check_classes(document, (*path, "classes"), options, infer[name])
            else:
                known = f"known: {', '.join(infer)}" if infer else "there is none"
                document.problem(path, f"no infer stage '{name}'", did_you_mean(name, infer) or known, of_key=True)


def _check_classes(document: Document, path: KeyPath, options: SourceInfer, stage: InferStage) -> None:
    """By name only: which name has a number is known when the model is loaded."""
    kept = stage.classes or ()
    if not kept or not all(isinstance(item, str) for item in kept):
        return
    for place, item in enumerate(options.classes or ()):
        if isinstance(item, str) and item not in kept:
            document.problem(
                (*path, place), f"'{item}' is not kept by stage '{stage.name}'", f"keeps: {', '.join(map(str, kept))}"
            )


def model_files(sources: Mapping[int, Source]) -> dict[KeyPath, Path]:
    """The model files that sources name, by their place in the definition."""
    return {
        ("sources", index, "infer", name, "model"): options.model
        for index, source in sources.items()
        for name, options in source.infer.items()
        if isinstance(options.model, Path)
    }

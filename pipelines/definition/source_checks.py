"""Whether what sources want of infer stages can be had: the stages must be there, and keep the classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.source_infer import SourceInfer
from pipelines.definition.sources import Source
from pipelines.definition.stages import InferStage, Stage
from pipelines.definition.validation import did_you_mean


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

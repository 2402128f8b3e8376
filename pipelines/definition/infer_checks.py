"""Checks of infer stages against each other, and against the code of the user that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elements.inference.errors import ModelError
from elements.inference.names import read_labels
from elements.inference.own import OF_NETWORKS, is_network, unseen_options
from elements.inference.postprocess import GIVEN
from pipelines.definition.document import Document
from pipelines.definition.own_code_checks import check_params, imported
from pipelines.definition.problems import KeyPath
from pipelines.definition.stages import InferStage, Stage
from pipelines.definition.validation import did_you_mean

_LABELLING = ("classify", "embed", "pose")  # tasks whose results, on objects, are attached to these
_SUPPLIED = ("config",)  # parameters that the program gives
_SUPPLIED_TO_FUNCTION = ("config", "names")


def check_infer_stages(document: Document, stages: Mapping[int, Stage]) -> None:
    """Add what is wrong with infer stages to the problems of ``document``. ``stages`` have names."""
    infer = {index: stage for index, stage in stages.items() if isinstance(stage, InferStage)}
    for index, stage in infer.items():
        path: KeyPath = ("stages", index, "infer")
        if stage.operate_on is not None:
            found = _stage_before(document, (*path, "operate_on", "stage"), stage.operate_on.stage, index, infer)
            if found is not None and found.operate_on is not None and found.task in _LABELLING:
                text = f"stage '{found.name}' finds no objects, its task is {found.task}"
                hint = f"name the one that finds them, such as {found.operate_on.stage}"
                document.problem((*path, "operate_on", "stage"), text, hint)
            if found is not None and stage.operate_on.classes:
                merged = [other for other in infer.values() if other.merge_with == found.name]
                _check_classes(document, (*path, "operate_on", "classes"), stage.operate_on.classes, [found, *merged])
        if stage.merge_with is not None:
            _check_merged(document, path, stage)
            _stage_before(document, (*path, "merge_with"), stage.merge_with, index, infer)
        _check_own_code(document, path, stage)


# --- stages that others name ------------------------------------------------------------------------------------------


def _stage_before(
    document: Document, path: KeyPath, name: str, index: int, infer: Mapping[int, InferStage]
) -> InferStage | None:
    """The infer stage of that name, which must come before stage ``index``."""
    places = {str(stage.name): place for place, stage in infer.items()}
    place = places.get(name)
    if place is None:
        before = [known for known, place in places.items() if place < index]
        hint = did_you_mean(name, before) or (f"there are: {', '.join(before)}" if before else "none comes before it")
        document.problem(path, f"no infer stage is named {document.shown(path)}", hint)
    elif place == index:
        document.problem(path, f"{document.shown(path)} is this stage itself", "name the one that finds the objects")
    elif place > index:
        hint = f"move this stage below stages[{place}].infer"
        document.problem(path, f"stage {document.shown(path)} comes after this one", hint)
    else:
        return infer[place]
    return None


def _check_classes(
    document: Document, path: KeyPath, classes: Sequence[str | int], found: Sequence[InferStage]
) -> None:
    """Whether a stage, with those merged with it, has these classes; where only their models know, the start tells."""
    known: dict[str | int, None] = {}
    for stage in found:
        try:
            names = read_labels(str(stage.labels) if isinstance(stage.labels, Path) else stage.labels)
        except ModelError:
            return  # the stage itself is told
        if not names:
            return
        known |= dict.fromkeys(names) | dict.fromkeys(range(stage.class_offset, stage.class_offset + len(names)))
    texts = [name for name in known if isinstance(name, str)]
    for place, name in enumerate(classes):
        if name not in known:
            item = (*path, place)
            hint = did_you_mean(str(name), texts) or f"it has {', '.join(texts[:20])}"
            document.problem(item, f"stage '{found[0].name}' has no class {document.shown(item)}", hint)


def _check_merged(document: Document, path: KeyPath, stage: InferStage) -> None:
    given = document.at(path)
    if isinstance(given, Mapping) and given.get("unique_id") is not None:
        document.problem((*path, "unique_id"), "is that of the stage it is merged with", "remove it, or merge_with")
    if stage.operate_on is not None:
        document.problem((*path, "merge_with"), "is for stages over whole frames", "remove it, or operate_on")


# --- code of the user -------------------------------------------------------------------------------------------------


def _check_own_code(document: Document, path: KeyPath, stage: InferStage) -> None:
    """Whether class, function and parameters fit, as far as they can be imported here. Else the start tells."""
    own_class = None if isinstance(stage.model, Path) else imported(document, (*path, "model"), stage.model, "class")
    function = None
    if stage.postprocess is not None:
        function = imported(document, (*path, "postprocess"), stage.postprocess, "function")
        if own_class is not None and not is_network(own_class):
            document.problem((*path, "postprocess"), "is for model files", "the class can do it in infer()")
            return
    if stage.weights is not None and isinstance(stage.model, Path):
        document.problem((*path, "weights"), "is for a class of your own", "model: package.module:Class")
    params = stage.params.get_secret_value()
    if function is not None:
        check_params(document, (*path, "params"), function, params, _SUPPLIED_TO_FUNCTION, GIVEN)
    elif own_class is not None:
        check_params(document, (*path, "params"), own_class, params, _SUPPLIED)
        if not is_network(own_class):
            _check_options_of_class(document, path, stage, own_class)
    elif params and isinstance(stage.model, Path) and stage.postprocess is None:
        hint = "model: package.module:Class, or postprocess: package.module:function"
        document.problem((*path, "params"), "is for a class or function of your own", hint)


def _check_options_of_class(document: Document, path: KeyPath, stage: InferStage, own_class: Any) -> None:
    given = {name: getattr(stage, name) for name in OF_NETWORKS}
    for name in unseen_options(given, own_class):
        hint = f"remove it, or give the class a parameter 'config' and use config.{name}"
        document.problem((*path, name), "is for model files", hint)

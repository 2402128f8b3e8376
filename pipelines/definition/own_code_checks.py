"""Checks of the user's code that a definition names, as far as it can be imported here. Else the start tells."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from elements.inference.errors import ModelError
from elements.inference.params import checked_params, import_object
from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.stages import OperateStage, Stage

_API = "pyservicemaker"


def check_operators(document: Document, stages: Mapping[int, Stage]) -> None:
    """Add what is wrong with the code of operate stages to the problems of ``document``."""
    if _would_load_the_wrong_api(document):
        return
    for index, stage in stages.items():
        if isinstance(stage, OperateStage):
            _check_operator(document, ("stages", index, "operate"), stage)


def imported(document: Document, path: KeyPath, name: str, what: str) -> Any:
    """What ``package.module:name`` is; ``None`` if its module cannot be imported here, or lacks it."""
    try:
        importlib.import_module(name.partition(":")[0])
    except (Exception, SystemExit):
        return None
    try:
        return import_object(name, what)
    except ModelError as error:
        message, _, hint = str(error).partition(": ")
        document.problem(path, message, hint)
        return None


def check_params(
    document: Document, path: KeyPath, target: Any, params: Mapping[str, Any], supplied: Sequence[str], skip: int = 0
) -> None:
    """Whether a class or function takes these parameters; see `elements.inference.params.checked_params`."""
    try:
        _, problems = checked_params(target, params, supplied, skip)
    except ModelError as error:
        document.problem(path, str(error))
        return
    for problem in problems:
        place = (*path, *problem.path)
        unknown = problem.kind == "unknown"
        shown = f"{document.shown(place)}: " if problem.kind == "wrong" else ""
        document.problem(place, f"{shown}{problem.message}", problem.hint, of_key=unknown)


def _check_operator(document: Document, path: KeyPath, stage: OperateStage) -> None:
    found = imported(document, (*path, "operator"), stage.operator, "operator")
    if found is None:
        return
    shown = document.shown((*path, "operator"))
    if not callable(found):
        document.problem((*path, "operator"), f"{shown} is neither a class nor a function")
        return
    if inspect.isclass(found) and not (hasattr(found, "process") or hasattr(found, "handle_metadata")):
        document.problem((*path, "operator"), f"the class {shown} lacks process(frame)", "see `gstorch new operator`")
        return
    skip = 0 if inspect.isclass(found) else 1
    check_params(document, (*path, "params"), found, stage.params.get_secret_value(), (), skip)


def _would_load_the_wrong_api(document: Document) -> bool:
    """Operators import the API: not before ours is chosen, where NVIDIA's is installed but not wanted."""
    portable = str(document.at(("runtime", "prefer"))) == "portable"
    return portable and _API not in sys.modules and importlib.util.find_spec(_API) is not None

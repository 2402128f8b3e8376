"""Parameters of a class or function of one's own: plain values, checked against its signature."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elements.inference.errors import ModelError

if TYPE_CHECKING:
    from pydantic import BaseModel

_KINDS = {
    str: "this text", bool: "a boolean", int: "this number", float: "this number", list: "this list",
    dict: "this mapping", type(None): "nothing",
}  # fmt: skip
_NO_NAME = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)


@dataclass(frozen=True, slots=True)
class ParamProblem:
    """What is wrong with one parameter.

    Attributes:
        path: keys and indexes from ``params`` to the value: ``("size", 0)``.
        kind: ``unknown`` (nothing takes it), ``missing``, or ``wrong``.
        message: what is wrong, without the key and the value, which may be secret.
        hint: what to do about it, if that is known.
    """

    path: tuple[str | int, ...]
    kind: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{'.'.join(str(part) for part in self.path)}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def import_object(path: str, what: str = "class") -> Any:
    """What ``package.module:name`` names.

    Raises:
        ModelError: if there is no such module, or it has no such name.
        Exception: whatever the module raises when it is imported.
    """
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # something that the module needs
        raise ModelError(
            f"there is no module '{error.name}' on Python's path: start where it is, or set PYTHONPATH to the folder "
            "that holds it"
        ) from None
    found = getattr(module, name, None)
    if found is None:
        near = difflib.get_close_matches(name, vars(module), n=1)
        hint = f": did you mean '{near[0]}'?" if near else ""
        raise ModelError(f"module '{module_name}' has no {what} '{name}'{hint}")
    return found


def call_with_params(
    target: Callable[..., Any], params: Mapping[str, Any], supplied: Mapping[str, Any], skip: int = 0
) -> functools.partial[Any]:
    """``target`` with its parameters bound; call the result, with the ``skip`` first arguments if there are any.

    Args:
        target: a class, or a function.
        params: plain values, as YAML and JSON have them; converted to the types of the signature.
        supplied: what the program gives by itself, to those who have a parameter of that name.
        skip: how many leading parameters the caller gives.

    Raises:
        ModelError: names every parameter that is unknown, missing or of a wrong type.
    """
    values, problems = checked_params(target, params, supplied, skip)
    if problems:
        raise ModelError("params: " + "; ".join(map(str, problems)))
    given = {name: value for name, value in supplied.items() if name in {p.name for p in _parameters(target, skip)}}
    return functools.partial(target, **{**given, **values})


def parameter_names(target: Any) -> set[str]:
    """Of the parameters of a class or function that can be given by name.

    Raises:
        ModelError: if ``target`` does not tell.
    """
    return {parameter.name for parameter in _parameters(target, 0)}


def checked_params(
    target: Callable[..., Any], params: Mapping[str, Any], supplied: Collection[str] = (), skip: int = 0
) -> tuple[dict[str, Any], list[ParamProblem]]:
    """The parameters in the types of the signature of ``target``, and what is wrong with them.

    Types are strict: a number for a text is wrong, and so is a text for a number; an integer does for a float, a list
    for a tuple, a text for a path or an enum. Arguments as in `call_with_params`.
    """
    parameters = [p for p in _parameters(target, skip) if p.name not in supplied]
    named = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    if not params:
        required = [p.name for p in named if p.default is inspect.Parameter.empty]
        return {}, [ParamProblem((name,), "missing", "is missing") for name in required]
    from pydantic import ValidationError  # here, so that models without parameters do without it

    model = _model_of(target, named, any_key=len(named) < len(parameters))
    try:
        checked = model.model_validate_json(json.dumps(dict(params)), strict=True)
    except ValidationError as error:
        known = [p.name for p in named]
        return {}, [_problem(details, known) for details in error.errors(include_url=False)]
    values = {p.name: getattr(checked, f"p{i}") for i, p in enumerate(named) if f"p{i}" in checked.model_fields_set}
    return {**values, **(checked.model_extra or {})}, []


def _parameters(target: Callable[..., Any], skip: int) -> list[inspect.Parameter]:
    """The parameters that can be given by name, without the ``skip`` first.

    Raises:
        ModelError: if ``target`` does not tell.
    """
    try:
        try:
            signature = inspect.signature(target, eval_str=True)
        except NameError:  # a type that is imported for type checkers only
            signature = inspect.signature(target)
    except (TypeError, ValueError) as error:
        raise ModelError(f"its parameters cannot be told: {error}") from error
    return [p for p in list(signature.parameters.values())[skip:] if p.kind not in _NO_NAME]


def _model_of(target: Any, parameters: list[inspect.Parameter], any_key: bool) -> type[BaseModel]:
    """A pydantic model of the parameters. Its fields have names of their own: pydantic keeps some for itself."""
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUserError

    config = ConfigDict(extra="allow" if any_key else "forbid", arbitrary_types_allowed=True)
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        required = parameter.default is inspect.Parameter.empty
        default = ... if required else parameter.default
        kind = parameter.annotation
        known = kind is not inspect.Parameter.empty and not isinstance(kind, str)
        fields[f"p{index}"] = (kind if known else Any, Field(default, alias=parameter.name))
    try:
        return create_model("params", __config__=config, **fields)
    except PydanticUserError as error:
        name = getattr(target, "__qualname__", str(target))
        raise ModelError(f"{name}: a parameter's type cannot be checked: {error.message}") from error


def _problem(details: Any, known: list[str]) -> ParamProblem:
    path, kind = tuple(details["loc"]), details["type"]
    if kind == "extra_forbidden":
        key = str(path[-1])
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}" if known else "it takes none"
        return ParamProblem(path, "unknown", f"unknown parameter '{key}'", hint)
    if kind == "missing":
        return ParamProblem(path, "missing", "is missing")
    given = _KINDS.get(type(details["input"]), "a value of another kind")
    return ParamProblem(path, "wrong", f"{details['msg'][:1].lower()}{details['msg'][1:]}, not {given}")

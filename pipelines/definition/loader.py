"""From a file, or values of a program, to a `Definition`, with everything that is wrong found in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pipelines.definition import sources as source_models
from pipelines.definition import stages as stage_models
from pipelines.definition.catalog import Catalog
from pipelines.definition.checks import Parts, check_parts
from pipelines.definition.definition import Definition
from pipelines.definition.document import Document, document_from_data
from pipelines.definition.environment import substitute
from pipelines.definition.outputs import Output
from pipelines.definition.overrides import apply_overrides
from pipelines.definition.problems import DefinitionError, KeyPath, Problem, parse_path
from pipelines.definition.sections import one_key_tag
from pipelines.definition.sources import Source
from pipelines.definition.stages import Stage
from pipelines.definition.validation import report
from pipelines.definition.yaml_text import parse_yaml

MAX_BYTES = 1 << 20

T = TypeVar("T")

_SOURCE: TypeAdapter[Source] = TypeAdapter(Source)
_STAGE: TypeAdapter[Stage] = TypeAdapter(Stage)
_OUTPUT: TypeAdapter[Output] = TypeAdapter(Output)


def load_definition(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
    check_files: bool = True,
) -> Definition:
    """Read a definition from a YAML file. Relative paths in it, and in ``overrides``, start at the file's folder.

    Args:
        path: the file; messages call it as it is written here.
        overrides: ``path.to.key=value``, as given to ``--set``.
        environ: environment variables; default: the process's.
        catalog: the elements that exist here; without it `node` stages are not checked.
        check_files: whether models and other files that the stages name must be there.

    Raises:
        DefinitionError: with every problem found.
    """
    file = os.fspath(path)
    document = parse_yaml(_read(file), file)
    document.look_for_files = check_files
    if document.data is None and not document.problems:
        raise DefinitionError([Problem(file, 1, 1, "", "is empty", "it needs at least 'pipeline' and 'sources'")])
    return _finish(document, Path(file).absolute().parent, overrides, environ, catalog)


def definition_from_mapping(
    data: Mapping[str, Any],
    base_dir: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
    origins: Mapping[str, str] | None = None,
) -> Definition:
    """Make a definition of values that come from a program, e.g. command-line options. Their text is taken as it is.

    Args:
        data: the same keys as in a file.
        base_dir: where relative paths start.
        overrides, environ, catalog: as in `load_definition`.
        origins: what messages call the place of a value, by key: ``{"stages[0].infer.model": "--model"}``.

    Raises:
        DefinitionError: with every problem found.
    """
    places = {parse_path(key): name for key, name in (origins or {}).items()}
    document = document_from_data(data, places, "command line")
    return _finish(document, Path(base_dir).absolute(), overrides, environ, catalog)


def _read(file: str) -> str:
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DefinitionError([Problem(file, None, None, "", f"cannot be read: {error.strerror}")]) from None
    if len(data) > MAX_BYTES:
        raise DefinitionError([Problem(file, None, None, "", "is larger than 1 MiB", "is it a pipeline definition?")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        problem = Problem(
            file, line, column, "", f"byte 0x{data[error.start]:02X} is not UTF-8", "save the file as UTF-8"
        )
        raise DefinitionError([problem]) from None


def _finish(
    document: Document,
    base_dir: Path,
    overrides: Sequence[str],
    environ: Mapping[str, str] | None,
    catalog: Catalog | None,
) -> Definition:
    context = {"base_dir": base_dir}
    if not isinstance(document.data, dict):
        document.problem((), "the top level must be keys and values", "start with 'pipeline: name'")
        raise DefinitionError(document.problems)
    apply_overrides(document, overrides)
    substitute(document, os.environ if environ is None else environ)
    document.refuse_control_characters()
    definition = None
    try:
        definition = Definition.model_validate(document.data, context=context)
    except ValidationError as error:
        report(document, error)
    check_parts(document, _readable_parts(document, context), catalog)
    if definition is None or document.problems:
        raise DefinitionError(document.problems)
    definition._places.update(document.values)
    return definition


# --- what can be checked in spite of errors ---------------------------------------------------------------------------


def _readable_parts(document: Document, context: dict[str, Any]) -> Parts:
    sources = _readable_items(document, "sources", _SOURCE, context)
    stages = _readable_items(document, "stages", _STAGE, context)
    outputs = _readable_items(document, "outputs", _OUTPUT, context)
    return Parts(
        dict(zip(sources, source_models.with_names(tuple(sources.values())), strict=True)),
        dict(zip(stages, stage_models.with_names(tuple(stages.values())), strict=True)),
        outputs,
    )


def _readable_items(document: Document, section: str, adapter: TypeAdapter[T], context: dict[str, Any]) -> dict[int, T]:
    """The items of a list that validate, if need be without their faulty options."""
    items = document.at((section,))
    models: dict[int, T] = {}
    for index, item in enumerate(items if isinstance(items, list) else ()):
        try:
            models[index] = adapter.validate_python(item, context=context)
        except ValidationError as error:
            rest = _without(item, [details["loc"] for details in error.errors()])
            try:
                models[index] = adapter.validate_python(rest, context=context)
            except ValidationError:
                continue
    return models


def _without(item: Any, locations: Sequence[KeyPath]) -> Any:
    tag = one_key_tag(item)
    if tag is not None and isinstance(item[tag], dict):
        return {tag: _without_keys(item[tag], {location[1] for location in locations if len(location) > 1})}
    return _without_keys(item, {location[0] for location in locations if location}) if isinstance(item, dict) else item


def _without_keys(mapping: dict[str, Any], keys: set[str | int]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}

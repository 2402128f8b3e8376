"""``gstorch new``: files to begin with."""

from __future__ import annotations

import ast
import getpass
import importlib.util
import json
import keyword
import re
import shlex
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from app.common import fail
from pipelines.outcome import EXIT_FAILED

TEMPLATES = Path(__file__).parent / "templates"
ELEMENTS = Path(__file__).resolve().parent.parent / "elements"
_SUFFIX = ".txt"  # of every template, so that no tool takes it for what will be made of it
_NEXT = "next.txt"  # what to tell the user afterwards
_IN_PLACE_OF_NAME = "NAME"

new = typer.Typer(name="new", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Lower case, a Python name, e.g. brightness.")]


class NewError(Exception):
    """The files cannot be written. The text says why and what to do."""


@new.callback()
def _group() -> None:
    """Write a small working example of an element, model or operator of your own, with its test."""


@new.command("element")
def element(
    name: Name, path: Annotated[Path, typer.Option("--path", help="Folder to write to.")] = Path("elements")
) -> None:
    """A GStreamer element in Python: its file, and a test that passes.

    gstorch finds elements in ./elements and in the folders of GST_PLUGIN_PATH; GStreamer's own tools in the latter.
    """
    _new("element", name, path)


@new.command("model")
def model(name: Name, path: Annotated[Path, typer.Option("--path", help="Folder to write to.")] = Path()) -> None:
    """A model class in Python: its file, a test that passes, and a definition that runs it."""
    _new("model", name, path)


@new.command("operator")
def operator(name: Name, path: Annotated[Path, typer.Option("--path", help="Folder to write to.")] = Path()) -> None:
    """A metadata operator in Python: its file, a test that passes, and a definition that uses it."""
    _new("operator", name, path)


def _new(kind: str, name: str, folder: Path) -> None:
    try:
        files, afterwards = render(kind, name, folder)
        _check_free(files)
        _check_module(name)
        if kind == "element":
            _check_factory(name)
        write(files)
    except NewError as error:
        fail(str(error))
        raise typer.Exit(EXIT_FAILED) from error
    for file in files:
        typer.echo(f"wrote {file}")
    typer.echo(afterwards, nl=False)


def render(kind: str, name: str, folder: Path) -> tuple[dict[Path, str], str]:
    """Files of a kind (a folder of ``templates``) with their contents, and what to do next.

    Raises:
        NewError: if the name will not do.
    """
    _check_name(name)
    class_name = "".join(part.capitalize() for part in name.split("_"))
    words = {
        "name": name,
        "class_name": class_name,
        "author": _author(),
        "folder": shlex.quote(str(folder)),
        "full_folder": shlex.quote(str(folder.absolute())),
        "env": shlex.quote(str(ELEMENTS / "env.sh")),
    }
    root = TEMPLATES / kind
    texts = {file.relative_to(root): file.read_text(encoding="utf-8") for file in sorted(root.rglob(f"*{_SUFFIX}"))}
    made = {file: Template(text).substitute(words) for file, text in texts.items()}
    afterwards = made.pop(Path(_NEXT))
    if any(_imports(text, class_name, name) for file, text in made.items() if ".py" in file.suffixes):
        raise NewError(f"its class '{class_name}' would hide what the file uses: use for example 'my_{name}'")
    return {folder / _named(file, name): text for file, text in made.items()}, afterwards


def _author() -> str:
    """The user's name as it can stand in a string of Python."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have none
        user = "you"
    return json.dumps(user, ensure_ascii=False)[1:-1]


def _imports(source: str, wanted: str, own: str) -> bool:
    """Whether a file of Python imports that name from elsewhere than module ``own``."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module != own]
    return any(alias.name == wanted for node in imports for alias in node.names)


def _named(file: Path, name: str) -> Path:
    return Path(str(file).removesuffix(_SUFFIX).replace(_IN_PLACE_OF_NAME, name))


def write(files: dict[Path, str]) -> None:
    """Write all files; what exists is never replaced.

    Raises:
        NewError: if one exists, or cannot be written.
    """
    try:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise NewError(f"cannot write '{error.filename}': {error.strerror}; choose another --path") from error


def _check_free(files: dict[Path, str]) -> None:
    """Before anything is written, so that it is all or nothing."""
    taken = [str(file) for file in files if file.exists()]
    if taken:
        raise NewError(f"{', '.join(taken)}: exists already; choose another name or --path, or remove it")


def _check_name(name: str) -> None:
    suggestion = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    suggestion = suggestion if re.fullmatch(r"[a-z][a-z0-9_]*", suggestion) else f"my_{suggestion}".rstrip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise NewError(
            f"'{name}' is no name for a Python file and a GStreamer element: use lower-case letters, digits and '_', "
            f"for example '{suggestion}'"
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise NewError(f"'{name}' is a word of Python: use for example 'my_{name}'")


def _check_module(name: str) -> None:
    """Python would find the other module of that name, or this one would hide it."""
    if importlib.util.find_spec(name) is not None:
        raise NewError(f"Python has a module '{name}' already: use another name, for example 'my_{name}'")


def _check_factory(name: str) -> None:
    from pipelines.catalog import GStreamerCatalog

    if name in GStreamerCatalog().factories():
        raise NewError(f"GStreamer has an element '{name}' already (gst-inspect-1.0 {name}): use another name")

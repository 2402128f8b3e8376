"""Environment variables in a definition: ``${VAR}``, ``${VAR:-default}``, and ``$$`` for a dollar sign."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.scalars import Scalar

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{", re.ASCII)


def substitute(document: Document, environ: Mapping[str, str]) -> None:
    """Put environment variables into every scalar of ``document``, in place.

    A scalar that is one variable and nothing else may become a number or a boolean, or no value when it is empty; all
    other text stays text. Missing variables become problems of the document.
    """

    def expand(path: KeyPath, value: object) -> object:
        if isinstance(value, Scalar) and "$" in value:
            return _expand(document, value, path, environ)
        return value

    document.map_values(expand)


def _expand(document: Document, scalar: Scalar, path: KeyPath, environ: Mapping[str, str]) -> Scalar | None:
    secret = False

    def text_of(match: re.Match[str]) -> str:
        nonlocal secret
        name, default = match["name"], match["default"]
        if match[0] == "$$":
            return "$"
        if name is None:
            document.problem(
                path, "'${' starts no variable", "write ${NAME} or ${NAME:-default}; for a literal '${' write '$${'"
            )
            return ""
        if environ.get(name) or (name in environ and default is None):
            secret = True
            return environ[name]
        if default is None:
            document.problem(path, f"environment variable {name} is not set", f"set it, or write ${{{name}:-default}}")
        return default or ""

    text = _VARIABLE.sub(text_of, scalar)
    whole = _VARIABLE.fullmatch(scalar) is not None and scalar != "$$"
    return None if whole and not text else Scalar(text, plain=whole, secret=secret)

"""What is wrong with a definition, and where it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]

_USER_INFO = re.compile(r"(?<=://).*@", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"(?i)([?&](?:user(?:name)?|pass(?:word|wd)?|pwd|token|key)=)[^&#\s]*")


def format_path(path: KeyPath) -> str:
    """``("sources", 0, "uri")`` as ``sources[0].uri``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def parse_path(text: str) -> KeyPath:
    """The inverse of `format_path`."""
    return tuple(
        int(index) if index else key for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", text) if key or index
    )


def redact(text: str) -> str:
    """Text that is safe to print: without the credentials of a URI, as user info or as parameters."""
    return redact_parameters(_USER_INFO.sub("***@", text))


def redact_parameters(uri: str) -> str:
    """A URI without the values of parameters that cameras take credentials in."""
    return _SECRET_PARAMETER.sub(r"\1***", uri)


def one_line(text: str) -> str:
    """Text with escapes for what is not printable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written. Lines and columns count from 1 and are None for text that is in no file.

    ``text`` is a scalar exactly as written, before environment variables were put in.
    """

    file: str
    line: int | None = None
    column: int | None = None
    text: str = ""

    def shown(self) -> str:
        """``file:line``, or just the file."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, for people: where, which key, what, and what to do about it."""

    file: str
    line: int | None
    column: int | None
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        text = f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"
        return one_line(f"{text} ({self.hint})" if self.hint else text)

    @property
    def order(self) -> tuple[float, int, str]:
        """Sort key: by place in the file; what is in no file comes last."""
        return (math.inf if self.line is None else self.line, self.column or 0, self.path)


class DefinitionError(Exception):
    """A definition was rejected. ``problems`` holds everything that is wrong with it, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.order))
        super().__init__("\n".join(str(problem) for problem in self.problems))

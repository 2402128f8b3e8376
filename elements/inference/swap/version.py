"""What a result is stamped with: which model made it, and which content that model's file had."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import is_class_path
from elements.inference.errors import ModelError

DIGITS = 12  # of the SHA-256, as many as Git shows


@dataclass(frozen=True, slots=True)
class FileMark:
    """Tells one state of a file from another without reading it. A rename into place changes ``inode``."""

    inode: int
    modified_ns: int
    size: int


def mark_of(path: str) -> FileMark | None:
    """The file's present mark; ``None`` if it is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return FileMark(status.st_ino, status.st_mtime_ns, status.st_size)


def files_of(config: ModelConfig) -> tuple[str, ...]:
    """The files whose content makes the model: the model file, or a class's weights."""
    own = () if is_class_path(config.path) else (config.path,)
    return own + ((config.weights,) if config.weights else ())


def version_of(config: ModelConfig, model: Any = None) -> str:
    """The version of a model.

    A file's is its name and content: ``people.onnx@3fa9c1d2a0b1``. A class's is its path and what its ``version``
    attribute says, and the weights' content: ``plates.models:Reader@1.4``.

    Args:
        config: names the model.
        model: the instance, of a class of your own.

    Raises:
        ModelError: if a file cannot be read.
    """
    if not is_class_path(config.path):
        return f"{Path(config.path).name}@{_digest(files_of(config))}"
    declared = getattr(model, "version", None)
    parts = [str(declared)] if declared is not None else []
    if config.weights:
        parts.append(_digest((config.weights,)))
    return "@".join([config.path, "+".join(parts)]) if parts else config.path


def _digest(files: tuple[str, ...]) -> str:
    """Of one file its SHA-256, of several the SHA-256 of theirs; the first digits."""
    digests = []
    for path in files:
        try:
            with Path(path).open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256"))
        except OSError as error:
            raise ModelError(f"model '{path}': it cannot be read: {error.strerror}") from error
    whole = digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(one.digest() for one in digests))
    return whole.hexdigest()[:DIGITS]

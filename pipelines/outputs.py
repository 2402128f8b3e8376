"""Output files, looked at before anything starts: a run must not find out after an hour of loading and connecting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pipelines.definition import Definition, EventsOutput, FileOutput, MessageStage, RecordOutput


class OutputError(RuntimeError):
    """An output cannot be written. One line per output."""


def prepare_outputs(definition: Definition) -> None:
    """Make the folders of all output files, and see whether the files can be written.

    Those of outputs that exist are replaced; one that messages go to (``broker: file``) gets more lines.

    Raises:
        OutputError: names every path that cannot be written, its key in the definition and the reason.
    """
    problems = [
        f"{key}: cannot write '{path}': {reason}"
        for key, path in _files(definition)
        if (reason := _make_writable(path)) is not None
    ]
    if problems:
        raise OutputError("\n".join(problems))


def _files(definition: Definition) -> Iterator[tuple[str, Path]]:
    for index, output in enumerate(definition.outputs):
        if isinstance(output, EventsOutput) and not output.to_stdout:
            yield f"outputs[{index}].events.path", output.path
        elif isinstance(output, FileOutput | RecordOutput) and getattr(output, "format", "") != "kitti":
            paths = dict.fromkeys(output.path_for(str(source.name)) for source in definition.sources)
            yield from ((f"outputs[{index}].{output.KEY}.path", path) for path in paths)
    for index, stage in enumerate(definition.stages):
        if isinstance(stage, MessageStage) and stage.broker == "file":
            yield f"stages[{index}].message.connection", Path(stage.broker_connection().path)


def _make_writable(path: Path) -> str | None:
    """Make the file's folder. Returns why the file cannot be written, if so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        return f"'{error.filename}' is a file, not a folder"
    except OSError as error:
        return f"the folder '{error.filename}' cannot be made: {error.strerror}"
    if path.is_dir():
        return "it is a folder"
    written = path if path.exists() else path.parent
    return None if os.access(written, os.W_OK) else f"no permission to write {written}"

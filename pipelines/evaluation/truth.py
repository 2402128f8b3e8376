"""Truth of any format that is known."""

from __future__ import annotations

from pathlib import Path

from pipelines.evaluation.annotations import Annotations, EvaluationError
from pipelines.evaluation.coco import read_coco
from pipelines.evaluation.events import read_events
from pipelines.evaluation.mot import read_mot, read_mot_folder

_READERS = {".json": read_coco, ".jsonl": read_events, ".txt": read_mot}


def read_truth(path: Path) -> Annotations:
    """Read truth: COCO (``.json``), MOT (``gt.txt``, or a folder of sequences with ``gt/gt.txt``), events (``.jsonl``).

    Raises:
        EvaluationError: with file and line or entry, if it cannot be read or holds no object.
    """
    if not path.exists():
        raise EvaluationError(f"{path}: there is no such file or folder")
    if path.is_dir():
        truth = read_mot_folder(path)
    elif path.suffix.lower() in _READERS:
        truth = _READERS[path.suffix.lower()](path)
    else:
        raise EvaluationError(
            f"{path}: truth is COCO (.json), MOT (gt.txt or a folder with */gt/gt.txt) or events (.jsonl)"
        )
    if all(row.ignore for row in truth.rows()):
        raise EvaluationError(f"{path}: the truth has no objects that count, so nothing can be measured")
    return truth

"""Predictions of a model on videos: a pipeline is run, and its events are read."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.definition import definition_from_mapping
from pipelines.definition.uris import default_name, unique_names
from pipelines.evaluation.annotations import Annotations, EvaluationError
from pipelines.evaluation.events import read_events
from pipelines.plan import make_plan, open_runner

_COMPLETE = 0


def names_of(files: Sequence[Path]) -> list[str]:
    """The names that the sequences of `predict` will have."""
    return unique_names([None] * len(files), [default_name(str(file)) for file in files])


def predict(files: Sequence[Path], infer: Mapping[str, Any], track: bool) -> Annotations:
    """Run a model on videos. Sequences are named like the files without their endings.

    Args:
        files: the videos.
        infer: keys of the infer stage.
        track: whether objects are tracked. Then only those that the tracker confirms are there.

    Raises:
        DefinitionError: if the keys are wrong.
        EvaluationError: if a video was not run to its end.
    """
    from pipelines.catalog import GStreamerCatalog

    with tempfile.TemporaryDirectory(prefix="gstorch-eval-") as folder:
        path = Path(folder) / "events.jsonl"
        definition = definition_from_mapping(
            {
                "pipeline": "eval",
                "sources": [{"uri": str(file)} for file in files],
                "stages": [{"infer": dict(infer)}, *([{"track": {}}] if track else [])],
                "outputs": [{"events": {"path": str(path)}}],
            },
            Path.cwd(),
            catalog=GStreamerCatalog(),
            origins={f"stages[0].infer.{key}": f"--{key}" for key in infer},
        )
        runner = open_runner(make_plan(definition))
        runner.run()
        if runner.exit_code() != _COMPLETE:
            states = [f"'{s.source.name}' {s.state}{f': {s.reason}' if s.reason else ''}" for s in runner.statuses]
            reason = runner.outcome.error or "; ".join(states)
            raise EvaluationError(f"the model was not run on all of the videos: {reason}")
        return replace(read_events(path), origin="the model")

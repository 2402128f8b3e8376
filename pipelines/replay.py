"""A recorded event file, run again: operators, analytics and messages see its frames, without video or model.

One frame is one batch, in the order of the file, on one thread: the same file gives the same results.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from elements.analytics.nvds_config import NvdsConfigError, load_nvds_config
from elements.filtering.batch import BatchFilter
from pipelines.builder import build_graph
from pipelines.closing import close_operators
from pipelines.definition import Definition, FileOutput, InferStage, MessageStage, PromptStage, TrackStage
from pipelines.definition.outputs import DisplayOutput
from pipelines.draft import Facts
from pipelines.outcome import SourceCount
from pipelines.outputs import prepare_outputs
from pipelines.recording import ReplayError as ReplayError
from pipelines.recording import frames_of
from pipelines.scripted import batch_of, use_portable_api

_NO_REPLAY = (InferStage, TrackStage, PromptStage)  # what they found is in the file


@dataclass(slots=True)
class Replay:
    """What a replay came to. ``counts`` is indexed by source id; ``operators`` has their instances by name."""

    counts: list[SourceCount]
    operators: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    trace: str = ""


def replay(path: Path, definition: Definition, stdout: TextIO) -> Replay:
    """Run the metadata stages and data outputs of a definition on the frames of an event file.

    Args:
        path: the event file.
        definition: names the sources; infer and track stages, and outputs that need pictures, are left out.
        stdout: where an event output to ``-`` goes.

    Raises:
        ReplayError: if a line is no event, or of a source that the definition does not have; or if the configuration of
            an analyze stage cannot be used.
        OutputError: if an output cannot be written.
        AssemblyError: if an operator cannot be made.
    """
    _check_no_elements_needed(definition)
    definition = without_pictures(definition)
    _check_not_overwritten(path, definition)
    use_portable_api()
    frames = frames_of(path, [str(source.name) for source in definition.sources])
    first = next(frames, None)  # before outputs of an earlier run are overwritten
    if first is None:
        raise ReplayError(f"{path}: has no events in it: name an event file that `gstorch run` has written")
    prepare_outputs(definition)
    result = Replay([SourceCount() for _ in definition.sources])

    def report(text: str, trace: str) -> None:
        if not result.error:
            result.error, result.trace = text, trace

    shared = {"counts": result.counts, "report": report, "stdout": stdout}
    from pipelines.assemble import make_operator

    graph = build_graph(definition, Facts(tuple(None for _ in definition.sources)))
    for node in graph.nodes.values():
        if node.factory == "pymetafilter":
            result.operators[node.name] = _Filter(node.properties)
        elif node.factory == "nvdsanalytics":
            result.operators[f"{node.name}-element"] = _Analytics(str(node.properties["config-file"]))
        for attachment in graph.attachments:
            if attachment.node == node.name:
                result.operators[attachment.name] = make_operator(attachment, shared, definition.where)
    try:
        for frame in itertools.chain([first], frames):
            batch = batch_of([frame])
            for operator in result.operators.values():
                operator.handle_metadata(batch)
            if result.error:
                break
    finally:
        text, trace = close_operators(result.operators.values())
        if text:
            report(text, trace)
    return result


class _Analytics:
    """What nvdsanalytics does, without the element."""

    def __init__(self, config: str) -> None:
        from elements.portable.analytics_judge import AnalyticsJudge

        try:
            self._judge = AnalyticsJudge(load_nvds_config(config))
        except NvdsConfigError as error:
            raise ReplayError(str(error)) from None

    def handle_metadata(self, batch: Any) -> None:
        for frame in batch._meta.frames:
            self._judge.judge(frame)


class _Filter:
    """What pymetafilter does, without the element."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        from elements.filtering.options import PROPERTIES, rules_of

        self._filter = BatchFilter(rules_of({prop.name: prop.default for prop in PROPERTIES} | dict(properties)))

    def handle_metadata(self, batch_meta: Any) -> None:
        self._filter.apply(batch_meta)

    def close(self) -> None:
        self._filter.close()

    @property
    def stats(self) -> dict[str, int]:
        return {"objects_seen": self._filter.seen, "objects_removed": self._filter.removed}


def _check_no_elements_needed(definition: Definition) -> None:
    for stage in definition.stages:
        if isinstance(stage, MessageStage) and stage.delivery == "direct":
            raise ReplayError(
                f"stage '{stage.name}': delivery: direct needs the pipeline's elements, which a replay has not: "
                f"--set stages.{stage.name}.delivery=durable"
            )


def without_pictures(definition: Definition) -> Definition:
    """The definition with nothing in it that needs pictures or a model."""
    return definition.model_copy(
        update={
            "stages": tuple(stage for stage in definition.stages if not isinstance(stage, _NO_REPLAY)),
            "mux": definition.mux.model_copy(update={"padding": False}),  # frames come in their sources' sizes
            "outputs": tuple(o for o in definition.outputs if not isinstance(o, FileOutput | DisplayOutput)),
        }
    )


def _check_not_overwritten(path: Path, definition: Definition) -> None:
    for output in definition.outputs:
        target = getattr(output, "path", None)
        if target is not None and Path(target).resolve() == path.resolve():
            raise ReplayError(
                f"{path}: is an output of the definition, too: write to another file "
                f"(--set outputs.{output.KEY}.path=OTHER)"
            )

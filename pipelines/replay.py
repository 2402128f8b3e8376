"""A recorded event file, run again: operators, analytics and messages see its frames, without video or model.

One frame is one batch, in the order of the file, on one thread: the same file gives the same results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from elements.analytics.nvds_config import NvdsConfigError, load_nvds_config
from elements.filtering.batch import BatchFilter
from elements.metadata.detections import Detections
from elements.metadata.rle import decode
from pipelines.builder import build_graph
from pipelines.definition import Definition, FileOutput, InferStage, MessageStage, PromptStage, TrackStage
from pipelines.definition.outputs import DisplayOutput
from pipelines.draft import Facts
from pipelines.outcome import SourceCount
from pipelines.outputs import prepare_outputs
from pipelines.scripted import ScriptedFrame, batch_of, use_portable_api

CONTINUED = -0.1  # confidence of an object that only the tracker continued, as nvtracker writes it
_NO_REPLAY = (InferStage, TrackStage, PromptStage)  # what they found is in the file


class ReplayError(ValueError):
    """The event file cannot be run again. The text names file and line, and what to do."""


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
        for frame in frames_of(path, [str(source.name) for source in definition.sources]):
            batch = batch_of([frame])
            for operator in result.operators.values():
                operator.handle_metadata(batch)
            if result.error:
                break
    finally:
        for operator in result.operators.values():
            if hasattr(operator, "close"):
                operator.close()
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


def frames_of(path: Path, sources: Sequence[str]) -> Iterator[ScriptedFrame]:
    """The frames of an event file, in its order.

    What operators and analytics found when it was recorded is left out: they find it again.

    Args:
        path: the event file.
        sources: names of the sources; their positions are the source ids.

    Raises:
        ReplayError: see `replay`.
    """
    ids = {name: source_id for source_id, name in enumerate(sources)}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _frame(line, f"{path}:{number}", ids)
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"{path}: cannot be read: {error}") from None


def _frame(line: str, where: str, ids: Mapping[str, int]) -> ScriptedFrame:
    try:
        event = json.loads(line)
        source = event["source"]
        if source not in ids:
            known = ", ".join(ids)
            raise ReplayError(
                f"{where}: the definition has no source '{source}' (it has: {known}): add it, or rename one"
            )
        return _scripted(event, ids[source])
    except json.JSONDecodeError as error:
        raise ReplayError(f"{where}: is not JSON: {error.msg} (was it cut off? remove the line)") from None
    except KeyError as error:
        raise ReplayError(f"{where}: is not a line of an event file: it lacks {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ReplayError):
            raise
        raise ReplayError(f"{where}: is not a line of an event file: {error}") from None


def _scripted(event: Mapping[str, Any], source_id: int) -> ScriptedFrame:
    items = [item for item in event["objects"] if None not in item["bbox"]]
    return ScriptedFrame(
        objects=_objects(items),
        labels=[str(item["label"]) for item in items],
        source_id=source_id,
        number=int(event["frame"]),
        time_s=float(event["stream_time_s"]),
        time_utc_ns=_nanoseconds(event["time_utc"]),
        size=(int(event["width"]), int(event["height"])),
        data={"models": event["models"]} if "models" in event else {},
    )


def _objects(items: Sequence[Mapping[str, Any]]) -> Detections:
    def column(key: str, absent: Any) -> list[Any]:
        return [absent if item.get(key) is None else item[key] for item in items]

    def some(key: str) -> bool:
        return any(key in item for item in items)

    return Detections(
        np.array(column("bbox", None), np.float32).reshape(-1, 4),
        np.array(column("confidence", CONTINUED), np.float32),
        np.array(column("class_id", 0), np.int64),
        angles=np.array(column("angle", 0.0), np.float32) if some("angle") else None,
        masks=_masks(items),
        keypoints=_keypoints(column("keypoints", [])) if some("keypoints") else None,
        track_ids=np.array(column("track_id", -1), np.int64),
        attributes=[
            {name: {key: value for key, value in label.items() if key != "more"} for name, label in found.items()}
            for found in column("attributes", {})
        ],
    )


def _masks(items: Sequence[Mapping[str, Any]]) -> Any:
    """(N, height, width), cut to the boxes by `Detections`; ``None`` if an object has none."""
    if not items or not all("mask" in item for item in items):
        return None
    return np.stack([decode(item["mask"]) for item in items])


def _keypoints(rows: Sequence[Sequence[Sequence[float | None]]]) -> np.ndarray:
    """(N, K, 3), NaN where a point or an object has none."""
    result = np.full((len(rows), max(map(len, rows)), 3), np.nan, np.float32)
    for row, points in enumerate(rows):
        if points:
            result[row, : len(points)] = np.array(points, np.float32)
    return result


def _nanoseconds(text: str | None) -> int:
    return 0 if text is None else round(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000


def _check_not_overwritten(path: Path, definition: Definition) -> None:
    for output in definition.outputs:
        target = getattr(output, "path", None)
        if target is not None and Path(target).resolve() == path.resolve():
            raise ReplayError(f"{path}: is an output of the definition, too: write to another file (--set outputs…)")

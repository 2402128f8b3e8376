"""``gstorch eval``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.common import fail, find_own_code, reject, results_on_stdout, set_up_logging
from pipelines.definition import DefinitionError
from pipelines.outcome import EXIT_FAILED, EXIT_REJECTED

if TYPE_CHECKING:
    from pipelines.evaluation import Annotations, Evaluation

EVENTS = ".jsonl"
_MODEL_CONFIDENCE = 0.05


def evaluate(
    targets: Annotated[
        list[Path],
        typer.Argument(metavar="EVENTS.jsonl | SOURCE...", help="An event file; with --model videos or pictures."),
    ],
    truth: Annotated[
        list[Path],
        typer.Option("--truth", "-t", help="COCO .json, MOT gt.txt or folder of sequences, or events .jsonl."),
    ],
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model to run on the sources.")] = None,
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help=f"Model's least confidence [{_MODEL_CONFIDENCE}].")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="Label file of the model, one name per line.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda[:N].")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Load pickled models, which can run any code.")] = False,
    tracks: Annotated[
        bool | None, typer.Option("--tracks/--no-tracks", help="Track in videos [as the truth has tracks].")
    ] = None,
    map_: Annotated[
        list[str] | None, typer.Option("--map", metavar="NAME=NAME", help="Predicted class = class of the truth.")
    ] = None,
    at: Annotated[
        float | None, typer.Option(min=0, max=1, help="Confidence of precision and recall [greatest F1 per class].")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots to this file.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More detail.")] = 0,
) -> None:
    """Measure predictions against truth: average precision, precision and recall, masks, key points, tracks.

    Predictions are an event file of `gstorch run`, or made by running --model on videos or pictures. Sequences are
    matched by name: sources with videos, pictures with files of that name. Exit code 1: something does not fit.
    """
    from pipelines.evaluation import EvaluationError
    from pipelines.evaluation import evaluate as measure
    from pipelines.evaluation.html import page

    set_up_logging(quiet, verbose)
    find_own_code()
    options = {"confidence": confidence, "labels": labels, "device": device, "trust": trust or None}
    with results_on_stdout() as stdout:
        try:
            true = _truth(truth)
            names = _renamings(map_ or [])
            predicted = _predictions(targets, model, options, true, tracks).renamed(names)
            result = measure(true, predicted, at)
            if html is not None:
                inputs = [("predictions", model or str(targets[0])), ("truth", ", ".join(map(str, truth)))]
                html.write_text(page(result, "Evaluation", inputs), encoding="utf-8")
        except EvaluationError as error:
            fail(str(error))
            raise typer.Exit(EXIT_FAILED) from error
        except OSError as error:
            fail(f"{html}: cannot write the report: {error.strerror}")
            raise typer.Exit(EXIT_FAILED) from error
        if json_:
            print(json.dumps(result.as_dict(), ensure_ascii=False), file=stdout, flush=True)
        else:
            _show(result, Console(file=stdout))


def _truth(paths: list[Path]) -> Annotations:
    from pipelines.evaluation import read_truth

    first, *others = [read_truth(path) for path in paths]
    for other in others:
        first = first.merged(other)
    return first


def _renamings(texts: list[str]) -> dict[str, str]:
    from pipelines.evaluation import EvaluationError

    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, (name, _, other) in zip(texts, pairs, strict=True) if not name or not other]:
        raise EvaluationError(f"--map {wrong[0]}: write NAME=NAME, the predicted class and the class of the truth")
    return {name.strip(): other.strip() for name, _, other in pairs}


def _predictions(
    targets: list[Path], model: str | None, options: dict[str, Any], truth: Annotations, tracks: bool | None
) -> Annotations:
    from pipelines.evaluation import EvaluationError, read_events

    missing = [str(path) for path in targets if not path.exists()]
    if missing:
        raise EvaluationError(f"{missing[0]}: there is no such file")
    if model is None:
        given = [f"--{key}" for key, value in options.items() if value is not None]
        if given or tracks is not None:
            fail(f"{', '.join(given) or '--tracks'}: only with --model")
            raise typer.Exit(EXIT_REJECTED)
        if len(targets) > 1 or targets[0].suffix != EVENTS:
            raise EvaluationError(
                f"{targets[0]}: give one event file (.jsonl), or --model to run on videos or pictures"
            )
        return read_events(targets[0])
    infer = {"model": model, "confidence": _MODEL_CONFIDENCE}
    infer |= {key: value for key, value in options.items() if value is not None}
    return _run(targets, infer, truth, tracks)


def _run(targets: list[Path], infer: dict[str, Any], truth: Annotations, tracks: bool | None) -> Annotations:
    from elements.base import ElementError
    from elements.inference.errors import ModelError
    from pipelines.assemble import AssemblyError
    from pipelines.evaluation.pairing import check_before
    from pipelines.evaluation.pictures import ENDINGS
    from pipelines.evaluation.tracks import has_tracks
    from pipelines.outputs import OutputError
    from pipelines.runtime import RuntimeUnavailableError

    try:
        if any(path.is_dir() or path.suffix.lower() in ENDINGS for path in targets):
            return _run_on_pictures(targets, infer, truth)
        from pipelines.evaluation import videos

        check_before(truth, videos.names_of(targets), each=True)
        return videos.predict(targets, infer, has_tracks(truth) if tracks is None else tracks)
    except DefinitionError as error:
        reject(error)
    except (ModelError, ElementError, AssemblyError, OutputError, RuntimeUnavailableError) as error:
        fail(str(error))
        raise typer.Exit(EXIT_FAILED) from error


def _run_on_pictures(targets: list[Path], infer: dict[str, Any], truth: Annotations) -> Annotations:
    from elements.inference.config import ModelConfig
    from elements.inference.single import SingleModel
    from pipelines.evaluation import pictures
    from pipelines.evaluation.pairing import check_before

    files = pictures.pictures_of(targets)
    check_before(truth, [file.stem for file in files], each=False)  # a folder may hold more than was labelled
    options = {key: value for key, value in infer.items() if key != "model"}
    with SingleModel(ModelConfig(infer["model"], **options)) as model:
        return pictures.predict(model, files)


def _show(result: Evaluation, console: Console) -> None:
    for note in result.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    console.print(_precision_table("rotated boxes" if result.rotated else "boxes", result.boxes))
    if result.masks:
        console.print(_precision_table("masks", result.masks))
    if result.keypoints:
        console.print(_precision_table("key points", result.keypoints))
    if result.tracks:
        console.print(_track_table(result.tracks))
    console.print(f"{result.frames} frames of {result.sequences} videos or pictures")


def _precision_table(title: str, precision: Any) -> Table:
    table = _table((title, "AP", "AP50", "AP75", "prec.", "recall", "F1", "conf.", "true", "found"))
    for item in precision.classes:
        shares = (item.ap, item.ap50, item.ap75, item.precision, item.recall, item.f1, item.confidence)
        table.add_row(escape(item.name), *map(_share, shares), str(item.truth), str(item.predicted))
    table.add_row("all", *map(_share, (precision.map, precision.map50, precision.map75)), style="bold")
    return table


def _track_table(tracks: Any) -> Table:
    table = _table(("tracks", "HOTA", "DetA", "AssA", "MOTA", "MOTP", "IDF1", "switches", "true", "found"))
    rows = [*tracks.classes.items(), *(tracks.sequences.items() if len(tracks.sequences) > 1 else []), ("all", None)]
    for name, item in rows:
        scores = item or tracks.total
        shares = (scores.hota, scores.deta, scores.assa, scores.mota, scores.motp, scores.idf1)
        counts = (scores.switches, scores.truth, scores.predicted)
        table.add_row(escape(name), *map(_share, shares), *map(str, counts), style="bold" if item is None else None)
    return table


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    return table


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"

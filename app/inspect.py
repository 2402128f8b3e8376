"""``gstorch models inspect`` and ``gstorch models layouts``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.common import fail, find_own_code, label_names, results_on_stdout
from pipelines.outcome import EXIT_FAILED

if TYPE_CHECKING:
    from elements.inference.config import ModelConfig
    from elements.inference.inspect import ModelFacts
    from elements.metadata.detections import Detections

_SHOWN_METADATA = 100  # characters of one entry


def inspect(
    model: Annotated[str, typer.Argument(metavar="FILE", help="Model file, or package.module:Class.")],
    image: Annotated[Path | None, typer.Option(help="Try it on this picture and print what it finds.")] = None,
    task: Annotated[str, typer.Option(help="What it does, if it does not tell.")] = "auto",
    layout: Annotated[str, typer.Option(help="Layout of its outputs, if they do not tell.")] = "auto",
    labels: Annotated[
        str | None, typer.Option(help="File with one class name per line, or the names with commas.")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0, max=1, help="For --image: objects below are left out.")] = 0.25,
    engine: Annotated[str, typer.Option(help="What runs it; auto: by file type.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    trust: Annotated[bool, typer.Option("--trust", help="Load a pickled file, which can run any code.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Tell what a model file is: inputs, outputs, task and layout, class names, what it says of itself.

    Exit code 1 if it cannot be used; the reason then says what to change.
    """
    from elements.inference.config import ModelConfig
    from elements.inference.errors import ModelError
    from elements.inference.inspect import inspect as inspect_model

    find_own_code()
    options: dict[str, Any] = {
        "path": model, "confidence": confidence, "labels": label_names(labels), "task": task, "layout": layout,
        "engine": engine, "device": device, "trust": trust,
    }  # fmt: skip
    with results_on_stdout() as results:
        try:
            config = ModelConfig(**options)
            facts = inspect_model(config)
            found = _found(config, image) if image is not None and facts.problem is None else None
        except ModelError as error:
            text = str(error)
            fail(text if text.startswith("model '") else f"{model}: {text}")
            raise typer.Exit(EXIT_FAILED) from error
        if as_json:
            answer = {**dataclasses.asdict(facts), **({} if found is None else {"found": _objects(facts, found)})}
            results.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
        else:
            console = Console(file=results)
            console.print(_facts_table(facts))
            if found is not None:
                console.print(_objects_table(_objects(facts, found)))
    if facts.problem:
        if not as_json:
            fail(f"{model}: {facts.problem}")
        raise typer.Exit(EXIT_FAILED)


def layouts() -> None:
    """List the layouts of outputs that are known, and what each looks like."""
    from elements.inference.decoders import Decoder

    table = Table("layout", "task", "outputs", "input by default", box=None)
    for name, kind in sorted(Decoder.registry.items()):
        usual = kind.preprocess
        given = f"{usual.color} {usual.scale} {usual.letterbox}"
        for row, (task, shape) in enumerate(kind.shapes.items()):
            table.add_row("" if row else name, task, shape.replace("[", r"\["), "" if row else given)
    console = Console()
    console.print(table)
    console.print(
        "B batch, A grid cells, C classes, M masks, K key points (with scores; 2K without), N objects, h x w a plane"
    )


def _found(config: ModelConfig, image: Path) -> Detections:
    import cv2

    from elements.inference.errors import ModelError
    from elements.inference.frame import ArrayFrame
    from elements.inference.single import SingleModel

    picture = cv2.imread(str(image))
    if picture is None:
        raise ModelError(f"--image {image}: is no picture that can be read")
    with SingleModel(config) as model:
        return model.find(ArrayFrame(picture[..., ::-1].copy()), f"--image {image}")


def _objects(facts: ModelFacts, found: Detections) -> list[dict[str, Any]]:
    """One mapping per object, in source pixels and radians."""
    objects = []
    for row in range(len(found)):
        number = int(found.class_ids[row])
        item: dict[str, Any] = {
            "class_id": number,
            "label": facts.names[number] if number < len(facts.names) else str(number),
            "confidence": round(float(found.scores[row]), 4),
            "bbox": [round(float(value), 2) for value in found.boxes[row]],
        }
        if found.angles is not None:
            item["angle"] = round(float(found.angles[row]), 4)
        if found.masks is not None:
            item["mask_pixels"] = int(found.masks[row].sum())
        if found.keypoints is not None:
            item["keypoints"] = found.keypoints[row].round(2).tolist()
        if found.embeddings is not None:
            item["embedding"] = found.embeddings[row].round(4).tolist()
        objects.append(item)
    return objects


def _facts_table(facts: ModelFacts) -> Table:
    table = Table(show_header=False, box=None)
    rows: list[tuple[str, str]] = [("file", facts.path), ("engine", facts.engine)]
    rows += [("input", f"{port.name} {_shape(port.shape)} {port.dtype}") for port in facts.inputs]
    rows += [("output", f"{port.name} {_shape(port.shape)} {port.dtype}") for port in facts.outputs]
    if facts.task and facts.layout is None:  # a class of one's own
        rows += [("task", facts.task), ("labels", _names(facts))]
    if facts.layout and facts.input_size:
        width, height = facts.input_size
        smaller = f", smaller ones in multiples of {facts.rectangular}" if facts.rectangular else ""
        rows += [
            ("task", str(facts.task)),
            ("layout", f"{facts.layout}: {facts.shapes}"),
            ("size", f"{width}x{height}{smaller}"),
            ("preprocess", ", ".join(f"{key} {value}" for key, value in facts.preprocess.items())),
            ("labels", _names(facts)),
        ]
    rows += [(key.replace("_", " "), value) for key, value in facts.file.items()]
    rows += [("metadata", f"{key}: {_short(value)}") for key, value in facts.metadata.items()]
    for key, text in rows:
        table.add_row(key, text.replace("[", r"\["))
    return table


def _names(facts: ModelFacts) -> str:
    return f"{len(facts.names)}: {', '.join(facts.names)}" if facts.names else "none"


def _objects_table(objects: list[dict[str, Any]]) -> Table:
    extras = list(dict.fromkeys(key for item in objects for key in item if key not in ("class_id", "label")))
    table = Table("label", *(key.replace("_", " ") for key in extras), title=f"{len(objects)} found", box=None)
    for item in objects:
        texts = (_short(str(item[key])) for key in extras)
        table.add_row(item["label"].replace("[", r"\["), *(text.replace("[", r"\[") for text in texts))
    return table


def _shape(shape: tuple[int | str, ...]) -> str:
    return "(" + ", ".join(str(side) for side in shape) + ")"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_METADATA else f"{text[:_SHOWN_METADATA]}…"

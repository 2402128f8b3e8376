"""Decoders: network outputs to candidates, one file per family, and the choice among them.

A new layout is one more file here with a subclass of `Decoder`: every module of this folder is imported, and a class
with a ``layout`` name is registered by being defined. Grid cells are those of strides 8, 16, 32 (also with 4 or 64, or
without 8).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from elements.inference.decoders.base import Candidates, Decoder
from elements.inference.decoders.sample import FITS, NO_FIT, Reading, Sample
from elements.inference.errors import ModelError
from elements.inference.tasks import Task

for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    importlib.import_module(f"{__name__}.{_module.name}")

LAYOUTS: tuple[str, ...] = tuple(sorted(Decoder.registry))

__all__ = ["LAYOUTS", "Candidates", "Decoder", "Reading", "Sample", "choose_decoder"]


def choose_decoder(sample: Sample, layout: str = "auto") -> Decoder:
    """The decoder for a model, from one trial run.

    Raises:
        ModelError: if ``layout`` is unknown or cannot be what the outputs are, or is ``auto`` and none or several fit.
    """
    if layout != "auto":
        return _declared(sample, layout)
    readings = [(kind, reading) for kind in Decoder.registry.values() for reading in _readings(kind, sample)]
    best = max((reading.certainty for _, reading in readings), default=NO_FIT)
    if best < FITS:
        task = f" for task {sample.task}" if sample.task else ""
        others = _other_tasks(sample)
        if others:
            raise ModelError(
                f"its outputs, {sample.described()}, are no layout known here{task} ({_known(sample.task)}), but fit "
                f"task {' or '.join(others)}: set 'task' to what it does. If that is {sample.task}, give 'labels' with "
                "one name per class, or export it in a layout of 'gstorch models layouts'"
            )
        raise ModelError(
            f"its outputs, {sample.described()} for a {sample.size[0]}x{sample.size[1]} input, are no layout known "
            f"here{task} ({_known(sample.task)}; see 'gstorch models layouts'). If they are one of them all the same, "
            "declare it with 'layout' and 'task'; if not, export the model in one of them or write a model class of "
            "your own (model: package.module:Class)"
        )
    fitting = [(kind, reading) for kind, reading in readings if reading.certainty == best]
    if len(fitting) > 1:
        raise ModelError(_ambiguous(sample, fitting))
    kind, reading = fitting[0]
    return kind(sample, reading)


def _declared(sample: Sample, layout: str) -> Decoder:
    if layout not in Decoder.registry:
        raise ModelError(f"layout: '{layout}' is not one of auto, {', '.join(LAYOUTS)}")
    kind = Decoder.registry[layout]
    readings = _readings(kind, sample)
    if not readings:
        if sample.task and sample.task not in kind.shapes:
            raise ModelError(
                f"layout {layout} is for task {' or '.join(kind.shapes)}, but the task is {sample.task}: "
                "declare another 'layout' or 'task'"
            )
        expected = " or ".join(shape for task, shape in kind.shapes.items() if sample.task in (None, task))
        raise ModelError(
            f"layout {layout}{f' for task {sample.task}' if sample.task else ''} needs {expected}, but its outputs "
            f"are {sample.described()}: declare another 'layout' or 'task', or export the model anew"
        )
    return kind(sample, max(readings, key=lambda reading: reading.certainty))


def _readings(kind: type[Decoder], sample: Sample) -> list[Reading]:
    """The ways in which ``kind`` can read the outputs; one that leaves outputs unread is only for who declares it."""
    found = []
    for task in kind.shapes:
        reading = kind.read(sample, task) if sample.task in (None, task) else None
        if reading is None:
            continue
        if not kind.by_name and set(reading.outputs) != set(sample.outputs):
            reading = replace(reading, certainty=NO_FIT)
        found.append(reading)
    return found


def _other_tasks(sample: Sample) -> list[Task]:
    """The tasks that the outputs fit, where they do not fit the one that is declared."""
    if sample.task is None:
        return []
    undeclared = replace(sample, task=None)
    readings = [reading for kind in Decoder.registry.values() for reading in _readings(kind, undeclared)]
    return list(dict.fromkeys(reading.task for reading in readings if reading.certainty >= FITS))


def _known(task: Task | None) -> str:
    """The layouts' names; with their shapes where the task leaves few."""
    if task in (None, "detect"):
        return ", ".join(name for name in LAYOUTS if task is None or task in Decoder.registry[name].shapes)
    return "; ".join(
        f"{name} {kind.shapes[task]}" for name, kind in sorted(Decoder.registry.items()) if task in kind.shapes
    )


def _ambiguous(sample: Sample, fitting: list[tuple[type[Decoder], Reading]]) -> str:
    """The text that names all readings and what would decide among them."""
    texts = [
        f"{kind.layout} ({reading.task}{'' if reading.classes is None else f', {reading.classes} classes'})"
        for kind, reading in fitting
    ]
    layouts = list(dict.fromkeys(kind.layout for kind, _ in fitting))
    tasks = list(dict.fromkeys(reading.task for _, reading in fitting))
    names = "no names are" if sample.label_count is None else f"{sample.label_count} names are"
    choices = f"'layout' ({' or '.join(layouts)})" if len(tasks) == 1 else f"'task' ({' or '.join(tasks)})"
    return (
        f"its outputs, {sample.described()}, can be read as {' or '.join(texts)}, and {names} given: "
        f"declare {choices} or give 'labels' with one name per class"
    )

"""Which predictions belong to which truth: sequences by name, frames by number, classes by name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from pipelines.evaluation.annotations import Annotations, EvaluationError, Objects, Sequence


@dataclass(frozen=True, slots=True)
class Frame:
    """Truth and predictions of one frame."""

    sequence: str
    number: int
    truth: Objects
    predicted: Objects


@dataclass(slots=True)
class Paired:
    """Frames in order, the classes that are looked at, and what the user should know about the match."""

    frames: list[Frame]
    names: tuple[str, ...]
    notes: list[str] = field(default_factory=list)


def pair(truth: Annotations, predictions: Annotations) -> Paired:
    """Bring truth and predictions together.

    A single sequence on both sides is paired whatever the names. Else every sequence of the truth must be predicted.
    Frames of the truth without a prediction line count as frames in which nothing was found. Classes are those of the
    truth that have objects; what else was predicted is left out, with a note.

    Raises:
        EvaluationError: if sequences, frames, sizes or class names show that the two do not belong together.
    """
    notes: list[str] = []
    names = _names(truth, predictions, notes)
    wanted = frozenset(names)
    frames = []
    pairs, extra = _sequences(truth, predictions.sequences, predictions.origin)
    if extra:
        notes.append(f"left out, since there is no truth for them: {_listed(extra)}")
    for name, other in pairs:
        true, found = truth.sequences[name], predictions.sequences[other]
        _check_sizes(name, true, found)
        for number in _numbers(name, true, found, predictions.origin, notes):
            sides = (
                Objects.of([row for row in sequence.frames.get(number, []) if row.label in wanted])
                for sequence in (true, found)
            )
            frames.append(Frame(name, number, *sides))
    return Paired(frames, names, notes)


def check_before(truth: Annotations, names: Collection[str], each: bool) -> None:
    """Whether predictions of sequences with these names will fit the truth, before a model is run for them.

    Args:
        truth: as for `pair`.
        names: of the sequences that would be predicted.
        each: whether each of them needs truth.

    Raises:
        EvaluationError: if a sequence of the truth is missing, or ``each`` and one has no truth.
    """
    _, extra = _sequences(truth, names, "the list of sources")
    if extra and each:
        known = _listed(truth.sequences)
        raise EvaluationError(
            f"no truth for {_listed(extra)}: {truth.origin} has {known}; leave it out, or add --truth"
        )


def _names(truth: Annotations, predictions: Annotations, notes: list[str]) -> tuple[str, ...]:
    with_objects = {row.label for row in truth.rows() if not row.ignore}
    names = tuple(name for name in truth.all_names() if name in with_objects)
    counts = Counter(row.label for row in predictions.rows())
    if counts and not with_objects & counts.keys():
        pairs = [(a, b) for a in counts for b in names if a.lower() == b.lower()]
        example = "{}={}".format(*(pairs[0] if pairs else (next(iter(counts)), names[0])))
        raise EvaluationError(
            f"no class name in common: {predictions.origin} has {_listed(counts)}, {truth.origin} has "
            f"{_listed(names)}; say which are the same, such as --map '{example}'"
        )
    others = {name: count for name, count in counts.items() if name not in with_objects}
    if others:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(others.items(), key=lambda item: -item[1])[:8])
        notes.append(f"left out, since the truth has none of these classes: {listed}{' …' if len(others) > 8 else ''}")
    missing = [name for name in names if name not in counts]
    if counts and missing:
        notes.append(f"never predicted: {_listed(missing)}")
    return names


def _sequences(truth: Annotations, predicted: Collection[str], origin: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Names of sequences that belong together, true and predicted, and those that have no truth."""
    if len(truth.sequences) == len(predicted) == 1:
        return [(next(iter(truth.sequences)), next(iter(predicted)))], []
    missing = [name for name in truth.sequences if name not in predicted]
    if missing:
        near = difflib.get_close_matches(missing[0], predicted, n=1)
        raise EvaluationError(
            f"{origin} has nothing for {_listed(missing)} of {truth.origin}; it has {_listed(predicted)}"
            + (f". Is '{near[0]}' the same as '{missing[0]}'? Name the source so" if near else "")
        )
    extra = [name for name in predicted if name not in truth.sequences]
    return [(name, name) for name in truth.sequences], extra


def _check_sizes(name: str, true: Sequence, found: Sequence) -> None:
    if true.size and found.size and true.size != found.size:
        raise EvaluationError(
            f"'{name}' has {true.size[0]} x {true.size[1]} pixels in the truth and {found.size[0]} x {found.size[1]} "
            f"in the predictions: boxes in pixels cannot be compared"
        )


def _numbers(name: str, true: Sequence, found: Sequence, origin: str, notes: list[str]) -> list[int]:
    """The frames that count, in order."""
    last = max(found.frames, default=-1)
    if true.length is not None and last >= true.length:
        raise EvaluationError(
            f"{origin} has frame {last} of '{name}', of which the truth has {true.length} frames (0 to "
            f"{true.length - 1}): is it the truth of another clip?"
        )
    expected = set(range(true.length)) if true.length is not None else set(true.frames)
    missing = expected - found.frames.keys()
    if expected and len(missing) == len(expected):
        raise EvaluationError(f"{origin} has none of the {len(expected)} frames of '{name}' that the truth has")
    if missing:
        notes.append(f"'{name}': {len(missing)} of {len(expected)} frames have no prediction and count as empty")
    return sorted(expected | found.frames.keys())


def by_class(paired: Paired) -> dict[str, list[Frame]]:
    """The frames that have objects of a class, with those objects only, by class name."""
    result: dict[str, list[Frame]] = {name: [] for name in paired.names}
    for frame in paired.frames:
        for name in {*frame.truth.labels.tolist(), *frame.predicted.labels.tolist()}:
            sides = (side[np.asarray(side.labels == name)] for side in (frame.truth, frame.predicted))
            result[name].append(Frame(frame.sequence, frame.number, *sides))
    return result


def _listed(names: Iterable[str], most: int = 8) -> str:
    given = [f"'{name}'" for name in names]
    return ", ".join(given[:most]) + (f" … ({len(given)})" if len(given) > most else "")

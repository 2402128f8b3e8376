"""Parameters of classes and functions of one's own."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from elements.inference.errors import ModelError
from elements.inference.params import ParamProblem, call_with_params, checked_params, import_object


class Colour(enum.Enum):
    RED = "red"


class Typed:
    def __init__(
        self,
        config: object,
        size: int,
        threshold: float = 0.5,
        *,
        name: str = "plate",
        mode: Literal["fast", "exact"] = "fast",
        path: Path | None = None,
        pair: tuple[int, int] = (1, 2),
        colour: Colour = Colour.RED,
        model_json: bool = False,
    ) -> None:
        self.seen = dict(locals())


@dataclass
class Plain:
    sizes: list[int]


class Open:
    def __init__(self, size: int = 1, **others: object) -> None:
        self.size, self.others = size, others


class Nothing:
    pass


def read(outputs, frames, *, least: float = 0.5):
    return outputs, frames, least


def test_values_get_the_types_of_the_signature() -> None:
    given = {"size": 3, "threshold": 1, "path": "a/b", "pair": [3, 4], "colour": "red", "model_json": True}
    values, problems = checked_params(Typed, given, {"config"})
    assert problems == []
    assert values == {
        "size": 3, "threshold": 1.0, "path": Path("a/b"), "pair": (3, 4), "colour": Colour.RED, "model_json": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [ParamProblem(("size",), "missing", "is missing")]),
        ({"size": "3"}, [ParamProblem(("size",), "wrong", "input should be a valid integer, not this text")]),
        ({"size": True}, [ParamProblem(("size",), "wrong", "input should be a valid integer, not a boolean")]),
        ({"size": 1, "name": 7}, [ParamProblem(("name",), "wrong", "input should be a valid string, not this number")]),
        (
            {"size": 1, "treshold": 1.0},
            [ParamProblem(("treshold",), "unknown", "unknown parameter 'treshold'", "did you mean 'threshold'?")],
        ),
        (
            {"size": 1, "mode": "quick"},
            [ParamProblem(("mode",), "wrong", "input should be 'fast' or 'exact', not this text")],
        ),
        (
            {"size": 1, "pair": [1, "b"]},
            [ParamProblem(("pair", 1), "wrong", "input should be a valid integer, not this text")],
        ),
        ({"size": 1, "config": 1}, 1),  # given by the program, so it is no parameter
    ],
)
def test_what_does_not_fit_is_named(given, expected) -> None:
    values, problems = checked_params(Typed, given, {"config"})
    assert values == {}
    assert problems == expected or len(problems) == expected


def test_several_problems_come_together() -> None:
    _, problems = checked_params(Typed, {"sice": 1, "mode": 3}, {"config"})
    assert [problem.path for problem in problems] == [("size",), ("mode",), ("sice",)]


def test_other_shapes_of_signatures() -> None:
    assert checked_params(Plain, {"sizes": [1, 2]})[0] == {"sizes": [1, 2]}
    assert checked_params(Open, {"more": [1, {"a": 2}]})[0] == {"more": [1, {"a": 2}]}
    assert checked_params(Nothing, {}) == ({}, [])
    assert checked_params(Nothing, {"a": 1})[1] == [
        ParamProblem(("a",), "unknown", "unknown parameter 'a'", "it takes none")
    ]


def test_a_call_binds_what_fits() -> None:
    made = call_with_params(Typed, {"size": 3}, {"config": "C", "names": ("a",)})()
    assert (made.seen["config"], made.seen["size"], made.seen["threshold"]) == ("C", 3, 0.5)
    assert call_with_params(read, {"least": 1}, {"config": "C"}, skip=2)("o", "f") == ("o", "f", 1.0)
    with pytest.raises(ModelError, match=r"params: frames: unknown parameter 'frames' \(known: least\)"):
        call_with_params(read, {"frames": 1}, {}, skip=2)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nowhere.models:A", "there is no module 'nowhere' on Python's path"),
        ("tests.nowhere:A", "there is no module 'tests.nowhere' on Python's path"),
        ("tests.own_models:God", "module 'tests.own_models' has no class 'God': did you mean 'Good'?"),
    ],
)
def test_what_cannot_be_imported(path, text) -> None:
    with pytest.raises(ModelError) as caught:
        import_object(path)
    assert str(caught.value).startswith(text)

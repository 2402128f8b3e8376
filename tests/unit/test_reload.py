"""What a changed definition asks of a running pipeline, and how commands are carried out, without media."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from elements.inference.errors import ModelError
from elements.inference.source_options import SourceOptions
from pipelines.control import (
    Command,
    Control,
    ResultState,
    SetClasses,
    SetConfidence,
    SetInterval,
    SetIou,
    SetRegion,
    SetReload,
    SetSwap,
    SwapModel,
)
from pipelines.definition import Definition, load_definition
from pipelines.reload import Reloader, plan_reload

TEXT = """
pipeline: entrance
sources:
  - {name: door, uri: door.mp4}
  - {name: yard, uri: yard.mp4, infer: {infer: {confidence: 0.6, classes: [car]}}}
stages:
  - infer: {model: a.onnx, confidence: 0.4}
  - track:
  - draw: {line_width: 2}
outputs:
  - events: {path: e.jsonl}
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("a.onnx", "b.onnx", "labels.txt"):
        (tmp_path / name).touch()
    (tmp_path / "p.yaml").write_text(TEXT)
    return tmp_path


def read(folder: Path, *changes: tuple[str, str]) -> Definition:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "p.yaml").write_text(text)
    return load_definition(folder / "p.yaml")


def planned(folder: Path, *changes: tuple[str, str]) -> tuple[list[Any], list[str]]:
    plan = plan_reload(read(folder), read(folder, *changes))
    return list(plan.commands), [place.replace(f"{folder}/", "") for place in plan.restart]


def test_the_same_definition_asks_for_nothing(folder):
    assert planned(folder) == ([], [])


def test_thresholds_of_a_stage(folder):
    commands, restart = planned(folder, ("confidence: 0.4}", "confidence: 0.5, iou: 0.6, interval: 2}"))
    assert commands == [SetConfidence("infer", 0.5), SetIou("infer", 0.6), SetInterval("infer", 2)]
    assert restart == []


def test_options_of_a_source(folder):
    own = "{model: b.onnx, region: [0, 0, 1, 0.5], interval: 1}"
    commands, restart = planned(folder, ("{confidence: 0.6, classes: [car]}", own))
    region = ((0, 0), (1, 0), (1, 0.5), (0, 0.5))
    assert commands == [
        SwapModel("infer", str(folder / "b.onnx"), "yard"),
        SetConfidence("infer", None, "yard"),
        SetClasses("infer", None, "yard"),
        SetInterval("infer", 1, "yard"),
        SetRegion("infer", region, "yard"),
    ]
    assert restart == []


def test_options_of_a_source_that_go(folder):
    commands, _ = planned(folder, (", infer: {infer: {confidence: 0.6, classes: [car]}}", ""))
    assert commands == [SetConfidence("infer", None, "yard"), SetClasses("infer", None, "yard")]


def test_what_belongs_to_a_model_changes_with_it_in_one_swap(folder):
    new = "model: b.onnx, confidence: 0.4, labels: labels.txt, layout: yolox"
    commands, restart = planned(folder, ("model: a.onnx, confidence: 0.4", new))
    options = {"labels": str(folder / "labels.txt"), "layout": "yolox"}
    assert commands == [SwapModel("infer", str(folder / "b.onnx"), options=options)]
    assert restart == []
    back = plan_reload(read(folder, ("model: a.onnx, confidence: 0.4", new)), read(folder)).commands
    assert back == (SwapModel("infer", str(folder / "a.onnx"), options={"labels": None, "layout": None}),)


def test_how_models_prove_themselves_comes_before_the_model(folder):
    new = "model: b.onnx, swap: {shadow: 4, keep: 1m}, reload: watch"
    commands, _ = planned(folder, ("model: a.onnx", new))
    assert commands == [
        SetSwap("infer", {"shadow": 4, "keep": 60.0}),
        SetReload("infer", "watch"),
        SwapModel("infer", str(folder / "b.onnx")),
    ]


def test_what_needs_a_restart_is_named_with_its_place(folder):
    commands, restart = planned(
        folder,
        ("uri: door.mp4", "uri: gate.mp4"),
        ("confidence: 0.4}", "confidence: 0.5, on_error: skip}"),
        ("line_width: 2", "line_width: 4"),
        ("path: e.jsonl", "path: f.jsonl"),
    )
    assert commands == [SetConfidence("infer", 0.5)]
    assert restart == [
        "p.yaml:11: outputs",
        "p.yaml:7: stages[0].infer.on_error",
        "p.yaml:9: stages[2].draw.line_width",
        "p.yaml:4: sources[0].uri",
    ]


def test_other_stages_or_sources_need_a_restart(folder):
    commands, restart = planned(folder, ("  - track:\n", ""), ("confidence: 0.4", "confidence: 0.5"))
    assert (commands, restart) == ([], ["p.yaml:7: stages (other stages)"])
    commands, restart = planned(folder, ("name: door", "name: gate"), ("confidence: 0.4", "confidence: 0.5"))
    assert (commands, restart) == ([SetConfidence("infer", 0.5)], ["p.yaml:4: sources (other sources)"])


# --- commands ---------------------------------------------------------------------------------------------------------


class FakeStage:
    """Takes changes as `LiveChanges` does; refuses the confidence 0.13 and the class 'cat'."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.sources: dict[int, SourceOptions] = {1: SourceOptions(confidence=0.6)}

    def source(self, source_id):
        return self.sources.get(source_id, SourceOptions())

    def set_threshold(self, name, value):
        if value == 0.13:
            raise ModelError("unlucky")
        self.calls.append((name, value))

    def set_interval(self, value):
        self.calls.append(("interval", value))

    def set_swap_options(self, options):
        self.calls.append(("swap", options))

    def set_reload(self, value):
        self.calls.append(("reload", value))

    def set_sources(self, sources):
        if any(options.classes == ("cat",) for options in sources.values()):
            raise ModelError("classes: 'cat' is not a class of the model")
        self.sources = dict(sources)
        return {source_id: f"answer {source_id}" for source_id, options in sources.items() if options.model}

    def swap(self, options):
        self.calls.append(("model", options))
        return "answer"

    def refresh(self, fresh=()):
        self.calls.append(("refresh", *fresh) if fresh else "refresh")


@pytest.fixture
def stage() -> FakeStage:
    return FakeStage()


@pytest.fixture
def control(stage) -> Control:
    return Control(lambda: {"infer": stage}, ["door", "yard"])


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (SetConfidence("infer", 0.5), ("confidence", 0.5)),
        (SetIou("infer", 0.5), ("iou", 0.5)),
        (SetInterval("infer", 3), ("interval", 3)),
        (SetSwap("infer", {"shadow": 2}), ("swap", {"shadow": 2})),
        (SetReload("infer", "watch"), ("reload", "watch")),
    ],
)
def test_commands_to_a_stage(control, stage, command, call):
    result = control.apply(command)
    assert (result.state, result.swap, stage.calls) == (ResultState.APPLIED, None, [call])


def test_commands_to_a_source_keep_its_other_options(control, stage):
    for command in (
        SetConfidence("infer", 0.7, "door"),
        SetInterval("infer", 3, "yard"),
        SetClasses("infer", ("car",), "yard"),
        SetRegion("infer", (0, 0, 1, 0.5), "yard"),
    ):
        assert control.apply(command).state is ResultState.APPLIED
    region = ((0, 0), (1, 0), (1, 0.5), (0, 0.5))
    assert stage.sources == {0: SourceOptions(0.7), 1: SourceOptions(0.6, ("car",), 3, region)}
    control.apply(SetConfidence("infer", None, "yard"))
    assert stage.sources[1].confidence is None


def test_a_swap_is_accepted_and_answered_later(control, stage):
    result = control.apply(SwapModel("infer", "b.onnx", options={"layout": "yolox"}))
    assert (result.state, result.swap) == (ResultState.ACCEPTED, "answer")
    assert stage.calls == [("model", {"model": "b.onnx", "layout": "yolox"})]
    result = control.apply(SwapModel("infer", "c.onnx", "yard"))
    assert (result.state, result.swap) == (ResultState.ACCEPTED, "answer 1")
    assert control.apply(SwapModel("infer", None, "yard")).state is ResultState.APPLIED
    assert stage.sources[1] == SourceOptions(0.6)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (SetConfidence("infre", 0.5), "no running infer stage 'infre': did you mean 'infer'?"),
        (SetConfidence("infer", 0.5, "gate"), "no source 'gate': known: door, yard"),
        (SetConfidence("infer", 0.13), "unlucky"),
        (SetConfidence("infer", None), "SetConfidence needs a value, or a source"),
        (SetConfidence("infer", 1.5, "door"), "confidence: 1.5 is not between 0 and 1"),
        (SetClasses("infer", "car", "door"), "classes: 'car' is not a list of names or numbers"),
        (SetClasses("infer", 5, "door"), "classes: 5 is not a list of names or numbers"),
        (SetSwap("infer", None), "SetSwap needs a value, or a source"),
        (SetClasses("infer", ("cat",), "door"), "classes: 'cat' is not a class of the model"),
        (SetRegion("infer", (0, 0, 2, 1), "door"), "leaves the picture"),
        (SwapModel("infer", "b.onnx", "door", {"layout": "yolox"}), "give them with the stage's model"),
        (SwapModel("infer", "b.onnx", options="yolox"), "SwapModel needs options by name"),
        (SetIou(["infer"], 0.5), "no running infer stage"),
        (SetConfidence("infer", 0.5, 1), "no source '1': known: door, yard"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(control, stage, command, reason):
    before = dict(stage.sources)
    result = control.apply(command)
    assert result.state is ResultState.REFUSED
    assert reason in result.reason
    assert (stage.calls, stage.sources) == ([], before)


@pytest.mark.parametrize("command", [{"stage": "infer", "confidence": 0.5}, "confidence 0.5", None, Command("infer")])
def test_what_is_no_command_is_told_with_those_that_there_are(control, stage, command):
    with pytest.raises(TypeError, match=r"is no command: there are SetConfidence, SetIou, .*, in pipelines\.control$"):
        control.apply(command)
    assert stage.calls == []


# --- SIGHUP -----------------------------------------------------------------------------------------------------------


def test_a_rejected_file_changes_nothing_and_says_why(folder, control, stage, caplog):
    caplog.set_level(logging.INFO, "gstorch")
    reloader = Reloader(read(folder), lambda: read(folder, ("confidence: 0.4", "confidence: 4")), control)
    reloader.reload()
    assert stage.calls == []
    assert "nothing is changed" in caplog.text
    assert "p.yaml:7:40: stages[0].infer.confidence: '4' is too large (at most 1)" in caplog.text


def test_a_change_is_applied_once_and_told(folder, control, stage, caplog):
    caplog.set_level(logging.INFO, "gstorch")
    definitions = [read(folder, ("confidence: 0.4", "confidence: 0.5")), read(folder, ("e.jsonl", "f.jsonl"))]
    started = read(folder)
    reloader = Reloader(started, lambda: definitions[0], control)
    reloader.reload()
    reloader.reload()
    assert stage.calls == [("confidence", 0.5), "refresh", "refresh"]
    assert "infer: SetConfidence (value 0.5): applied" in caplog.text
    assert "the definition has not changed" in caplog.text
    definitions.pop(0)
    reloader.reload()
    assert stage.calls[3:] == [("confidence", 0.4), "refresh"]
    assert "p.yaml:11: outputs: changed, which needs a restart" in caplog.text


def test_what_was_just_asked_for_is_not_asked_for_again(folder, control, stage):
    other = ("a.onnx", "b.onnx")
    definitions = [read(folder, other), read(folder, other, ("{confidence: 0.6", "{model: a.onnx, confidence: 0.6"))]
    reloader = Reloader(read(folder), lambda: definitions.pop(0), control)
    reloader.reload()
    assert [call[0] for call in stage.calls] == ["model"]
    reloader.reload()
    assert stage.calls[1:] == [("refresh", 1)]


def test_a_refused_command_is_told(folder, control, caplog):
    Reloader(read(folder), lambda: read(folder, ("confidence: 0.4", "confidence: 0.13")), control).reload()
    assert "infer: SetConfidence (value 0.13): refused: unlucky" in caplog.text

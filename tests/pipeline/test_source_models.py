"""Models and options of single sources, changed while clips run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elements.inference.swap.status import SwapState
from pipelines.control import ResultState, SetClasses, SetConfidence, SetRegion, SwapModel
from tests.gstorch_cli import events
from tests.pipeline.swap_runs import NEW, OLD, Run, labels, make_clips, make_finders, versions

BY_SOURCE = "tests.swap_models:BySource"


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[Path]:
    return make_clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="module")
def finders(tmp_path_factory) -> dict[str, str]:
    return make_finders(tmp_path_factory.mktemp("models"))


def found_by(lines: list[dict[str, Any]], source_id: int) -> list[float]:
    """Scores of the objects in the source's last event."""
    return [o["confidence"] for o in [e for e in lines if e["source_id"] == source_id][-1]["objects"]]


def test_sources_have_options_of_their_own_without_cross_talk(tmp_path, clips):
    own = {
        1: {"confidence": 0.2},
        2: {"classes": ["car"], "interval": 2},
        3: {"region": [0, 0.5, 1, 1], "confidence": 0.1},
    }
    with Run(clips, tmp_path / "e.jsonl", own, model=BY_SOURCE, confidence=0.6) as run:
        run.wait_for_frames(40)
    lines = events(run.out)
    assert found_by(lines, 0) == [0.9, 0.7]
    assert found_by(lines, 1) == [0.9, 0.7, 0.5, 0.3]
    of_second = [[o["confidence"] for o in e["objects"]] for e in lines if e["source_id"] == 2]
    assert of_second[:7] == [[0.7], [], [], [0.7], [], [], [0.7]]
    assert found_by(lines, 3) == [0.5, 0.3]


def test_options_of_sources_change_while_running(tmp_path, clips):
    with Run(clips[:2], tmp_path / "e.jsonl", model=BY_SOURCE, confidence=0.6) as run:
        assert run.apply(SetConfidence("infer", 0.4, "clip1")).state is ResultState.APPLIED
        assert run.apply(SetRegion("infer", (0, 0.5, 1, 1), "clip1")).state is ResultState.APPLIED
        run.wait_for_frames(10)
        lines = events(run.out)
        assert (found_by(lines, 0), found_by(lines, 1)) == ([0.9, 0.7], [0.5])
        result = run.apply(SetClasses("infer", ("cat",), "clip0"))
        assert result.state is ResultState.REFUSED
        assert "'cat' is not a class of the model" in result.reason
        assert run.apply(SwapModel("infer", OLD, options={"labels": 5})).reason == "labels: 5 is not text"
        run.element.set_property("source-options", '{"0": {"classes": ["car"]}}')
        run.wait_for_frames(10)
        lines = events(run.out)
        assert (found_by(lines, 0), found_by(lines, 1)) == ([0.7], [0.9, 0.7])
        run.element.set_property("source-options", '{"0": {"classes": ["cat"]}}')
        assert "'cat' is not a class" in run.element.get_property("swap-error")
        assert json.loads(run.element.get_property("source-options")) == {"0": {"classes": ["car"]}}
        assert run.apply(SetConfidence("infer", 0.8)).state is ResultState.APPLIED
        run.wait_for_frames(10)
    lines = run.lines()
    assert (found_by(lines, 0), found_by(lines, 1)) == ([], [0.9])


def test_sources_with_models_of_their_own(tmp_path, clips, finders):
    own = {1: {"model": finders["large"]}, 3: {"model": finders["large"]}}
    with Run(clips, tmp_path / "e.jsonl", own, model=finders["small"]) as run:
        assert run.swap(NEW, "clip0")[0] is SwapState.ACTIVE
        run.wait_for_frames(10)
        assert run.apply(SwapModel("infer", None, "clip3")).state is ResultState.APPLIED
        run.wait_for_frames(10)
    lines = run.lines()
    last = {e["source_id"]: e["models"]["infer"].partition("@")[0] for e in lines}
    assert last == {0: NEW, 1: "large.onnx", 2: "small.onnx", 3: "small.onnx"}
    assert labels([e for e in lines if e["source_id"] == 1], "large.onnx") == {"rot", "grün"}
    assert labels([e for e in lines if e["source_id"] == 2], "small.onnx") == {"red", "green"}
    assert {e["models"]["infer"] for e in lines if e["source_id"] == 2} == {run.runner.models()["infer"]["version"]}
    assert run.runner.models()["infer"]["sources"].keys() == {"clip0", "clip1"}


def test_a_model_without_a_class_that_a_source_wants_is_rejected(tmp_path, clips):
    with Run(clips[:2], tmp_path / "e.jsonl", {1: {"classes": ["car"]}}, model=BY_SOURCE) as run:
        state, reason = run.swap(NEW)
        assert state is SwapState.REJECTED
        assert "source 1: classes: 'car' is not a class of the model" in reason
    assert versions(run.lines()) == [f"{BY_SOURCE}@1"]

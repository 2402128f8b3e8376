"""Models exchanged while clips run: by every way, to good and bad models; every frame is there, and says who did it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elements.inference.swap.status import SwapState
from pipelines.control import SwapModel
from tests.gstorch_cli import command, environment, events, line_count
from tests.pipeline.swap_runs import NEW, OLD, Run, labels, make_clips, make_finders, versions
from tests.waiting import LIMIT_S, wait_for


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[Path]:
    return make_clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="module")
def finders(tmp_path_factory) -> dict[str, str]:
    return make_finders(tmp_path_factory.mktemp("models"))


# --- every way in -----------------------------------------------------------------------------------------------------


def by_control(run: Run, model: str) -> None:
    assert run.swap(model) == (SwapState.ACTIVE, "")


def by_property(run: Run, model: str) -> None:
    run.element.set_property("model-path", model)
    wait_for(lambda: run.state() == "active" and run.element.get_property("model-version").startswith(model))
    run.wait_for_frames(8)


@pytest.mark.parametrize("way", [by_control, by_property])
def test_another_model_takes_over(tmp_path, clips, way: Callable[[Run, str], None]):
    with Run(clips[:2], tmp_path / "e.jsonl") as run:
        way(run, NEW)
    lines = run.lines()
    assert versions(lines) == [f"{OLD}@1", f"{NEW}@2"]
    assert (labels(lines, OLD), labels(lines, NEW)) == ({"old"}, {"new"})
    models = run.runner.models()["infer"]
    assert (models["version"], models["swaps"], models["error"]) == (f"{NEW}@2", 1, None)


def test_another_size_layout_and_class_list(tmp_path, clips, finders):
    with Run(clips, tmp_path / "e.jsonl", model=finders["small"]) as run:
        assert run.swap(finders["large"])[0] is SwapState.ACTIVE
        assert run.swap(finders["small"])[0] is SwapState.ACTIVE
    lines = run.lines()
    names = [version.partition("@")[0] for version in versions(lines)]
    assert names == ["small.onnx", "large.onnx"]
    assert labels(lines, "small.onnx") == {"red", "green"}
    assert labels(lines, "large.onnx") == {"rot", "grün"}
    for source_id in range(4):  # for each source the change happens at one frame, there and back
        of_source = [e["models"]["infer"] for e in lines if e["source_id"] == source_id]
        assert sum(a != b for a, b in itertools.pairwise(of_source)) == 2


def test_a_file_that_changes_is_loaded_again(tmp_path, clips, finders):
    model = tmp_path / "people.onnx"
    model.write_bytes(Path(finders["small"]).read_bytes())
    with Run(clips[:1], tmp_path / "e.jsonl", model=str(model), reload="watch") as run:
        before = run.element.get_property("model-version")
        with model.open("wb") as file:  # written in pieces
            content = Path(finders["large"]).read_bytes()
            for start in range(0, len(content), len(content) // 3):
                file.write(content[start : start + len(content) // 3])
                file.flush()
        wait_for(lambda: run.element.get_property("model-version") != before)
        run.wait_for_frames(4)
        between = run.element.get_property("model-version")
        garbage = tmp_path / "new.onnx"
        garbage.write_bytes(b"not a model")
        garbage.rename(model)
        wait_for(lambda: run.state() == "rejected")
        assert "not a complete ONNX file" in run.element.get_property("swap-error")
        assert run.element.get_property("model-version") == between
        good = tmp_path / "new.onnx"
        good.write_bytes(Path(finders["small"]).read_bytes())
        good.rename(model)
        wait_for(lambda: run.element.get_property("model-version") == before)
        assert run.element.get_property("swap-error") == ""
        run.wait_for_frames(4)
    lines = run.lines()
    assert [labels(lines, version) for version in versions(lines)] == [{"red", "green"}, {"rot", "grün"}]


def test_a_watched_file_that_stays_empty_is_told_once(tmp_path, clips, finders, monkeypatch):
    monkeypatch.setattr("elements.inference.swap.loader.POLL_S", 0.05)
    model = tmp_path / "people.onnx"
    model.write_bytes(Path(finders["small"]).read_bytes())
    with Run(clips[:1], tmp_path / "e.jsonl", model=str(model), reload="watch") as run:
        before = run.element.get_property("model-version")
        model.write_bytes(b"")
        wait_for(lambda: run.state() == "rejected", LIMIT_S)
        assert "its file is empty after 10 s" in run.element.get_property("swap-error")
        run.wait_for_frames(4)
        summary = run.element.live.summary(["a"])
        assert (summary["version"], summary["rejected"], summary["swaps"]) == (before, 1, 0)
        model.write_bytes(Path(finders["large"]).read_bytes())
        wait_for(lambda: run.element.get_property("model-version") != before, LIMIT_S)
        run.wait_for_frames(4)
    assert [labels(run.lines(), version) for version in versions(run.lines())] == [{"red", "green"}, {"rot", "grün"}]


DEFINITION = """
pipeline: test
sources:
  - {{name: a, uri: {clip}, loop: true, infer: {{infer: {{confidence: 0.1}}}}}}
stages:
  - infer: {{model: {model}, confidence: {confidence}}}
outputs:
  - events: {{path: e.jsonl}}
"""


def test_sighup_reads_the_definition_again(tmp_path, clips):
    file, out = tmp_path / "p.yaml", tmp_path / "e.jsonl"

    def write(**values: Any) -> None:
        file.write_text(DEFINITION.format(**{"clip": clips[0], "model": OLD, "confidence": 0.4, **values}))

    write()
    arguments = command("run", file, "--json")
    with (tmp_path / "log.txt").open("w") as errors:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment())

    def hang_up(until: str) -> None:
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: until in (tmp_path / "log.txt").read_text())

    try:
        wait_for(lambda: line_count(out) > 10)
        write(confidence=4)
        hang_up("p.yaml:6:")
        write(confidence=0.5, model="tests.swap_models:BySource", clip=clips[1])
        hang_up("is active")
        count = line_count(out)
        wait_for(lambda: line_count(out) > count + 10)
        process.send_signal(signal.SIGTERM)
        summary = json.loads(process.communicate(timeout=LIMIT_S)[0])
    finally:
        process.kill()
    log = (tmp_path / "log.txt").read_text()
    assert process.returncode == 0, log
    assert "stages[0].infer.confidence: '4' is too large (at most 1)" in log
    assert "infer: SetConfidence (value 0.5): applied" in log
    assert "p.yaml:4: sources[0].uri: changed, which needs a restart" in log
    lines = events(out)
    assert [e["frame"] for e in lines] == list(range(summary["frames"]))
    assert versions(lines) == [f"{OLD}@1", "tests.swap_models:BySource@1"]
    assert len(lines[-1]["objects"]) == 4  # the source's own confidence is lower than the stage's
    assert summary["models"]["infer"]["version"] == "tests.swap_models:BySource@1"


# --- models that are no good ------------------------------------------------------------------------------------------


def test_a_broken_file_leaves_the_running_model_alone(tmp_path, clips, finders, caplog):
    garbage, cut = tmp_path / "garbage.onnx", tmp_path / "cut.onnx"
    garbage.write_bytes(os.urandom(4096))
    cut.write_bytes(Path(finders["small"]).read_bytes()[:-500])
    with Run(clips[:1], tmp_path / "e.jsonl", model=finders["small"]) as run:
        before = run.element.get_property("model-version")
        for path, reason in (
            (garbage, "not a complete ONNX file"),
            (cut, "cut.onnx"),
            (tmp_path / "nowhere.onnx", "no such file"),
        ):
            run.element.set_property("model-path", str(path))
            wait_for(lambda reason=reason: reason in run.element.get_property("swap-error"))
            assert run.state() == "rejected"
        assert run.element.get_property("model-version") == before
        run.wait_for_frames(8)
    assert versions(run.lines()) == [before]
    assert "is rejected: model" in caplog.text
    assert f"'{before}' goes on" in caplog.text
    assert run.runner.models()["infer"]["rejected"] == 3


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("RaisesOnThird", "ValueError: no such luck"),
        ("Exits", "SystemExit: 3"),
        ("NotNumbers", "rows of its output are not finite numbers"),
    ],
)
def test_a_model_that_fails_is_taken_back(tmp_path, clips, model, reason, overlap, monkeypatch):
    if overlap:  # as on a GPU: several batches are on their way when it fails
        monkeypatch.setattr("tests.swap_models.Old.overlaps", True, raising=False)
        monkeypatch.setattr("tests.swap_models.Old.submit", lambda self, frames: frames, raising=False)
        monkeypatch.setattr("tests.swap_models.Old.collect", lambda self, frames: self.infer(frames), raising=False)
    path = f"tests.swap_models:{model}"
    with Run(clips[:2], tmp_path / "e.jsonl") as run:
        assert run.swap(path)[0] is SwapState.ACTIVE
        wait_for(lambda: run.state() == "rolled-back")
        assert reason in run.element.get_property("swap-error")
        assert run.element.get_property("model-version") == f"{OLD}@1"
        run.wait_for_frames(8)
    lines = run.lines()
    assert versions(lines) == [f"{OLD}@1", f"{path}@1"]
    assert lines[-1]["models"]["infer"] == f"{OLD}@1"
    assert all(len(e["objects"]) == 1 for e in lines)  # no frame is without its result
    assert run.runner.models()["infer"]["rolled_back"] == 1
    assert run.runner.element_counts("pyinfer")["infer"]["frames-failed"] == 0


def test_what_is_not_numbers_from_the_start_is_rejected_in_the_warm_up(tmp_path, clips, finders):
    with Run(clips[:1], tmp_path / "e.jsonl", model=finders["small"]) as run:
        for model in ("tests.swap_models:NotNumbersAtOnce", finders["not numbers"]):
            state, reason = run.swap(model)
            assert (state, "not finite numbers in its first run" in reason) == (SwapState.REJECTED, True), reason
    assert len(versions(run.lines())) == 1


def test_finding_nothing_where_the_old_model_did(tmp_path, clips):
    with Run(clips[:1], tmp_path / "e.jsonl", swap={"no_detections": 5}) as run:
        run.swap("tests.swap_models:Blind")
        wait_for(lambda: run.state() == "rolled-back")
        run.wait_for_frames(4)
    lines = run.lines()
    assert sum(e["models"]["infer"].endswith("Blind@1") for e in lines) >= 5
    assert len(lines[-1]["objects"]) == 1


def test_a_shadow_run_decides(tmp_path, clips):
    with Run(clips[:2], tmp_path / "e.jsonl", swap={"shadow": 3}) as run:
        state, reason = run.swap("tests.swap_models:Blind")
        assert (state, "where the model in force found" in reason) == (SwapState.REJECTED, True), reason
        assert run.swap("tests.swap_models:RaisesOnThird")[0] is SwapState.REJECTED
        assert run.swap(NEW) == (SwapState.ACTIVE, "")
    assert versions(run.lines()) == [f"{OLD}@1", f"{NEW}@2"]


# --- many swaps -------------------------------------------------------------------------------------------------------


def test_swaps_one_after_the_other_on_four_sources(tmp_path, clips, finders):
    with Run(clips, tmp_path / "e.jsonl", model=finders["small"]) as run:
        for number in range(10):
            assert run.swap(finders["large" if number % 2 == 0 else "small"])[0] is SwapState.ACTIVE
    lines = run.lines()
    assert run.runner.models()["infer"]["swaps"] == 10
    assert labels(lines, "small.onnx") == {"red", "green"}
    assert labels(lines, "large.onnx") == {"rot", "grün"}
    of_first = [e["models"]["infer"] for e in lines if e["source_id"] == 0]
    assert sum(a != b for a, b in itertools.pairwise(of_first)) == 10


def test_requests_all_at_once_are_all_answered_and_the_last_one_wins(tmp_path, clips):
    with Run(clips[:1], tmp_path / "e.jsonl") as run:
        results = [run.apply(SwapModel("infer", NEW if n % 2 else OLD)) for n in range(9)]
        results.append(run.apply(SwapModel("infer", NEW)))
        states = [result.swap.result(LIMIT_S).state for result in results if result.swap]
        assert len(states) == 10
        assert states[-1] is SwapState.ACTIVE
        assert set(states) <= {SwapState.ACTIVE, SwapState.SUPERSEDED}
        run.wait_for_frames(4)
    assert run.lines()[-1]["models"]["infer"] == f"{NEW}@2"

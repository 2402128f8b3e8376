"""Models exchanged while clips run: by every way, to good and bad models; every frame is there, and says who did it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elements.inference.swap.status import SwapState
from pipelines.control import CommandResult, ResultState, SetClasses, SetConfidence, SetRegion, SwapModel
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from tests.clips import make_clip
from tests.gstorch_cli import command, environment, events, line_count
from tests.onnx_models import NAMES, finder, save
from tests.waiting import LIMIT_S, wait_for

OLD, NEW = "tests.swap_models:Old", "tests.swap_models:New"


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    sizes = ((160, 120), (120, 160), (128, 128), (192, 108))
    for number, (width, height) in enumerate(sizes):
        make_clip(folder / f"clip{number}.mp4", width, height, 30)
    return [folder / f"clip{number}.mp4" for number in range(4)]


@pytest.fixture(scope="module")
def finders(tmp_path_factory) -> dict[str, str]:
    """Real networks: of another input size, layout and class list each."""
    folder = tmp_path_factory.mktemp("models")
    german = {"names": str(["rot", "grün", "blau"])}
    return {
        "small": save(finder("yolov8", (160, 160), metadata={"names": str(list(NAMES))}), folder / "small.onnx"),
        "large": save(finder("yolox", (320, 320), metadata=german), folder / "large.onnx"),
        "not numbers": save(
            finder("yolov8", (160, 160), not_numbers=True, metadata={"names": str(list(NAMES))}), folder / "nan.onnx"
        ),
    }


class Run:
    """Looping clips through one infer stage, on a thread; made to be changed from the test."""

    def __init__(self, clips: list[Path], out: Path, sources: dict[int, dict] | None = None, **infer: Any) -> None:
        own = sources or {}
        self.out = out
        definition = {
            "pipeline": "test",
            "sources": [
                {"uri": str(clip), "loop": True, "infer": {"infer": own[i]} if i in own else {}}
                for i, clip in enumerate(clips)
            ],
            "stages": [{"infer": {"model": OLD, **infer}}],
            "outputs": [{"events": {"path": str(out)}}],
        }
        self.runner: Runner = open_runner(make_plan(definition_from_mapping(definition, out.parent)))
        self._thread = threading.Thread(target=self.runner.run)

    def __enter__(self) -> Run:
        self._thread.start()
        self.wait_for_frames(8)
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.stop()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    @property
    def element(self) -> Any:
        return self.runner.assembly.gst.get_by_name("infer")

    def wait_for_frames(self, more: int) -> None:
        target = line_count(self.out) + more
        wait_for(lambda: line_count(self.out) >= target)

    def apply(self, command: Any) -> CommandResult:
        return self.runner.control.apply(command)

    def swap(self, model: str, source: str | None = None, **options: Any) -> tuple[SwapState, str]:
        """Ask for a model and wait for the answer and some frames behind it."""
        result = self.apply(SwapModel("infer", model, source, options))
        assert result.swap is not None, result.reason
        answer = result.swap.result(LIMIT_S)
        self.wait_for_frames(8)
        return answer.state, answer.reason

    def state(self) -> str:
        return str(self.element.get_property("swap-state"))

    def lines(self) -> list[dict[str, Any]]:
        """All events, after the run: every frame once and in order, each with its version and labels that fit."""
        found = events(self.out)
        for source_id, count in enumerate(self.runner.counts):
            numbers = [e["frame"] for e in found if e["source_id"] == source_id]
            assert numbers == list(range(count.frames))
        assert self.runner.exit_code() == 0, self.runner.outcome.error
        assert all(e["models"].keys() == {"infer"} for e in found)
        return found


def versions(lines: list[dict[str, Any]]) -> list[str]:
    """The models that did the frames, each once, in the order in which they came."""
    return list(dict.fromkeys(e["models"]["infer"] for e in lines))


def labels(lines: list[dict[str, Any]], version: str) -> set[str]:
    return {o["label"] for e in lines if e["models"]["infer"].startswith(version) for o in e["objects"]}


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


# --- per source -------------------------------------------------------------------------------------------------------

BY_SOURCE = "tests.swap_models:BySource"


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

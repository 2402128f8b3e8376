"""Runs through NVIDIA's pyservicemaker (a double with its traps): they end as on the portable one, in bounded time."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from elements.base import Gst, GstBase, keep_floating, sink_and_src
from pipelines.bus import BusEvent
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from tests.clips import make_clip
from tests.contract import pipeline_double
from tests.gstorch_cli import events, line_count
from tests.own_models import RELEASE
from tests.waiting import LIMIT_S

FRAMES = 12


@pytest.fixture(autouse=True)
def nvidias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyservicemaker", pipeline_double.module())
    pipeline_double.crashes.clear()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "red.mp4"
    make_clip(path, 160, 120, FRAMES)
    return path


def runner_for(clip: Path, model: str = "Good", sources: int = 1, **changes: Any) -> Runner:
    definition = {
        "pipeline": "test",
        "sources": [{"uri": str(clip)}] * sources,
        "stages": [{"infer": {"model": f"tests.own_models:{model}"}}],
        "outputs": [{"events": {"path": str(clip.parent / f"{model}.jsonl")}}],
        **changes,
    }
    plan = make_plan(definition_from_mapping(definition, clip.parent))
    assert not plan.runtime.portable
    return open_runner(plan)


def test_a_run_ends_with_every_frame_from_the_first(clip):
    """NVIDIA's probes miss what comes before the loop runs, and its `wait` needs to see the end of stream."""
    runner = runner_for(clip, sources=2)
    runner.run()
    assert (runner.exit_code(), runner.outcome.error, runner.outcome.stuck) == (0, "", False)
    assert [count.frames for count in runner.counts] == [FRAMES, FRAMES]
    assert [event["frame"] for event in events(clip.parent / "Good.jsonl", "red")] == list(range(FRAMES))
    assert pipeline_double.crashes == []


def test_an_error_ends_the_run_though_wait_would_not(clip):
    runner = runner_for(clip, "RaisesOnFour")
    runner.run()
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith("infer: source 'red', frame ")
    assert "no such luck" in runner.outcome.error
    assert not runner.outcome.stuck


def test_a_failed_start_is_no_success(clip):
    runner = runner_for(clip, "FailsToLoad")
    runner.run()
    assert runner.exit_code() == 1
    assert "weights are bad" in runner.outcome.error
    assert not runner.outcome.stuck


def test_a_start_that_fails_without_a_word(clip):
    class Refuses(GstBase.BaseTransform):
        __gtype_name__ = "TestRefuses"
        __gstmetadata__ = ("refuses", "Generic", "does not start and does not say why", "tests")
        __gsttemplates__ = sink_and_src("ANY")

        def __init__(self) -> None:
            super().__init__()
            keep_floating(self)

        def do_start(self) -> bool:
            return False

    Gst.Element.register(None, "test_refuses", 0, Refuses)
    infer = {"model": "tests.own_models:Good"}
    runner = runner_for(clip, stages=[{"infer": infer}, {"node": {"factory": "test_refuses", "name": "lazy"}}])
    runner.run()
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith("an element refused to start without saying why: GST_DEBUG=3")
    assert not runner.outcome.stuck


def test_a_signal_ends_the_run_though_wait_would_not_see_it(clip):
    runner = runner_for(clip, sources=1, mux={"batch_size": 1}, runtime={"stop_timeout": "5s"})
    runner.inbox.put(BusEvent("signal", name=signal.SIGINT.name))
    runner.run()
    assert runner.outcome.interrupted
    assert not runner.outcome.stuck
    assert runner.outcome.error == ""


def test_the_newest_pipeline_of_a_process_is_found(clip):
    """Elements of several pipelines have the same names."""
    first, second = runner_for(clip), runner_for(clip, "RaisesOnFour")
    assert first.assembly.gst != second.assembly.gst
    assert second._element("infer").get_property("model-path") == "tests.own_models:RaisesOnFour"


def test_a_blocked_run_ends_in_bounded_time_and_says_where(clip, monkeypatch):
    monkeypatch.setattr("pipelines.runner.NULL_TIMEOUT_S", 0.5)
    RELEASE.clear()
    runner = runner_for(clip, "BlocksOnFour", mux={"batch_size": 1}, runtime={"stall_timeout": "2s"})
    runner.run()
    RELEASE.set()
    assert runner.exit_code() == 1
    assert "are held by 'infer' (pyinfer)" in runner.outcome.error
    assert runner.outcome.stuck
    assert line_count(clip.parent / "BlocksOnFour.jsonl") == 4
    for thread in threading.enumerate():
        if thread.name in ("pyservicemaker", "shut-down"):
            thread.join(LIMIT_S)


def test_an_operator_that_raises_does_not_reach_nvidias_code(clip, monkeypatch):
    """There it would end the process."""
    from pipelines.operators.counters import Counter

    monkeypatch.setattr(Counter, "process", lambda self, batch_meta: 1 / 0)
    runner = runner_for(clip)
    runner.run()
    assert runner.exit_code() == 1
    assert runner.outcome.error == "Counter: division by zero"
    assert pipeline_double.crashes == []

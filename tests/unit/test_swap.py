"""The states of a swap, with models that do nothing, a clock that is set by hand, and no frames."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.swap import swap
from elements.inference.swap.loader import Answer
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.served import ServedModel
from elements.inference.swap.status import SwapState, SwapStatus
from elements.inference.swap.swap import Swapper
from elements.metadata.detections import Detections
from tests.waiting import LIMIT_S

BOX = (10.0, 10.0, 50.0, 50.0)


def found(*boxes) -> Detections:
    return Detections(np.array(boxes, np.float32).reshape(-1, 4), np.full(len(boxes), 0.9), np.zeros(len(boxes)))


@dataclass
class FakeModel:
    closed: threading.Event = field(default_factory=threading.Event)

    def load(self) -> None: ...

    def infer(self, frames) -> list[Detections]:
        return [found(BOX) for _ in frames]

    def close(self) -> None:
        self.closed.set()


@dataclass
class Bench:
    """A swapper whose models are named a, b, c … and whose loading can be held up."""

    options: SwapOptions = field(default_factory=SwapOptions)
    now: float = 0.0
    contents: dict[str, int] = field(default_factory=dict)
    steps: list[SwapStatus] = field(default_factory=list)
    loaded: list[ServedModel] = field(default_factory=list)
    loading: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.go.set()
        self.swapper = Swapper(
            self.options,
            self.prepare,
            self.steps.append,
            self.load,
            lambda config, _: self.version_of(config.path),
            self.clock,
        )
        self.first = self.swapper.open(ModelConfig("a"))

    def load(self, config: ModelConfig) -> ServedModel:
        if config.path != "a":
            self.loading.set()
            assert self.go.wait(LIMIT_S)
        if config.path == "garbage":
            raise ModelError("model 'garbage': it is not a complete ONNX file")
        self.loaded.append(ServedModel(config, FakeModel(), self.version_of(config.path)))
        return self.loaded[-1]

    def version_of(self, path: str) -> str:
        return f"{path}@{self.contents.get(path, 1)}"

    def clock(self) -> float:
        return self.now

    def prepare(self, served: ServedModel, source_id: int | None) -> None:
        if served.config.path == "unfit":
            raise ModelError("its output is NaN")
        if served.config.path == "exits":
            raise SystemExit(3)

    def request(self, path: str, source_id: int | None = None) -> Answer:
        return self.swapper.request(ModelConfig(path), source_id)

    def swap(self, path: str, source_id: int | None = None) -> SwapStatus:
        return self.request(path, source_id).result(LIMIT_S)

    def serves(self, source_id: int | None = None) -> str:
        return self.swapper.active(source_id).config.path

    def states(self, path: str) -> list[str]:
        return [str(step.state) for step in self.steps if step.model == path]

    def is_closed(self, path: str) -> bool:
        """Whether all instances of a model are closed; closing has a thread of its own."""
        return all(m.model.closed.wait(LIMIT_S) for m in self.loaded if m.config.path == path)

    def is_open(self, path: str) -> bool:
        return any(not m.model.closed.is_set() for m in self.loaded if m.config.path == path)


@pytest.fixture
def bench():
    made = Bench()
    yield made
    made.go.set()
    made.swapper.close()


def test_a_new_model_takes_over_and_the_old_one_is_kept_for_a_while(bench):
    answer = bench.swap("b")
    assert (answer.state, answer.version, answer.in_force) == (SwapState.ACTIVE, "b@1", "b@1")
    assert bench.states("b") == ["loading", "active"]
    assert bench.serves() == "b"
    bench.now = 9.9
    bench.swapper.release(bench.swapper.route([0])[0])
    assert bench.is_open("a")
    bench.now = 10.0
    bench.swapper.release(bench.swapper.route([0])[0])
    assert bench.is_closed("a")
    assert bench.is_open("b")


def test_a_batch_on_its_way_keeps_its_model_open(bench):
    (group,) = bench.swapper.route([0, 1])
    assert group.places == [0, 1]
    bench.swap("b")
    bench.now = 10.0
    (other,) = bench.swapper.route([0])
    assert (group.served.config.path, other.served.config.path) == ("a", "b")
    assert bench.is_open("a")
    bench.swapper.release(group)
    assert bench.is_closed("a")
    bench.swapper.release(other)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("garbage", "not a complete ONNX file"), ("unfit", "its output is NaN"), ("exits", "SystemExit: 3")],
)
def test_a_model_that_cannot_be_used_changes_nothing(bench, path, reason):
    answer = bench.swap(path)
    assert answer.state is SwapState.REJECTED
    assert answer.failed
    assert reason in answer.reason
    assert answer.in_force == "a@1"
    assert f"'{answer.in_force}' goes on" in str(answer)
    assert bench.serves() == "a"
    assert bench.is_closed(path)
    assert bench.swap("b").state is SwapState.ACTIVE


def test_of_several_requests_the_last_one_wins_and_each_is_answered(bench):
    bench.go.clear()
    first = bench.request("b")
    assert bench.loading.wait(LIMIT_S)
    waiting, last = bench.request("c"), bench.request("d")
    assert waiting.result(LIMIT_S).state is SwapState.SUPERSEDED  # before it was looked at
    bench.go.set()
    assert first.result(LIMIT_S).state is SwapState.SUPERSEDED  # it could be loaded, but is not wanted any more
    assert "'d' was asked for after it" in first.result().reason
    assert last.result(LIMIT_S).state is SwapState.ACTIVE
    assert bench.serves() == "d"
    assert bench.is_closed("b")
    assert [m.config.path for m in bench.loaded] == ["a", "b", "d"]


def test_a_failure_leads_back_to_the_old_model(bench):
    bench.swap("b")
    b = bench.swapper.active()
    bench.swapper.failed(b, "ValueError: no such luck")
    assert bench.serves() == "a"
    assert bench.steps[-1].state is SwapState.ROLLED_BACK
    assert (bench.steps[-1].version, bench.steps[-1].in_force) == ("b@1", "a@1")
    assert bench.steps[-1].reason == "ValueError: no such luck"
    assert bench.is_closed("b")
    bench.swapper.failed(bench.swapper.active(), "again")  # there is no way back from the old one
    assert bench.serves() == "a"


def test_after_the_time_there_is_no_way_back(bench):
    bench.swap("b")
    bench.now = 10.0
    bench.swapper.release(bench.swapper.route([0])[0])
    bench.swapper.failed(bench.swapper.active(), "too late")
    assert bench.serves() == "b"


def test_without_keeping_the_old_model_goes_at_once():
    bench = Bench(SwapOptions(keep=0))
    bench.swap("b")
    assert bench.is_closed("a")
    bench.swapper.close()


def test_a_swap_in_the_trial_time_of_another_leads_back_to_that_one(bench):
    bench.swap("b")
    bench.swap("c")
    assert bench.is_closed("a")
    bench.swapper.failed(bench.swapper.active(), "no")
    assert bench.serves() == "b"


def test_memory_does_not_grow_with_swaps(bench):
    for number in range(30):
        bench.swap(f"m{number}")
        assert len([m for m in bench.loaded if m.users]) <= 2
    assert all(bench.is_closed(f"m{number}") for number in range(28))


# --- health -----------------------------------------------------------------------------------------------------------


def well(bench, count, objects=0, seconds=0.01, source_id=0):
    bench.swapper.went_well(bench.swapper.active(source_id), [source_id] * count, [objects] * count, seconds)


def test_finding_nothing_where_the_old_model_did_leads_back():
    bench = Bench(SwapOptions(no_detections=5))
    well(bench, 2, objects=1)
    well(bench, 4)
    bench.swap("b")
    well(bench, 4)
    assert bench.serves() == "b"
    well(bench, 1)
    assert bench.serves() == "a"
    assert bench.steps[-1].reason == "it found nothing in 5 frames, and the model before it did (swap.no_detections)"
    bench.swapper.close()


@pytest.mark.parametrize("before", [(0, 0), (3, 1), (8, 0)])
def test_finding_nothing_is_no_fault_where_the_old_model_found_nothing_either(before):
    frames, objects = before
    bench = Bench(SwapOptions(no_detections=5))
    if objects:
        well(bench, frames, objects)
        well(bench, 5)
    elif frames:
        well(bench, frames)
    bench.swap("b")
    well(bench, 50)
    assert bench.serves() == "b"
    bench.swapper.close()


def test_three_slow_batches_in_a_row_lead_back():
    bench = Bench(SwapOptions(max_latency=0.05))
    bench.swap("b")
    for seconds in (0.06, 0.06, 0.05, 0.06, 0.06):
        well(bench, 1, seconds=seconds)
        assert bench.serves() == "b"
    well(bench, 1, seconds=0.07)
    assert bench.serves() == "a"
    assert "3 batches in a row took longer than 50 ms, the last 70 ms" in bench.steps[-1].reason
    bench.swapper.close()


# --- shadow -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shadowed():
    made = Bench(SwapOptions(shadow=2))
    yield made
    made.swapper.close()


def shadow(bench, old: Detections, new: Detections, times: int = 2) -> None:
    for _ in range(times):
        (group,) = bench.swapper.trials([0])
        bench.swapper.compare(group.served, [(old, new)])
        bench.swapper.release(group)


def until_shadow(bench, path="b") -> Answer:
    """Ask for a model and wait until its shadow run begins."""
    begun = threading.Event()
    note = bench.steps.append
    bench.swapper._notify = lambda step: (note(step), step.state is SwapState.SHADOW and begun.set())
    answer = bench.request(path)
    assert begun.wait(LIMIT_S)
    return answer


def test_a_shadow_run_that_agrees_is_followed_by_the_switch(shadowed):
    answer = until_shadow(shadowed)
    shadow(shadowed, found(BOX), found((12, 10, 52, 50)), times=1)
    assert shadowed.serves() == "a"
    assert not answer.done()
    shadow(shadowed, found(BOX), found((12, 10, 52, 50)), times=1)
    assert answer.result(LIMIT_S).state is SwapState.ACTIVE
    assert shadowed.states("b") == ["loading", "shadow", "active"]
    assert shadowed.swapper.trials([0]) == []


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (found(), "it found 0 objects where the model in force found 2"),
        (found(BOX, BOX, BOX, BOX), "it found 8 objects"),
        (found((35, 10, 75, 50)), "mean IoU"),
        (found((200, 200, 240, 240)), "overlap those of the model in force by 0.00"),
    ],
)
def test_a_shadow_run_that_differs_rejects_the_model(shadowed, new, reason):
    answer = until_shadow(shadowed)
    shadow(shadowed, found(BOX), new)
    assert answer.result(LIMIT_S).state is SwapState.REJECTED
    assert reason in answer.result().reason
    assert shadowed.serves() == "a"
    assert shadowed.is_closed("b")


def test_a_model_that_fails_in_its_shadow_run_is_rejected(shadowed):
    answer = until_shadow(shadowed)
    (group,) = shadowed.swapper.trials([0])
    shadowed.swapper.failed_trial(group.served, "ValueError: no")
    shadowed.swapper.release(group)
    assert answer.result(LIMIT_S).reason == "in its shadow run: ValueError: no"
    assert shadowed.is_closed("b")


def test_a_request_ends_the_shadow_run_of_another(shadowed):
    first = until_shadow(shadowed, "b")
    until_shadow(shadowed, "c")
    assert first.result(LIMIT_S).state is SwapState.SUPERSEDED
    (group,) = shadowed.swapper.trials([0])
    assert group.served.config.path == "c"
    shadowed.swapper.release(group)


# --- models of sources ------------------------------------------------------------------------------------------------


def test_a_source_with_a_model_of_its_own(bench):
    bench.swap("b", source_id=1)
    groups = bench.swapper.route([0, 1, 2, 1])
    assert [(g.served.config.path, g.places) for g in groups] == [("a", [0, 2]), ("b", [1, 3])]
    for group in groups:
        bench.swapper.release(group)
    assert bench.swapper.versions() == {None: "a@1", 1: "b@1"}
    bench.swap("c")
    assert [bench.serves(i) for i in (0, 1, 2)] == ["c", "b", "c"]
    bench.swapper.withdraw(1)
    assert bench.serves(1) == "c"
    assert bench.is_closed("b")


def test_sources_share_a_model(bench):
    bench.swap("b", source_id=1)
    bench.swap("b", source_id=2)
    assert bench.swapper.active(1) is bench.swapper.active(2)
    (group,) = bench.swapper.route([2, 1])
    assert group.places == [0, 1]
    bench.swapper.release(group)
    bench.swapper.withdraw(1)
    assert bench.is_open("b")
    bench.swapper.withdraw(2)
    assert bench.is_closed("b")


def test_on_the_way_back_a_source_follows_the_stage_again(bench):
    bench.swap("b", source_id=1)
    bench.swapper.failed(bench.swapper.active(1), "no")
    assert bench.serves(1) == "a"
    bench.swap("c")
    assert bench.serves(1) == "c"
    bench.now = 10.0
    bench.swapper.release(bench.swapper.route([0])[0])
    assert bench.is_closed("a")


def test_the_same_model_again_is_not_even_loaded(bench):
    answer = bench.swap("a")
    assert (answer.state, answer.reason) == (SwapState.ACTIVE, "it is in force already")
    assert bench.swapper.active() is bench.first
    assert len(bench.loaded) == 1


def test_the_same_file_with_new_content_is_another_model(bench):
    bench.swap("b")
    bench.swap("b", source_id=1)
    bench.contents["b"] = 2
    bench.swapper.refresh()
    assert bench.swap("c", source_id=2).state is SwapState.ACTIVE  # behind what refresh asked for
    assert bench.swapper.versions() == {None: "b@2", 1: "b@2", 2: "c@1"}
    assert bench.swapper.active(0) is bench.swapper.active(1)


def test_requests_that_wait_are_answered_at_the_end(bench):
    bench.go.clear()
    loading = bench.request("b")
    assert bench.loading.wait(LIMIT_S)
    waiting = bench.request("c", source_id=3)
    closing = threading.Thread(target=bench.swapper.close)
    closing.start()
    assert waiting.result(LIMIT_S).reason == "the stage stops"
    bench.go.set()
    assert loading.result(LIMIT_S).state is SwapState.REJECTED
    closing.join(LIMIT_S)
    assert bench.is_closed("a")
    assert bench.is_closed("b")
    assert bench.swap("d").state is SwapState.REJECTED


def test_a_model_that_does_not_end_loading_holds_nothing_up(bench, monkeypatch, caplog):
    monkeypatch.setattr(swap, "LOADING_TIMEOUT_S", 0.01)
    bench.go.clear()
    bench.request("b")
    assert bench.loading.wait(LIMIT_S)
    with caplog.at_level("WARNING", "gstorch"):
        bench.swapper.close()
    assert "model 'b' is still loading after 0 s: it is not waited for" in caplog.text
    assert bench.is_closed("a")
    bench.go.set()


def test_what_is_fresh_is_not_asked_for_again(bench):
    bench.swap("b", source_id=1)
    bench.contents["a"] = bench.contents["b"] = 2
    bench.swapper.refresh([1])
    assert bench.swap("c", source_id=2).state is SwapState.ACTIVE  # behind what refresh asked for
    assert bench.swapper.versions() == {None: "a@2", 1: "b@1", 2: "c@1"}

"""The states of a swap."""

from __future__ import annotations

import threading

import pytest

from elements.inference.swap import swap
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.status import SwapState
from tests.unit.swap_bench import Bench
from tests.waiting import LIMIT_S


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

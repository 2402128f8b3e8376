"""How a new model is judged: by its health while it is on trial, and beside the old one in a shadow run."""

from __future__ import annotations

import threading

import pytest

from elements.inference.swap.loader import Answer
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.status import SwapState
from elements.metadata.detections import Detections
from tests.unit.swap_bench import BOX, Bench, found
from tests.waiting import LIMIT_S

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

"""A stage's models at work on batches, without GStreamer: who does which frame, and what is done about failures."""

from __future__ import annotations

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import InferenceError, ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.session import Session
from elements.inference.source_options import SourceOptions
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.status import SwapState, SwapStatus
from tests.waiting import LIMIT_S


def config(name: str = "Old", **options) -> ModelConfig:
    return ModelConfig(f"tests.swap_models:{name}", **options)


def frames(*sources: int, number: int = 0) -> list[ArrayFrame]:
    return [ArrayFrame(np.zeros((60, 80, 3), np.uint8), source, number) for source in sources]


@pytest.fixture
def open_session():
    opened = []

    def make(name: str = "Old", confidence: float = 0.25, **options) -> tuple[Session, list[SwapStatus]]:
        steps: list[SwapStatus] = []
        session = Session(config(name, confidence=confidence), notify=steps.append, **options)
        opened.append(session)
        session.open()
        return session, steps

    yield make
    for session in opened:
        session.close()


def run(session: Session, *sources: int, number: int = 0) -> list[tuple[int, str, int]]:
    """(source, label of the model, number of objects) of each frame."""
    results = session.collect(session.submit(frames(*sources, number=number)))
    return [(result.frame.source_id, result.names[0], len(result.detections)) for result in results]


def swapped(session: Session, name: str) -> SwapStatus:
    return session.swap(config(name)).result(LIMIT_S)


def test_a_batch_on_its_way_is_done_by_the_model_that_it_was_given_to(open_session):
    session, _ = open_session()
    before = session.submit(frames(0, 1))
    assert swapped(session, "New").state is SwapState.ACTIVE
    after = session.submit(frames(0, 1))
    assert [result.version for result in session.collect(before)] == ["tests.swap_models:Old@1"] * 2
    assert [result.version for result in session.collect(after)] == ["tests.swap_models:New@2"] * 2
    assert [result.names for result in session.collect(session.submit(frames(0)))] == [("new",)]


@pytest.mark.parametrize("name", ["RaisesOnThird", "NotNumbers", "Exits"])
def test_frames_of_a_model_that_fails_are_done_again_by_the_old_one(open_session, name):
    session, steps = open_session()
    run(session, 0, 1)
    assert swapped(session, name).state is SwapState.ACTIVE
    on_their_way = [session.submit(frames(0, 1, number=number)) for number in range(5)]
    results = [session.collect(pending) for pending in on_their_way]
    assert [[len(result.detections) for result in batch] for batch in results] == [[1, 1]] * 5
    assert results[-1][0].names == ("old",)  # although it was given to the new one
    assert steps[-1].state is SwapState.ROLLED_BACK
    assert session.frames_inferred == 12
    assert session.nan_count == 0


def test_without_a_way_back_the_stages_policy_holds(open_session):
    session, _ = open_session(swap=SwapOptions(keep=0))
    run(session, 0)
    swapped(session, "RaisesOnThird")
    for _ in range(2):
        run(session, 0)
    with pytest.raises(InferenceError, match="source 0, frame 7: ValueError: no such luck"):
        run(session, 0, number=7)


def test_a_shadow_run_sees_the_same_frames_and_changes_no_result(open_session):
    session, steps = open_session(swap=SwapOptions(shadow=2))
    run(session, 0, 1)
    answer = session.swap(config("New"))
    found = []
    while not answer.done():
        found += run(session, 0, 1)
    assert {label for _, label, _ in found} == {"old"}
    assert answer.result().state is SwapState.ACTIVE
    assert [step.state for step in steps] == [SwapState.LOADING, SwapState.SHADOW, SwapState.ACTIVE]
    assert run(session, 0) == [(0, "new", 1)]


def test_sources_with_models_and_options_of_their_own(open_session):
    own = {
        1: SourceOptions(model="tests.swap_models:New"),
        2: SourceOptions(region=((0.5, 0), (1, 0), (1, 1), (0.5, 1))),
    }
    session, _ = open_session(sources=own)
    assert sorted(run(session, 0, 1, 2)) == [(0, "old", 1), (1, "new", 1), (2, "old", 0)]
    answers = session.set_sources({0: SourceOptions(model="tests.swap_models:New")})
    assert {source: answer.result(LIMIT_S).state for source, answer in answers.items()} == {0: SwapState.ACTIVE}
    assert sorted(run(session, 0, 1, 2)) == [(0, "new", 1), (1, "old", 1), (2, "old", 1)]


def test_a_lower_confidence_of_one_source_is_not_that_of_the_others(open_session):
    session, _ = open_session("BySource", confidence=0.6, sources={1: SourceOptions(confidence=0.4)})
    assert sorted((source, count) for source, _, count in run(session, 0, 1)) == [(0, 2), (1, 3)]
    session.set_threshold("confidence", 0.8)
    assert sorted((source, count) for source, _, count in run(session, 0, 1)) == [(0, 1), (1, 3)]


def test_a_class_that_the_model_lacks_is_refused_and_nothing_changes(open_session):
    session, _ = open_session("BySource", sources={1: SourceOptions(classes=("car",))})
    with pytest.raises(ModelError, match="source 0: classes: 'cat' is not a class of the model"):
        session.set_sources({0: SourceOptions(classes=("cat",))})
    assert session.sources == {1: SourceOptions(classes=("car",))}
    with pytest.raises(ModelError, match="source 0") as refused:
        open_session("BySource", sources={0: SourceOptions(classes=("cat",))})
    assert refused.value.__cause__ is None  # a mistake of the user, whom no trace helps


def test_a_sources_own_model_does_what_the_stage_does(open_session):
    with pytest.raises(ModelError, match=r"^source 1: model '.*:Classifier' does 'classify' and the stage 'detect'"):
        open_session(sources={1: SourceOptions(model="tests.swap_models:Classifier")})


def test_a_batch_that_is_discarded_lets_its_model_go(open_session):
    session, _ = open_session(swap=SwapOptions(keep=0))
    pending = session.submit(frames(0))
    old = pending.works[0].group.served
    swapped(session, "New")
    assert old.users == 1
    session.discard(pending)
    assert old.users == 0

"""What operators of one's own ask for in vain, and how they end."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from elements.base import ElementError
from pipelines.closing import busy_operators
from pipelines.graph import Graph
from pipelines.scripted import batch_of, use_portable_api
from pipelines.stall import hanging_code
from pipelines.testing import ScriptedFrame, objects_of, run_operator

use_portable_api()

from pipelines.operators.background import Background  # noqa: E402 (needs the API)
from pipelines.operators.user import UserOperator  # noqa: E402

LABELS = ("person", "dog")


def frame(**options):
    return ScriptedFrame(objects_of((100, 50, 140, 150), (0, 0, 20, 20), track_ids=[7, -1]), LABELS, **options)


NAN, INF = float("nan"), float("inf")
IMPOSSIBLE = {
    "text nowhere": lambda f: f.draw_text("x", NAN, 3),
    "line without end": lambda f: f.draw_line((0, 0), (INF, 1)),
    "text of no size": lambda f: f.draw_text("x", 1, 1, size=-3),
    "class below 0": lambda f: f.relabel(0, "person", -3),
    "class beyond the field": lambda f: f.relabel(0, "person", 2**40),
    "added class below 0": lambda f: f.add(objects_of((0, 0, 5, 5), class_ids=[-1]), ["x"]),
    "added box of no place": lambda f: f.add(objects_of((0, NAN, 5, 5)), ["x"]),
    "probability of none": lambda f: f.set_attribute(0, "colour", "red", NAN),
    "the program's own data": lambda f: f.attach_to(0, "keypoints", "here"),
    "events by the back door": lambda f: f.attach("events", 5),
    "analytics of no stage": lambda f: f.attach("analytics", "text"),
    "changes taken away": lambda f: setattr(f, "changes", None),
}


@pytest.mark.parametrize("operator", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_done_is_a_failure_of_the_operator(operator, caplog):
    stopped = run_operator(operator, [frame(number=4)])
    (failure,) = stopped.failures
    assert failure.startswith("operator 'operator' failed on source 'source-0', frame 4: ")
    skipped = run_operator(operator, [frame(), frame(number=1)], on_error="skip")
    assert (skipped.failures, skipped.stats["failed"]) == ([], 2)
    assert skipped.frames[1].labels == LABELS


def test_half_characters_become_a_replacement():
    def rule(f):
        f.relabel(0, "a\ud800")
        f.emit("x\ud800", text="\ud83d\ude42 \udc00", **{"\udfff": 1})

    result = run_operator(rule, [frame()])
    assert result.frames[0].labels[0] == "a\ufffd"
    assert result.events == [
        {"source": "source-0", "frame": 0, "event": "x\ufffd", "text": "\U0001f642 \ufffd", "\ufffd": 1}
    ]


def test_an_added_class_number_may_be_large():
    added = run_operator(lambda f: f.add(objects_of((0, 0, 5, 5), class_ids=[2_000_000_000]), ["x"]), [frame()]).frames[
        0
    ]
    assert (added.labels[-1], added.objects.class_ids[-1]) == ("x", 2_000_000_000)


class ClosesBadly:
    def __init__(self, how: str) -> None:
        self.how = how

    def process(self, f):
        pass

    def close(self):
        if self.how == "hangs":
            threading.Event().wait(600)
        raise SystemExit(4) if self.how == "exits" else RuntimeError("no")


@pytest.mark.parametrize(("how", "told"), [("raises", "RuntimeError: no"), ("exits", "SystemExit: 4")])
def test_a_close_that_fails_is_named(how, told):
    with pytest.raises(ElementError, match=rf"operator 'operator' failed in close\(\): {told}"):
        run_operator(ClosesBadly, [frame()], params={"how": how})


def test_a_close_that_hangs_is_left_behind(monkeypatch, caplog):
    monkeypatch.setattr("pipelines.operators.user.CLOSE_S", 0.05)
    with caplog.at_level(logging.WARNING, "gstorch.operators"):
        run_operator(ClosesBadly, [frame()], params={"how": "hangs"})
    assert "operator 'operator': its close() is not done after 0.05 s: left behind" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration])
def test_nothing_leaves_an_operator(error):
    def rule(f):
        raise error

    (failure,) = run_operator(rule, [frame()]).failures
    assert error.__name__ in failure


def test_background_operators_that_never_return_are_waited_for_together(monkeypatch):
    never = threading.Event()
    workers = [Background(f"w{n}", lambda _item: never.wait(600), 4, "drop-oldest") for n in range(3)]
    for worker in workers:
        worker.give(1)
        worker.give(2)
    now = [100.0]
    monkeypatch.setattr("pipelines.operators.background.time.monotonic", lambda: now[0])
    for worker in workers:
        worker.end(limit_s=0.05)
    now[0] += 0.05  # the time is up for all of them
    assert [worker.finish() for worker in workers] == [False] * 3
    never.set()


def test_an_operator_that_holds_the_stream_up_is_named():
    told = []

    class Slow:
        def process(self, f):
            told.append(busy_operators([runner]))

    runner = UserOperator(
        name="slow", operator=Slow, params={}, sources=["door"], padding=False, mux_size=None, run="inline", queue=1,
        overflow="drop-oldest", on_error="stop", report=lambda text, _trace: told.append(text),
    )  # fmt: skip
    runner.handle_metadata(batch_of([frame(number=4)]))
    assert told == ["; operator 'slow' has been at source 'door', frame 4 for 0 s"]
    assert busy_operators([runner]) == ""


def test_a_stop_does_not_wait_for_an_operator_that_hangs(monkeypatch):
    told = []

    class Hangs:
        def process(self, f):
            now = time.monotonic()
            monkeypatch.setattr("pipelines.operators.user.time.monotonic", lambda: now + 4)
            told.extend(hanging_code(None, Graph("p"), "mux", [object(), runner], 0, limit) for limit in (5, 4))

    runner = UserOperator(
        name="slow", operator=Hangs, params={}, sources=["door"], padding=False, mux_size=None, run="inline", queue=1,
        overflow="drop-oldest", on_error="stop", report=lambda text, _trace: told.append(text),
    )  # fmt: skip
    runner.handle_metadata(batch_of([frame(number=4)]))
    assert told == ["", "operator 'slow' has been at source 'door', frame 4 for 4 s"]

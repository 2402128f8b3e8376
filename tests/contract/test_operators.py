"""Operators of one's own on scripted frames: what they see, what they change, and what they do wrong."""

from __future__ import annotations

import importlib
import logging
import sys
import threading

import numpy as np
import pytest

from elements.base import ElementError
from pipelines.operators.background import Background
from pipelines.testing import ScriptedFrame, objects_of, run_operator
from tests.waiting import LIMIT_S

PERSONS = objects_of(
    (100, 50, 140, 150), (300, 60, 360, 200), (0, 0, 20, 20), track_ids=[7, 8, -1], class_ids=[0, 0, 2]
)
LABELS = ["person", "person", "dog"]


def frame(**options):
    return ScriptedFrame(PERSONS, LABELS, **options)


def changed(operator, **options):
    """The frame behind an operator."""
    result = run_operator(operator, [frame()], **options)
    assert result.failures == []
    return result.frames[0]


# --- what it sees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mux", [None, (640, 640), (1280, 720)])
@pytest.mark.parametrize("padding", [False, True])
def test_places_are_source_pixels_whatever_the_mux_makes_of_them(mux, padding):
    seen = []
    run_operator(lambda f: seen.append(f), [frame(size=(1280, 720), number=5, time_s=0.5)], mux=mux, padding=padding)
    (view,) = seen
    np.testing.assert_allclose(view.objects.boxes, PERSONS.boxes, atol=1e-3)
    assert (view.source, view.number, view.time_s, view.width, view.height) == ("source-0", 5, 0.5, 1280, 720)
    assert (view.labels, view.objects.track_ids.tolist()) == (tuple(LABELS), [7, 8, -1])
    assert view.centers[0].tolist() == pytest.approx([120, 100], abs=1e-3)


def test_confidence_of_an_object_that_only_the_tracker_continued_is_not_a_number():
    seen = []
    run_operator(
        lambda f: seen.append(f.objects.scores.tolist()),
        [ScriptedFrame(objects_of((0, 0, 5, 5), scores=[-0.1]), ["person"])],
    )
    assert np.isnan(seen[0]).all()


def test_time_and_attached_data():
    seen = []

    def look(f):
        seen.append((f.time_utc, f.data["analytics"], f.object_data[2]["analytics"]))

    given = frame(
        time_utc_ns=1_700_000_000_123_000_000,
        data={"analytics": {"occupancy": 2}},
        object_data=[{}, {}, {"analytics": {"zones": ["door"]}}],
    )
    assert run_operator(look, [given]).failures == []
    assert seen == [("2023-11-14T22:13:20.123Z", {"occupancy": 2}, {"zones": ["door"]})]


def test_names_of_ones_own_are_read_if_declared():
    seen = []

    class Reader:
        reads = ("plate",)

        def process(self, f):
            seen.append(f.data["plate"])

    assert run_operator(Reader, [frame(data={"plate": "AB 123"})]).failures == []
    assert seen == ["AB 123"]


# --- what it changes --------------------------------------------------------------------------------------------------


def test_keep_by_a_boolean_per_object():
    after = changed(lambda f: f.keep(f.objects.class_ids == 0))
    assert (after.labels, after.objects.track_ids.tolist()) == (("person", "person"), [7, 8])


def test_remove_by_row():
    after = changed(lambda f: f.remove([0, 2]))
    assert after.objects.boxes.round(2).tolist() == [[300, 60, 360, 200]]


def test_changes_after_a_removal_still_mean_the_objects_that_were_seen():
    def rule(f):
        f.remove(0)
        f.relabel(2, "cat", class_id=9)
        f.set_attribute(1, "colour", "red", 0.75)
        f.attach_to(1, "analytics", {"zones": ["door"]})

    after = changed(rule)
    assert (after.labels, after.objects.class_ids.tolist()) == (("person", "cat"), [0, 9])
    assert after.objects.attributes == [{"colour": "red"}, {}]
    assert after.object_data == [{"analytics": {"zones": ["door"]}}, {}]


def test_a_label_of_several_objects():
    assert changed(lambda f: f.relabel(f.objects.class_ids == 0, "worker")).labels == ("worker", "worker", "dog")


def test_added_objects_have_their_own_labels():
    def rule(f):
        f.add(objects_of((10, 10, 20, 20), (30, 30, 40, 40), class_ids=[4, 4]), ["hat", "glove"])

    after = changed(rule)
    assert after.labels == (*LABELS, "hat", "glove")
    assert after.objects.boxes[3:].round(2).tolist() == [[10, 10, 20, 20], [30, 30, 40, 40]]


def test_data_is_plain_json_whatever_was_given():
    given = {"n": np.int64(3), "at": np.array([1.5, np.nan]), "who": ("a", "b"), "quote": 'say "hi" 🙂', "inf": np.inf}
    after = changed(lambda f: f.attach("analytics", given))
    expected = {"n": 3, "at": [1.5, None], "who": ["a", "b"], "quote": 'say "hi" 🙂', "inf": None}
    assert after.data["analytics"] == expected


def test_events_of_several_operators_add_up():
    first = run_operator(lambda f: f.emit("one", n=1), [frame()])
    second = run_operator(lambda f: f.emit("two"), [frame(data={"events": first.frames[0].data["events"]})])
    assert [event["event"] for event in second.events] == ["one", "two"]
    assert second.events[0] == {"source": "source-0", "frame": 0, "event": "one", "n": 1}


def test_drawings_are_in_the_pixels_of_the_batched_frame():
    batches = []

    def rule(f):
        f.draw_text("crowded", 100, 50)
        f.draw_line((0, 0), (200, 100), (-50, 100))

    from pipelines import testing

    original = testing.batch_of
    testing.batch_of = lambda *a: batches.append(original(*a)) or batches[-1]
    try:
        run_operator(rule, [frame(size=(1280, 720))], mux=(640, 360))
    finally:
        testing.batch_of = original
    (display,) = batches[0]._meta.frames[0].displays
    assert [(t.display_text, t.x_offset, t.y_offset) for t in display.texts] == [(b"crowded", 50, 25)] or [
        (str(t.display_text), t.x_offset, t.y_offset) for t in display.texts
    ] == [("crowded", 50, 25)]
    assert [(line.x1, line.y1, line.x2, line.y2) for line in display.lines] == [(0, 0, 100, 50), (100, 50, 0, 50)]


def test_more_drawings_than_a_display_meta_holds():
    batches = []
    from pipelines import testing

    original = testing.batch_of
    testing.batch_of = lambda *a: batches.append(original(*a)) or batches[-1]
    try:
        run_operator(lambda f: [f.draw_text(str(i), i, 0) for i in range(40)] and None, [frame()])
    finally:
        testing.batch_of = original
    displays = batches[0]._meta.frames[0].displays
    assert [len(display.texts) for display in displays] == [16, 16, 8]


# --- forms ------------------------------------------------------------------------------------------------------------


def test_a_class_with_state_and_an_end():
    ended = []

    class Count:
        def __init__(self, start: int = 0):
            self.n = start

        def process(self, f):
            self.n += 1
            f.emit("count", n=self.n)

        def close(self):
            ended.append(self.n)

    result = run_operator(Count, [frame(number=i) for i in range(3)], params={"start": 10})
    assert [event["n"] for event in result.events] == [11, 12, 13]
    assert ended == [13]


def test_an_operator_written_for_pyservicemaker():
    from pipelines.scripted import use_portable_api

    api = use_portable_api()

    class Doubler(api.BatchMetadataOperator):
        def handle_metadata(self, batch_meta):
            for frame_meta in batch_meta.frame_items:
                for item in frame_meta.object_items:
                    item.label = item.label * 2

    assert changed(Doubler).labels == ("personperson", "personperson", "dogdog")


# --- what it does wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "params", "text"),
    [
        ("no.such:thing", {}, "there is no module 'no'"),
        ("pipelines.testing:run_operatr", {}, "has no operator 'run_operatr': did you mean 'run_operator'?"),
        ("pipelines.scripted:dataclass", {"treshold": 1}, "unknown parameter 'treshold'"),
        ("tests.own_models:__doc__", {}, "is a str, neither a class nor a function"),
    ],
)
def test_operators_that_are_none(operator, params, text):
    with pytest.raises(ElementError, match="operator '") as caught:
        run_operator(operator, [frame()], params=params)
    assert text in str(caught.value)


def test_parameters_are_checked_against_the_signature():
    def rule(f, limit: int, zone: str = "door"):
        pass

    with pytest.raises(
        ElementError,
        match=r"limit: input should be a valid integer.*unknown parameter 'zon' \(did you mean 'zone'\?\)",
    ):
        run_operator(rule, [frame()], params={"limit": "five", "zon": "a"})
    with pytest.raises(ElementError, match="limit: is missing"):
        run_operator(rule, [frame()])


def test_a_constructor_that_fails_is_named():
    class Broken:
        def __init__(self):
            raise OSError("no database")

        def process(self, f):
            pass

    with pytest.raises(ElementError, match="fails to start: OSError: no database"):
        run_operator(Broken, [frame()])


def raises(f):
    raise ValueError("boom")


def leaves(f):
    sys.exit(3)


WRONG = {
    "raises": (raises, "ValueError: boom"),
    "sys.exit": (leaves, "SystemExit: 3"),
    "returns": (lambda f: 5, "TypeError: it returned a int: an operator returns nothing"),
    "row": (lambda f: f.remove(99), "IndexError: index 99 is out of bounds"),
    "booleans": (lambda f: f.keep([True]), "IndexError: 1 booleans for 3 objects"),
    "floats": (lambda f: f.keep([0.5, 1.5]), "TypeError: objects are chosen by booleans or row numbers"),
    "label": (lambda f: f.relabel(0, ""), "TypeError: label is a text that is not empty"),
    "json": (lambda f: f.attach("x", object()), "TypeError: Object of type object is not JSON serializable"),
    "labels": (lambda f: f.add(objects_of((0, 0, 1, 1)), []), "ValueError: 1 objects need as many labels, not 0"),
    "line": (lambda f: f.draw_line((0, 0)), "ValueError: a line needs two points"),
}


@pytest.mark.parametrize("case", WRONG)
def test_failures_stop_the_run_and_are_named(case):
    operator, text = WRONG[case]
    result = run_operator(operator, [frame(number=4)])
    (failure,) = result.failures
    assert failure.startswith("operator 'operator' failed on source 'source-0', frame 4: ")
    assert text in failure
    assert result.frames[0].labels == tuple(LABELS)  # nothing was half done


def test_skipped_failures_are_counted_and_change_nothing_else(caplog):
    def odd(f):
        f.relabel(0, "changed")
        if f.number % 2:
            raise ValueError("odd")

    with caplog.at_level(logging.WARNING, "gstorch"):
        result = run_operator(odd, [frame(number=i) for i in range(6)], on_error="skip")
    assert result.failures == []
    assert result.stats == {"frames": 6, "failed": 3, "dropped": 0}
    assert [f.labels[0] for f in result.frames] == ["changed", "person"] * 3
    first, last = (record.message.splitlines()[0] for record in caplog.records)
    assert first.startswith("operator 'operator' failed on source 'source-0', frame 1: ValueError: odd: skipped and")
    assert last == "operator 'operator' failed on 3 of 6 frames"


# --- the background ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("overflow", "left"), [("drop-oldest", [5, 6, 7]), ("drop-newest", [1, 2, 3])])
def test_giving_never_waits_and_what_has_no_room_is_counted(overflow, left):
    busy, go, done = threading.Event(), threading.Event(), []

    def work(item):
        busy.set()
        go.wait(LIMIT_S)
        done.append(item)

    worker = Background("test", work, 3, overflow)
    worker.give(0)
    assert busy.wait(LIMIT_S)
    for item in range(1, 8):
        worker.give(item)
    go.set()
    assert worker.finish()
    assert (done, worker.dropped) == ([0, *left], 4)


def test_work_that_does_not_end_is_left_behind_and_counted():
    busy, go = threading.Event(), threading.Event()

    def work(_item):
        busy.set()
        go.wait(LIMIT_S)

    worker = Background("test", work, 3, "drop-oldest")
    for item in range(3):
        worker.give(item)
    assert busy.wait(LIMIT_S)
    assert not worker.finish(0.01)
    assert worker.dropped == 2
    go.set()


# --- several on one pad -----------------------------------------------------------------------------------------------


def test_operators_on_one_pad_are_called_in_their_order_and_one_that_fails_stops_no_other(pyservicemaker):
    base = importlib.import_module("pipelines.operators.base")
    calls, told = [], []

    class Step(base.Operator):
        def __init__(self, name):
            super().__init__(lambda text, trace: told.append(text))
            self.name = name

        def process(self, batch_meta):
            calls.append((self.name, batch_meta))
            if self.name == "b":
                raise ElementError("b cannot")

    together = base.InTurn([Step("a"), Step("b"), Step("c")])
    for batch in (1, 2):
        together.handle_metadata(batch)
    assert calls == [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("c", 2)]
    assert told == ["b cannot"]

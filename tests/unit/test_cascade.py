"""Which objects a stage's model is given, told by counting."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

from elements.inference import cascade as module
from elements.inference.cascade import Cascade, OperateOn, Targets
from elements.inference.errors import ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.result import GroupResult
from elements.metadata.detections import Detections

SECOND = 1_000_000_000
NAMES = ("small", "large")
CAR = 2


def car(index, track=None, box=(10, 10, 50, 40), class_id=CAR, label="car", angle=0.0):
    return index, class_id, label, track, box, angle


def objects(*frames):
    """The objects of a batch, from the rows of `car` in each frame."""
    rows = [(number, *row) for number, own in enumerate(frames) for row in own]
    frame_of, *columns, boxes, angles = zip(*rows, strict=True) if rows else ((),) * 7
    boxes, angles = np.array(boxes, np.float32).reshape(-1, 4), np.array(angles, np.float32)
    return Targets(np.array(frame_of, np.int64), *columns, boxes, angles)


def planned(cascade, *frames, resting=()):
    """The plan for frames and the rows of each."""
    return cascade.plan([frame for frame, _ in frames], objects(*(rows for _, rows in frames)), resting)


def filled(plan, places, answers, version="m@1"):
    """Give answers to the crops at ``places``; the others fail."""
    plan.fill([GroupResult(plan.crops.take(places), places, answers, NAMES, version)])


def frame(time_s=0.0, source=0, number=0):
    return ArrayFrame(np.zeros((100, 200, 3), np.uint8), source, number, round(time_s * SECOND))


def label(class_id=0):
    return Detections(np.array([[0, 0, 1, 1]]), np.ones(1), np.array([class_id]))


class Stage:
    """A cascade with a model that counts its calls and the crops in each; its answer is the number of the crop."""

    def __init__(self, task="classify", answer=label, **options):
        self.cascade = Cascade(OperateOn(1, **options), task)
        self.calls: list[int] = []
        self.answer = answer
        self.seen = 0
        self.version = "m@1"

    def __call__(self, *frames):
        """One batch; for each frame the class number that each object gets."""
        plan = planned(self.cascade, *frames)
        if plan.asked:
            self.calls.append(len(plan.asked))
        found = [self.answer(self.seen + number) for number in range(len(plan.crops))]
        self.seen += len(found)
        self.cascade.fill(plan, [GroupResult(plan.crops, range(len(found)), found, NAMES, self.version)])
        return [{i: a.best[0] for i, a in known.items() if a.best is not None} for known in plan.known]


def test_all_objects_of_a_batch_are_one_call() -> None:
    stage = Stage()
    cars = [car(i, i) for i in range(4)]
    assert stage((frame(), cars), (frame(source=1), cars[:3])) == [{0: 0, 1: 1, 2: 2, 3: 3}, {0: 4, 1: 5, 2: 6}]
    assert stage.calls == [7]


def test_a_track_is_looked_at_once() -> None:
    """Three tracks for 50 frames: three looks; a fourth that comes later is looked at when it comes."""
    stage = Stage()
    for number in range(50):
        tracks = (7, 8, 9, 10) if number >= 20 else (7, 8, 9)
        assert stage((frame(number / 25), [car(i, t) for i, t in enumerate(tracks)])) == [
            dict(enumerate(range(len(tracks))))
        ]
    assert stage.calls == [3, 1]


def test_a_track_in_two_frames_of_a_batch_is_looked_at_once() -> None:
    stage = Stage()
    assert stage((frame(0), [car(0, 7)]), (frame(0.04), [car(0, 7)])) == [{0: 0}, {0: 0}]
    assert stage.calls == [1]


def test_the_same_id_of_two_sources_is_two_tracks() -> None:
    stage = Stage()
    assert stage((frame(source=0), [car(0, 7)]), (frame(source=1), [car(0, 7)])) == [{0: 0}, {0: 1}]


def test_a_track_is_not_asked_about_again_while_the_model_is_at_work() -> None:
    cascade = Cascade(OperateOn(1), "classify")
    first = planned(cascade, (frame(0), [car(0, 7)]))
    second = planned(cascade, (frame(0.04), [car(0, 7)]))
    assert (len(first.asked), len(second.asked)) == (1, 0)
    filled(first, [0], [label(5)])
    assert second.known[0][0].found.class_ids.tolist() == [5]


def test_a_track_is_looked_at_again_after_refresh() -> None:
    """For 3 s at 25 frames/s with refresh 1 s: at 0, 1 and 2 s. In between the last answer is repeated."""
    stage = Stage(refresh=1.0)
    given = [stage((frame(number / 25), [car(0, 7)]))[0][0] for number in range(75)]
    assert stage.calls == [1, 1, 1]
    assert given == [0] * 25 + [1] * 25 + [2] * 25


@pytest.mark.parametrize(("task", "options"), [("detect", {}), ("pose", {}), ("classify", {"tracked": False})])
def test_what_is_not_kept_is_looked_at_in_every_frame(task, options) -> None:
    stage = Stage(task, **options)
    for number in range(5):
        stage((frame(number), [car(0, 7)]))
    assert stage.calls == [1] * 5
    assert len(stage.cascade) == 0


def test_in_resting_frames_tracks_keep_their_answers() -> None:
    cascade = Cascade(OperateOn(1), "classify")
    first = planned(cascade, (frame(0), [car(0, 7)]))
    filled(first, [0], [label(3)])
    both = [car(0, 7), car(1, 8)]
    second = planned(cascade, (frame(0.1), both), (frame(0.2), both), resting=[0])
    assert [list(known) for known in second.known] == [[0], [0, 1]]
    assert len(second.asked) == 1


def test_objects_without_a_track_are_looked_at_in_every_frame() -> None:
    stage = Stage()
    for number in range(5):
        stage((frame(number), [car(0, 7), car(1, None)]))
    assert stage.calls == [2, 1, 1, 1, 1]


def test_no_answer_is_asked_for_again() -> None:
    stage = Stage(answer=lambda number: Detections() if number < 2 else label(number))
    assert [stage((frame(number), [car(0, 7)]))[0] for number in range(5)] == [{}, {}, {0: 2}, {0: 2}, {0: 2}]
    assert stage.calls == [1, 1, 1]


def test_an_answer_that_never_comes_is_asked_for_again() -> None:
    """Its batch was flushed."""
    cascade = Cascade(OperateOn(1), "classify")
    asked = [len(planned(cascade, (frame(time_s), [car(0, 7)])).asked) for time_s in (0, 5, 10, 11)]
    assert asked == [1, 0, 0, 1]


def test_what_is_kept_holds_no_picture() -> None:
    stage, given = Stage(), frame(0)
    pictures = weakref.ref(given.pixels)
    stage((given, [car(0, 7)]))
    assert len(stage.cascade) == 1
    del given
    gc.collect()
    assert pictures() is None


def test_a_crop_that_failed_is_asked_for_again() -> None:
    cascade = Cascade(OperateOn(1), "classify")
    both = [car(0, 7), car(1, 8)]
    plan = planned(cascade, (frame(0), both))
    filled(plan, [1], [label()])
    assert [answer.failed for answer in plan.asked] == [True, False]
    assert len(planned(cascade, (frame(1), both)).asked) == 1


def test_which_objects_count() -> None:
    stage = Stage(classes=("car", 5), min_size=20)
    small, thin = (0, 0, 19, 90), (0, 0, 90, 19.5)
    targets = [
        car(0), car(1, label="bus", class_id=5), car(2, label="dog", class_id=16),
        car(4, box=small), car(5, box=thin), car(6, box=(300, 0, 350, 50)), car(7, box=(math.nan, 0, 50, 50)),
        car(8, box=(0, 0, 20, 20)),
    ]  # fmt: skip
    assert list(stage((frame(), targets))[0]) == [0, 1, 8]


def test_the_crop_of_a_turned_object_is_the_upright_rectangle_around_it() -> None:
    """40x20 about (50, 50), turned by 90 degrees: 20x40 about the same point."""
    turned = car(0, box=(30, 40, 70, 60), angle=math.pi / 2)
    plan = planned(Cascade(OperateOn(1), "classify"), (frame(), [turned]))
    x1, y1, x2, y2 = plan.crops[0].region
    assert abs(np.array([x1, y1, x2, y2]) - (40, 30, 60, 70)).max() <= 1


def test_no_more_than_max_objects_of_a_frame_new_tracks_and_large_ones_first() -> None:
    stage = Stage(max_objects=2, refresh=1.0)
    cars = [car(0, 7, (0, 0, 10, 10)), car(1, 8, (0, 0, 30, 30)), car(2, 9, (0, 0, 20, 20))]
    assert stage((frame(0), cars)) == [{1: 0, 2: 1}]
    assert stage((frame(0.1), cars)) == [{0: 2, 1: 0, 2: 1}]
    assert stage((frame(1.05), [*cars, car(3, 10, (0, 0, 5, 5))])) == [{3: 3, 1: 4, 0: 2, 2: 1}]
    assert stage.calls == [2, 1, 2]


def test_no_more_than_rate_objects_a_second_and_source() -> None:
    """Ten untracked objects a frame at 10 frames/s for 10 s, 5/s: 5 at once, then 5 more each second."""
    stage = Stage(rate=5.0)
    for number in range(100):
        stage((frame(number / 10), [car(i) for i in range(10)]), (frame(number / 10, source=1), [car(0)]))
    per_source = {0: 0, 1: 0}
    cascade = Cascade(OperateOn(1, rate=5.0), "classify")
    for number in range(100):
        plan = planned(cascade, *((frame(number / 10, source), [car(i) for i in range(10)]) for source in (0, 1)))
        for crop in plan.crops:
            per_source[crop.source_id] += 1
    assert per_source == {0: 54, 1: 54}  # 5 + 9.9 s x 5/s, whole ones
    assert sum(stage.calls) == 2 * 54


def test_what_is_kept_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_TRACKS", 100)
    stage = Stage()
    for number in range(300):
        stage((frame(number / 1000), [car(0, number), car(1, 1_000_000)]))
    assert len(stage.cascade) == 100
    assert sum(stage.calls) == 301  # the one that stays in sight is kept


def test_tracks_out_of_sight_are_dropped() -> None:
    stage = Stage()
    stage((frame(0), [car(0, 7), car(1, 8)]))
    stage((frame(29), [car(0, 8)]))
    assert len(stage.cascade) == 2
    stage((frame(31), [car(0, 8)]))
    assert len(stage.cascade) == 1
    assert stage.calls == [2]


def test_a_source_that_ends_or_starts_anew_is_forgotten() -> None:
    stage = Stage()
    both = [(frame(5, source), [car(0, 7)]) for source in (0, 1)]
    stage(*both)
    stage.cascade.forget(0)
    stage(*both)
    assert stage.calls == [2, 1]
    stage((frame(0, 1), [car(0, 7)]))  # time steps back
    assert stage.calls == [2, 1, 1]


def test_another_model_looks_at_the_tracks_again() -> None:
    """From its first answer on, which is about a new track here."""
    stage = Stage()
    stage((frame(0), [car(0, 7), car(1, 8)]))
    stage.version = "m@2"
    assert stage((frame(1), [car(0, 7), car(1, 8)])) == [{0: 0, 1: 1}]
    assert stage((frame(2), [car(0, 7), car(1, 8), car(2, 9)])) == [{0: 0, 1: 1, 2: 2}]
    assert stage((frame(3), [car(0, 7), car(1, 8), car(2, 9)])) == [{0: 3, 1: 4, 2: 2}]
    stage((frame(4), [car(0, 7), car(1, 8), car(2, 9)]))
    assert stage.calls == [2, 1, 2]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "operate-on: 'id' is missing"),
        ({"id": 1, "clases": ["car"]}, "operate-on: unknown key 'clases': did you mean 'classes'?"),
        ({"id": 1, "rate": -1}, "operate-on: rate: -1 is not a number of 0 or more"),
        ({"id": 1, "refresh": "2s"}, "operate-on: refresh: '2s' is not a number of 0 or more"),
    ],
)
def test_options_that_are_refused(values, text) -> None:
    with pytest.raises(ModelError) as caught:
        OperateOn.from_mapping(values)
    assert str(caught.value).startswith(text)


def test_options_from_plain_values() -> None:
    assert OperateOn.from_mapping({"id": 2, "classes": ["car", 3]}) == OperateOn(2, ("car", 3))

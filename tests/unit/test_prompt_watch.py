"""Who is asked about, when, and with which pictures. Without GStreamer."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from elements.inference.crops import CropFrame
from elements.prompting.options import PromptError, filled
from elements.prompting.pictures import Album, encoded, pixels_of
from elements.prompting.watch import Seen, Watch
from tests.prompts import a_picture, options

SIZE = (640, 480)
LEFT = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))


def person(track_id=1, x=100, label="person"):
    return Seen(track_id, 0, label, (x, 100, x + 50, 200))


class Watched:
    """A `Watch` of one source, its looks noted."""

    def __init__(self, *args, **values):
        self.watch, self.looks = Watch(options(*args, **values)), []

    def see(self, time_s, *seen, events=(), source_id=0):
        def look(one):
            self.looks.append((time_s, None if one is None else one.track_id))
            return a_picture(time_s)

        due = self.watch.update(source_id, time_s, SIZE, seen, list(events), look)
        return [one.track_id for one in due]


# --- triggers ---------------------------------------------------------------------------------------------------------


def test_each_new_track_of_the_classes_once():
    watched = Watched({"classes": ["person", 7]})
    assert watched.see(0, person(1), person(2, label="car"), person(None)) == [1]
    assert watched.see(1, person(1), person(3)) == [3]
    assert watched.see(2, person(1), person(3), Seen(4, 7, "bus", (0, 0, 9, 9))) == [4]
    assert len(watched.looks) == 3  # nobody looks at tracks that are not asked about


def test_not_before_the_track_is_old_enough():
    watched = Watched({"min_age": 1})
    assert [watched.see(t / 4, person(1)) for t in range(6)] == [[], [], [], [], [1], []]


def test_when_it_stands_in_a_zone():
    watched = Watched({"zones": [LEFT]})
    assert watched.see(0, person(1, x=400)) == []
    assert watched.see(1, person(1, x=296)) == []  # the middle of its lower side is at 321 of 640
    assert watched.see(2, person(1, x=294)) == [1]
    assert watched.see(3, person(1, x=100)) == []


def test_when_an_event_names_it():
    watched = Watched({"events": ["entry", "too-close"]})
    assert watched.see(0, person(1), person(2), person(3), events=[{"event": "exit", "track_id": 1}]) == []
    assert watched.see(1, person(1), person(2), person(3), events=[{"event": "entry", "track_id": 2}]) == [2]
    assert watched.see(2, person(1), person(3), events=[{"event": "too-close", "tracks": [1, 3]}]) == [1, 3]
    assert watched.see(3, person(1), person(3)) == []


def test_an_event_waits_for_the_other_conditions():
    watched = Watched({"events": ["entry"], "min_age": 2})
    assert watched.see(0, person(1), events=[{"event": "entry", "track_id": 1}]) == []
    assert watched.see(2, person(1)) == [1]


def test_the_interval_is_between_two_questions_of_one_source():
    watched = Watched({"interval": 10})
    assert watched.see(0, person(1), person(2)) == [1]
    assert watched.see(0, person(1), person(2), source_id=1) == [1]
    assert watched.see(9, person(1), person(2), person(3)) == []
    assert watched.see(10, person(1), person(3), person(2)) == [2]  # who waits for longest comes first
    assert watched.see(20, person(3)) == [3]


def test_again_after_the_refresh_and_after_a_failure():
    watched = Watched(refresh=30)
    assert [watched.see(t, person(1)) for t in (0, 10, 20, 29, 30, 59, 60)] == [[1], [], [], [], [1], [], [1]]
    once = Watched()
    assert once.see(0, person(1)) == [1]
    once.watch.failed(0, 1)
    assert [once.see(t, person(1)) for t in range(20, 81, 20)] == [[], [], [1], []]


def test_a_stream_that_begins_anew_or_ends_is_forgotten():
    watched = Watched()
    assert watched.see(5, person(1)) == [1]
    assert watched.see(0, person(1)) == [1]
    watched.watch.forget(0)
    assert watched.see(1, person(1)) == [1]


def test_frames_by_interval_classes_and_events():
    by_time = Watched({"interval": 10}, per="frame")
    assert [by_time.see(t) for t in (0, 5, 10, 15)] == [[None], [], [None], []]
    assert by_time.looks == [(0, None), (10, None)]
    by_class = Watched({"interval": 1, "classes": ["person"]}, per="frame")
    assert by_class.see(0, person(None, label="car")) == []
    assert by_class.see(1, person(None)) == [None]
    by_event = Watched({"events": ["overcrowding-start"]}, per="frame")
    assert by_event.see(0, person(1)) == []
    assert by_event.see(1, events=[{"event": "overcrowding-start", "zone": "hall"}]) == [None]


def test_of_objects_that_cannot_be_shown_nothing_is_asked():
    watch = Watch(options())
    assert watch.update(0, 0.0, SIZE, [person(1)], [], lambda one: None) == []


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_the_best_picture_of_each_part_of_the_last_seconds():
    album = Album(3, within=3.0)
    for time_s, score in ((0.0, 9), (1.0, 1), (1.5, 5), (1.75, 2), (2.0, 4), (3.0, 1), (3.5, 2)):
        album.add(a_picture(time_s, score))
    assert [(p.time_s, p.score) for p in album.pictures(3.9)] == [(1.5, 5), (2.0, 4), (3.5, 2)]
    assert [p.time_s for p in album.pictures(5.2)] == [3.5]
    assert album.pictures(9) == []


def test_tracks_are_looked_at_four_times_per_part_at_most():
    watched = Watched({"min_age": 2}, frames=2, within=2)
    for n in range(60):  # 25 frames/s
        watched.see(n / 25, person(1))
    looks = [time_s for time_s, _ in watched.looks]
    assert len(looks) == 8
    assert min(np.diff(looks)) >= 0.25


def test_after_the_answer_nobody_looks_until_it_is_nearly_time_again():
    watched = Watched(refresh=60, within=2)
    for t in range(120):
        watched.see(t / 2, person(1))
    assert [t for t, _ in watched.looks] == [0] + [58 + n / 2 for n in range(4)]


def test_sharp_and_large_pictures_are_better_and_cut_ones_worse():
    sharp = np.random.default_rng(0).integers(0, 255, (80, 60, 3), np.uint8)
    score = encoded(sharp, 100, 0).score
    assert encoded(cv2.blur(sharp, (7, 7)), 100, 0).score < score / 2
    assert encoded(np.tile(sharp, (2, 2, 1)), 200, 0).score > 1.5 * score
    assert encoded(sharp, 100, 0, cut=True).score == pytest.approx(score / 2)


def test_pictures_are_jpeg_of_the_right_colour_and_size():
    rgb = np.full((100, 400, 3), (200, 30, 90), np.uint8)
    picture = encoded(rgb, 200, 1.5)
    found = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert (found.shape, picture.size, picture.time_s) == ((50, 200, 3), (200, 50), 1.5)
    assert abs(found.reshape(-1, 3).mean(0) - (200, 30, 90)).max() < 3
    assert encoded(rgb, 400, 0).size == (400, 100)


def test_of_a_tensor_only_the_crop_is_copied():
    pytest.importorskip("torch", reason="needs PyTorch")
    from tests.torch_models import TensorFrame  # its pixels must not go through the host

    rgb = np.arange(48 * 64 * 3, dtype=np.uint32).astype(np.uint8).reshape(48, 64, 3)
    found = pixels_of(CropFrame(TensorFrame(rgb), (10, 4, 40, 30)))
    assert found.base is None or found.base.nbytes == 26 * 30 * 3
    np.testing.assert_array_equal(found, rgb[4:30, 10:40])


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, message",
    [
        ({"per": "object"}, "per: 'object' is not one of track, frame"),
        ({"per": "frame"}, "needs trigger.interval"),
        ({"frames": 0}, "frames: 0 is not a number of 1 or more"),
        ({"text": "{lable}?"}, "there is no field '{lable}': did you mean '{label}'"),
        ({"timeuot": 3}, "unknown option 'timeuot': did you mean 'timeout'"),
        ({"model": ""}, "'model' is missing"),
    ],
)
def test_wrong_options_are_named(values, message):
    with pytest.raises(PromptError, match=message):
        options(**values)


def test_other_braces_mean_themselves():
    text = 'About {label} {track_id}: answer like {"coat": "red"}'
    assert filled(text, {"label": "person", "track_id": 3}) == 'About person 3: answer like {"coat": "red"}'

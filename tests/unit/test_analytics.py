"""Zones, lines, directions and dwell times: scripted walks with a known truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from elements.analytics.engine import SourceAnalytics
from elements.analytics.geometry import CENTER, anchors, inside, passes
from elements.analytics.rules import Direction, Line, Rules, Settings, Zone
from elements.analytics.tracks import Sighting

LEFT = Zone("left", ((0, 0), (0.5, 0), (0.5, 1), (0, 1)))
RIGHT = Zone("right", ((0.5, 0), (1, 0), (1, 1), (0.5, 1)))
LINE = Line("door", (0.5, 0.2), (0.5, 0.8), towards=(0.9, 0.5))
A, B = (0.4, 0.5), (0.6, 0.5)  # to either side of the line, and in the zones
STEP_S = 0.1


class Source:
    """Feeds one frame each 0.1 s."""

    def __init__(self, *rules: Zone | Line | Direction, **settings: object) -> None:
        def of(kind: type) -> tuple:
            return tuple(rule for rule in rules if isinstance(rule, kind))

        self.engine = SourceAnalytics(Rules(of(Zone), of(Line), of(Direction)), Settings(**settings))
        self.events: list[dict] = []
        self.number = 0

    def frame(self, *sightings: Sighting) -> list[dict]:
        """The results of the objects."""
        found = self.engine.update(round(self.number * STEP_S, 3), sightings)
        self.events += found.events
        self.number += 1
        self.frame_result = found.frame
        return found.objects

    def walk(self, *points: tuple[float, float] | None, track: int = 1, label: str = "person") -> None:
        """One track, one frame per point; ``None``: it is not seen."""
        for point in points:
            self.frame(*([] if point is None else [Sighting(track, 0, label, point)]))

    def told(self, *kinds: str) -> list[tuple]:
        """(kind, rule, time) of the events."""
        return [
            (e["event"], e.get("zone") or e.get("line") or e["direction"], e["time_s"])
            for e in self.events
            if not kinds or e["event"] in kinds
        ]


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hold", [2, 3])
def test_flicker_across_a_line_does_not_count(hold):
    source = Source(LINE, hold_frames=hold)
    source.walk(A, A, A, B, A, A, A)
    assert source.events == []
    assert source.frame_result["lines"]["door"] == {"in": 0, "out": 0, "classes": {}}


def test_a_crossing_is_told_when_it_is_sure_with_the_time_at_which_it_happened():
    source = Source(LINE)
    source.walk(A, A, A, B, B)
    assert source.events == []
    source.walk(B)
    assert source.events == [
        {"event": "crossing", "line": "door", "track_id": 1, "label": "person", "time_s": 0.3, "direction": "in"}
    ]


def test_both_ways_are_counted_by_class_each_time():
    source = Source(LINE)
    source.walk(*[A] * 3, *[B] * 3, *[A] * 3, *[B] * 3)
    source.walk(*[B] * 3, *[A] * 3, track=2, label="dog")
    assert source.frame_result["lines"]["door"] == {
        "in": 2,
        "out": 2,
        "classes": {"dog": {"in": 0, "out": 1}, "person": {"in": 2, "out": 1}},
    }


def test_who_walks_around_the_end_of_a_line_has_not_crossed_it():
    source = Source(LINE)
    source.walk(*[A] * 3, (0.49, 0.9), (0.51, 0.9), *[B] * 3)
    assert source.events == []
    source.walk(*[A] * 3)  # and back through it
    assert source.told() == [("crossing", "door", 0.8)]


def test_born_on_the_line_is_born_on_the_side_of_towards():
    source = Source(LINE)
    source.walk(*[(0.5, 0.5)] * 3, *[B] * 3)
    assert source.events == []
    source.walk(*[A] * 3)
    assert source.events[0]["direction"] == "out"


def test_a_side_taken_at_birth_is_no_crossing():
    source = Source(LINE)
    source.walk(*[B] * 10)
    assert source.events == []


def test_the_joint_of_two_lines_is_crossed_once():
    upper = Line("upper", (0.5, 0), (0.5, 0.5), (1, 0.5))
    lower = Line("lower", (0.5, 0.5), (0.5, 1), (1, 0.5))
    source = Source(upper, lower)
    source.walk(*[A] * 3, *[B] * 3)  # through (0.5, 0.5)
    assert len(source.events) == 1


def test_line_ends_are_half_open():
    path = ((0.0, 0.5), (1.0, 0.5))
    assert [passes(path, ((0.5, a), (0.5, b))) for a, b in ((0, 0.5), (0.5, 1), (0.6, 1))].count(True) == 1


# --- zones ------------------------------------------------------------------------------------------------------------


def test_entry_and_exit_with_dwell_time():
    source = Source(RIGHT)
    source.walk(*[A] * 3, *[B] * 7, *[A] * 3)
    entry, gone = source.events
    assert entry == {"event": "entry", "zone": "right", "track_id": 1, "label": "person", "time_s": 0.3}
    assert gone == {**entry, "event": "exit", "time_s": 1.0, "entered_s": 0.3, "dwell_s": 0.7, "reason": "left"}
    assert source.frame_result["zones"]["right"] == {"count": 0, "classes": {}, "entries": 1, "exits": 1}


def test_flicker_at_the_edge_of_a_zone_is_neither_entry_nor_exit():
    source = Source(RIGHT)
    source.walk(*[A] * 3, B, *[A] * 3, B, B, *[A] * 3)
    assert source.events == []
    source.walk(*[B] * 3, A, *[B] * 3, A, A, *[B] * 3)
    assert source.told() == [("entry", "right", 1.2)]


def test_born_inside_enters_at_birth():
    source = Source(RIGHT)
    source.walk(*[B] * 4)
    assert source.told() == [("entry", "right", 0.0)]


def test_a_track_that_is_not_seen_long_enough_does_not_count():
    source = Source(RIGHT, LINE, confirm_frames=5, lost_after=0.5)
    source.walk(*[B] * 4, *[None] * 10)
    assert source.events == []
    source.walk(*[B] * 5, track=2)
    assert source.told() == [("entry", "right", 1.4)]


def test_an_object_leaves_a_zone_where_it_was_lost():
    source = Source(RIGHT, lost_after=1.0)
    source.walk(*[B] * 5, *[None] * 10)
    assert source.told() == [("entry", "right", 0.0)]
    assert source.frame_result["zones"]["right"]["count"] == 1
    source.walk(None)
    assert source.events[1]["reason"] == "lost"
    assert (source.events[1]["time_s"], source.events[1]["dwell_s"]) == (0.4, 0.4)
    assert source.frame_result["zones"]["right"]["count"] == 0


def test_lost_on_the_way_out_leaves_with_the_first_frame_outside():
    source = Source(RIGHT)
    source.walk(*[B] * 3, A, *[None] * 30)
    assert source.told("exit") == [("exit", "right", 0.3)]


def test_a_gap_shorter_than_lost_after_changes_nothing():
    source = Source(RIGHT, lost_after=1.0)
    source.walk(*[B] * 3, *[None] * 9, *[B] * 3)
    assert source.told() == [("entry", "right", 0.0)]


@pytest.mark.parametrize("lost_after", [0.0, 0.05])
def test_a_source_of_few_frames_loses_nobody_who_is_in_each(lost_after):
    source = Source(RIGHT, lost_after=lost_after)
    source.walk(*[B] * 5)
    assert source.told() == [("entry", "right", 0.0)]
    source.walk(None)
    assert source.told("exit") == [("exit", "right", 0.4)]


def test_touching_zones_never_count_twice():
    source = Source(LEFT, RIGHT)
    rng = np.random.default_rng(3)
    for x in rng.choice([0.4, 0.5, 0.6], 300):
        source.walk((x, 0.5))
        zones = source.frame_result["zones"]
        assert zones["left"]["count"] + zones["right"]["count"] <= 1
    source.walk(*[(0.5, 0.5)] * 3)
    assert source.frame_result["zones"]["right"]["count"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_zones_with_a_slanted_edge_in_common_share_no_point(seed):
    rng = np.random.default_rng(seed)
    top, bottom = (rng.random(), 0.0), (rng.random(), 1.0)
    left = ((0.0, 0.0), top, bottom, (0.0, 1.0))
    right = (top, (1.0, 0.0), (1.0, 1.0), bottom)
    for y in rng.random(200):
        x = top[0] + (bottom[0] - top[0]) * y  # on the edge, as well as floats can say
        assert inside(left, (x, y)) != inside(right, (x, y))


def test_a_concave_zone():
    u = ((0.0, 0.0), (0.3, 0.0), (0.3, 0.7), (0.7, 0.7), (0.7, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    assert [inside(u, p) for p in ((0.1, 0.1), (0.5, 0.5), (0.9, 0.1), (0.5, 0.8))] == [True, False, True, True]


def test_classes_of_a_rule_and_counts_by_class():
    people = Zone("right", RIGHT.polygon, classes=("person",))
    cars = Zone("cars", RIGHT.polygon, classes=(2,))
    source = Source(people, cars)
    for _ in range(3):
        source.frame(Sighting(1, 0, "person", B), Sighting(2, 2, "car", B), Sighting(3, 0, "person", B))
    zones = source.frame_result["zones"]
    assert (zones["right"]["classes"], zones["cars"]["classes"]) == ({"person": 2}, {"car": 1})


def test_an_object_whose_class_changes_inside_leaves_as_what_it_came_as():
    source = Source(RIGHT)
    source.walk(*[B] * 3, label="car")
    source.walk(*[B] * 3, *[A] * 3, label="truck")
    assert [e["label"] for e in source.events] == ["car", "car"]
    assert source.frame_result["zones"]["right"]["classes"] == {}


def test_overcrowding_begins_and_ends():
    source = Source(Zone("right", RIGHT.polygon, crowded_at=2))
    source.walk(*[B] * 3)
    both = [Sighting(1, 0, "person", B), Sighting(2, 0, "person", B)]
    for _ in range(4):
        source.frame(*both)
    assert source.frame_result["zones"]["right"]["crowded"] is True
    for _ in range(3):
        source.frame(both[0], Sighting(2, 0, "person", A))
    assert source.events[2] == {"event": "overcrowding-start", "zone": "right", "count": 2, "time_s": 0.3}
    assert source.events[-1] == {
        "event": "overcrowding-end",
        "zone": "right",
        "count": 1,
        "time_s": 0.7,
        "duration_s": 0.4,
    }
    assert source.frame_result["zones"]["right"]["crowded"] is False


def test_objects_have_their_zones_dwell_times_and_crossings():
    source = Source(RIGHT, LINE)
    source.walk(*[A] * 3, *[B] * 2)
    (found,) = source.frame(Sighting(1, 0, "person", B))
    assert found == {
        "zones": ["right"],
        "dwell_s": {"right": 0.2},
        "crossed": [{"line": "door", "direction": "in"}],
    }
    assert source.frame(Sighting(1, 0, "person", B)) == [{"zones": ["right"], "dwell_s": {"right": 0.3}}]


# --- directions -------------------------------------------------------------------------------------------------------


def path(start: float, step: float, count: int) -> Sequence[tuple[float, float]]:
    return [(start + step * i, 0.5) for i in range(count)]


def test_a_direction_is_told_once_per_movement():
    source = Source(Direction("east", (1, 0)))
    source.walk(*path(0.1, 0.02, 10), *path(0.28, 0.0, 15), *path(0.3, 0.02, 10))
    assert [e["event"] for e in source.events] == ["direction", "direction"]
    assert source.frame_result["directions"]["east"] == {"count": 2, "classes": {"person": 2}}


def test_the_other_way_and_trembling_are_no_movement():
    source = Source(Direction("east", (1, 0)))
    source.walk(*path(0.9, -0.02, 10), track=1)
    source.walk(*[(0.5 + 0.01 * (i % 2), 0.5) for i in range(30)], track=2)
    assert source.events == []


def test_tolerance_is_degrees_on_the_picture_as_it_is_seen():
    down_right = [(0.1 + 0.02 * i, 0.1 + 0.02 * i * 16 / 9) for i in range(10)]  # 45 degrees on a 16:9 picture
    for tolerance, count in ((44.0, 0), (46.0, 1)):
        source = Source(Direction("east", (1, 0), tolerance))
        source.walk(*down_right)
        assert len(source.events) == count


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_stream_that_begins_anew_starts_with_no_tracks_and_keeps_its_counts():
    source = Source(RIGHT, LINE)
    source.walk(*[A] * 3, *[B] * 3)
    source.number = 0
    source.walk(*[A] * 3, *[B] * 3)
    exit_ = next(e for e in source.events if e["event"] == "exit")
    assert (exit_["reason"], exit_["time_s"]) == ("restart", 0.5)
    assert source.frame_result["lines"]["door"]["in"] == 2
    assert source.frame_result["zones"]["right"]["entries"] == 2


def test_memory_is_bounded():
    source = Source(RIGHT, LINE, Direction("east", (1, 0)), lost_after=0.5)
    for track in range(2000):
        source.walk(B, track=track)
    engine = source.engine
    assert len(engine._tracks) <= 7
    for watch in engine._watches:
        assert len(watch._tracks) <= 7


# --- anchors ----------------------------------------------------------------------------------------------------------


def test_anchor_of_upright_boxes():
    boxes = np.array([[10, 20, 30, 60]], np.float32)
    assert anchors(boxes, None, (100, 100)) == [(pytest.approx(0.2), pytest.approx(0.6))]
    assert anchors(boxes, None, (100, 100), CENTER) == [(pytest.approx(0.2), pytest.approx(0.4))]


def test_anchor_of_a_rotated_box_is_the_lowest_part_of_its_outline():
    box = np.array([[40, 45, 60, 55]], np.float32)
    quarter = np.array([math.pi / 2])  # becomes 10 wide and 20 high
    assert anchors(box, quarter, (100, 100)) == [(pytest.approx(0.5), pytest.approx(0.6))]
    assert anchors(box, quarter, (100, 100), CENTER) == [(pytest.approx(0.5), pytest.approx(0.5))]


def test_anchors_beyond_the_picture_are_just_inside():
    ((x, y),) = anchors(np.array([[90, 90, 130, 100]], np.float32), None, (100, 100))
    assert 0.99999 < x < 1
    assert 0.99999 < y < 1
    whole = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    assert inside(whole, (x, y))

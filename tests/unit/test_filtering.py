"""The rules of a filter, on objects with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elements.filtering.apply import Objects, TrackAges, decide
from elements.filtering.options import PROPERTIES, rules_of
from elements.filtering.rules import FilterRules
from elements.filtering.texts import READERS, properties_of

SIZE = (1000, 500)
BOXES = [(100, 100, 140, 200), (300, 100, 380, 200), (500, 100, 700, 200), (800, 0, 990, 490)]
LABELS = ["person", "person", "car", "truck"]
CLASSES = [0, 0, 2, 7]
SCORES = [0.9, 0.4, 0.6, -0.1]
TRACKS = [1, 2, -1, 3]
LEFT = ((0, 0), (0.2, 0), (0.2, 1), (0, 1))


def objects(boxes=BOXES, labels=LABELS, classes=CLASSES, scores=SCORES, tracks=TRACKS, components=None, angles=None):
    n = len(boxes)
    return Objects(
        np.array(boxes, float).reshape(-1, 4), np.array(angles or [0.0] * n), np.array(scores, float),
        np.array(classes, np.int64), list(labels), list(tracks), np.array(components or [1] * n),
    )  # fmt: skip


def kept(rules, given=None, ages=None, now=0.0):
    return decide(objects() if given is None else given, rules, SIZE, ages or TrackAges(), now).keep.tolist()


RULES = {
    "nothing said": ({}, [1, 1, 1, 1]),
    "keep by name": ({"keep": ("person",)}, [1, 1, 0, 0]),
    "keep by number": ({"keep": (2, 7)}, [0, 0, 1, 1]),
    "keep by both": ({"keep": ("person", 7)}, [1, 1, 0, 1]),
    "drop": ({"drop": ("car", 0)}, [0, 0, 0, 1]),
    "keep and drop": ({"keep": (0, 2), "drop": ("car",)}, [1, 1, 0, 0]),
    "confidence; the tracker's own object stays": ({"confidence": 0.5}, [1, 0, 1, 1]),
    "exactly the confidence": ({"confidence": 0.6}, [1, 0, 1, 1]),
    "confidence of one class": ({"confidence": 0.5, "class_confidence": {"person": 0.3, 2: 0.7}}, [1, 1, 0, 1]),
    "a name before a number": ({"class_confidence": {"person": 0.5, 0: 0.95}}, [1, 0, 1, 1]),
    "min size": ({"min_size": (41, 0)}, [0, 1, 1, 1]),
    "max size": ({"max_size": (0, 100)}, [1, 1, 1, 0]),
    "aspect": ({"min_aspect": 0.5, "max_aspect": 1.5}, [0, 1, 0, 0]),
    "regions": ({"regions": (LEFT, ((0.5, 0), (1, 0), (1, 0.5), (0.5, 0.5)))}, [1, 0, 1, 0]),
    "exclude": ({"exclude": (LEFT,)}, [0, 1, 1, 1]),
    "limit": ({"limit": 2}, [1, 0, 1, 0]),
    "limit after the rest": ({"keep": ("person", "truck"), "limit": 2}, [1, 1, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("case", RULES)
def test_rules(case):
    options, expected = RULES[case]
    assert kept(FilterRules(**options)) == [bool(v) for v in expected]


def test_no_objects():
    nothing = objects([], [], [], [], [])
    for options, _ in RULES.values():
        assert kept(FilterRules(**options, min_age=1, merge_iou=0.5), nothing) == []


def test_new_names_are_what_the_other_rules_see():
    rules = FilterRules(rename={"truck": "car", 2: "van"}, remap={"truck": 2}, keep=("car",))
    decision = decide(objects(), rules, SIZE, TrackAges(), 0)
    assert decision.keep.tolist() == [False, False, False, True]
    assert (decision.labels, decision.class_ids) == ({2: "van", 3: "car"}, {3: 2})


def test_two_names_can_be_exchanged():
    decision = decide(objects(), FilterRules(rename={"car": "person", "person": "car"}), SIZE, TrackAges(), 0)
    assert decision.labels == {0: "car", 1: "car", 2: "person"}


def test_an_object_stands_where_its_lower_edge_is():
    lower_half = (((0, 0.5), (1, 0.5), (1, 1), (0, 1)),)
    boxes = [(100, 100, 140, 251), (100, 100, 140, 249)]
    given = objects(boxes, ["a"] * 2, [0] * 2, [0.5] * 2, [-1] * 2)
    assert kept(FilterRules(regions=lower_half), given) == [True, False]
    turned = objects(boxes[:1], ["a"], [0], [0.5], [-1], angles=[math.pi / 4])  # by its centre
    assert kept(FilterRules(regions=lower_half), turned) == [False]


def test_a_track_must_have_been_seen_for_a_while():
    ages, rules = TrackAges(), FilterRules(min_age=0.5)
    assert kept(rules, ages=ages, now=10.0) == [False] * 4
    assert kept(rules, ages=ages, now=10.4) == [False] * 4
    assert kept(rules, ages=ages, now=10.5) == [True, True, False, True]  # the third is not tracked
    other = objects(BOXES[:1], ["person"], [0], [0.9], [9])
    assert kept(rules, other, ages, 10.6) == [False]
    assert kept(rules, ages=ages, now=10.7) == [True, True, False, True]  # a frame without it does not matter


def test_ages_begin_again_with_the_source():
    ages, rules = TrackAges(), FilterRules(min_age=0.5)
    kept(rules, ages=ages, now=100.0)
    assert kept(rules, ages=ages, now=0.0) == [False] * 4
    assert kept(rules, ages=ages, now=0.6) == [True, True, False, True]


def test_tracks_of_long_ago_are_forgotten():
    ages = TrackAges()
    for n in range(10_000):
        ages.ages([n], n * 0.5)
    assert len(ages.seen) < 300


def test_what_two_models_found_is_one():
    boxes = [(0, 0, 100, 100), (5, 0, 105, 100), (0, 0, 100, 100), (3, 0, 103, 100)]
    labels, components = ["car", "car", "dog", "car"], [1, 2, 2, 1]
    given = objects(boxes, labels, [0] * 4, [0.5, 0.9, 0.9, 0.4], [-1] * 4, components)
    # the second beats the first and the fourth, which are of the other model; the dog is something else
    assert kept(FilterRules(merge_iou=0.8), given) == [False, True, True, False]


def test_one_model_may_find_two_that_overlap():
    boxes = [(0, 0, 100, 100), (5, 0, 105, 100)]
    given = objects(boxes, ["car"] * 2, [0] * 2, [0.5, 0.9], [-1] * 2, [1, 1])
    assert kept(FilterRules(merge_iou=0.5), given) == [True, True]


def test_objects_that_went_do_not_take_others_along():
    boxes = [(0, 0, 100, 100), (5, 0, 105, 100), (10, 0, 110, 100)]
    given = objects(boxes, ["car"] * 3, [0] * 3, [0.9, 0.8, 0.7], [-1] * 3, [1, 2, 1])
    # the second goes for the first; the third is of the first's own model, and the second is not there any more
    assert kept(FilterRules(merge_iou=0.85), given) == [True, False, True]


def test_turned_boxes_are_compared_turned():
    boxes = [(0, 40, 100, 60), (0, 40, 100, 60)]
    given = objects(boxes, ["car"] * 2, [0] * 2, [0.5, 0.9], [-1] * 2, [1, 2], angles=[0, math.pi / 2])
    assert kept(FilterRules(merge_iou=0.5), given) == [True, True]


# --- as texts ---------------------------------------------------------------------------------------------------------


def test_rules_survive_being_texts():
    rules = FilterRules(
        rename={"person": "worker", 2: "car"}, remap={"person": 5}, keep=("person", 2), drop=("dog",), confidence=0.5,
        class_confidence={"car": 0.25}, min_size=(20, 40), max_size=(0, 800), min_aspect=0.25, max_aspect=4,
        regions=(((0, 0), (0.5, 0), (0.5, 1)), ((0.25, 0), (1, 0), (1, 1), (0.25, 1))), min_age=0.5, merge_iou=0.75,
        limit=10,
    )  # fmt: skip
    texts = properties_of(rules)
    assert texts["rename"] == "person:worker;2:car"
    assert texts["regions"] == "0,0 0.5,0 0.5,1 | 0.25,0 1,0 1,1 0.25,1"
    read = {name.replace("-", "_"): READERS.get(name, lambda v: v)(value) for name, value in texts.items()}
    assert FilterRules(**read) == rules
    assert properties_of(FilterRules()) == {}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("keep", "a;;b", "a class is empty"),
        ("rename", "person", "'person' has no colon"),
        ("remap", "person:x", "invalid literal"),
        ("class-confidence", "person:high", "could not convert"),
        ("min-size", "40", "no size"),
        ("min-size", "-1x5", "not a number of 0 or more"),
        ("regions", "0,0 1,1", "three points"),
        ("regions", "0,0 1,1 1,0 0,1", "of the polygon cross"),
        ("regions", "0,0 1 1,1", "'1' is no point"),
        ("exclude", "0,0 nan,1 1,1", "not a number from 0 to 1"),
        ("regions", "0,0 2,0 1,1", "not a number from 0 to 1"),
        ("remap", "car:-4", "not a class number from 0"),
        ("remap", "car:99999999999", "not a class number from 0"),
        ("class-confidence", "car:nan", "not a number from 0 to 1"),
    ],
)
def test_texts_that_say_nothing(name, text, reason):
    with pytest.raises(ValueError, match=reason):
        READERS[name](text)


@pytest.mark.parametrize(
    "limits", [{"min_size": (20, 40), "max_size": (100, 30)}, {"min_aspect": 3.0, "max_aspect": 1.0}]
)
def test_rules_that_nothing_could_pass(limits):
    with pytest.raises(ValueError, match="nothing could pass"):
        FilterRules(**limits)


def test_a_foot_beyond_the_edge_stands_just_inside():
    """A tracker carries boxes over the edge of the picture; the lower half holds them all the same."""
    below = objects([(100, 300, 140, 520)], ["person"], [0], [0.9], [1])
    assert kept(FilterRules(regions=(((0, 0.5), (1, 0.5), (1, 1), (0, 1)),)), below) == [True]


def test_a_wrong_property_is_named_with_its_example():
    values = {prop.name: prop.default for prop in PROPERTIES} | {"remap": "red:-4"}
    with pytest.raises(ValueError, match=r"remap: 'red:-4': .*; New class numbers, 'person:5;2:0'$"):
        rules_of(values)

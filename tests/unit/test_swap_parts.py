"""Versions, watched files, shadow comparison and the options of swaps and sources."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.source_options import SourceOptions, inside, parse_source_options, source_options_text
from elements.inference.swap.options import SwapOptions
from elements.inference.swap.served import load_served
from elements.inference.swap.shadow import Comparison, matched_ious
from elements.inference.swap.status import SwapState, SwapStatus
from elements.inference.swap.version import FileMark, mark_of, version_of
from elements.inference.swap.watch import SETTLE_POLLS, FileWatch
from elements.metadata.detections import Detections
from tests.own_models import Good

# --- words ------------------------------------------------------------------------------------------------------------


def test_a_source_is_called_by_its_name_where_that_is_known():
    status = SwapStatus(SwapState.LOADING, "night.onnx", source_id=1)
    assert status.text(["door", "yard"]) == "source 'yard': model 'night.onnx' is loading"
    assert status.text(["door"]) == str(status) == "source 1: model 'night.onnx' is loading"


# --- versions ---------------------------------------------------------------------------------------------------------


def test_a_files_version_is_its_name_and_content(tmp_path):
    path = tmp_path / "people.onnx"
    path.write_bytes(b"weights")
    assert version_of(ModelConfig(str(path))) == f"people.onnx@{hashlib.sha256(b'weights').hexdigest()[:12]}"
    path.write_bytes(b"others")
    assert version_of(ModelConfig(str(path))) == f"people.onnx@{hashlib.sha256(b'others').hexdigest()[:12]}"


def test_a_classes_version_is_its_path_and_what_it_says(tmp_path):
    weights = tmp_path / "w.pt"
    weights.write_bytes(b"weights")
    model = Good(ModelConfig("tests.own_models:Good"))
    assert version_of(ModelConfig("tests.own_models:Good"), model) == "tests.own_models:Good"
    model.version = 1.4
    assert version_of(ModelConfig("tests.own_models:Good"), model) == "tests.own_models:Good@1.4"
    with_weights = version_of(ModelConfig("tests.own_models:Good", weights=str(weights)), model)
    assert with_weights == f"tests.own_models:Good@1.4+{hashlib.sha256(b'weights').hexdigest()[:12]}"


def test_a_missing_file_has_no_version(tmp_path):
    assert mark_of(str(tmp_path / "no.onnx")) is None
    with pytest.raises(ModelError, match="No such file"):
        version_of(ModelConfig(str(tmp_path / "no.onnx")))


def test_a_file_that_changes_while_it_is_loaded_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "people.onnx"
    path.write_bytes(b"half")

    class Slow(Good):
        def load(self):
            path.write_bytes(b"the whole")

    monkeypatch.setattr("elements.inference.swap.served.open_model", Slow)
    with pytest.raises(ModelError, match="changed while it was loaded"):
        load_served(ModelConfig(str(path)))
    assert load_served(ModelConfig("tests.own_models:Good")).names == ("thing",)


# --- watched files ----------------------------------------------------------------------------------------------------


def test_a_file_counts_as_changed_when_it_has_stopped_changing():
    marks = {"m": FileMark(1, 100, 1000)}
    watch = FileWatch("m", marks.get)
    assert [watch.poll() for _ in range(3)] == [False] * 3
    for size in (10, 400, 900):  # being copied
        marks["m"] = FileMark(1, 200 + size, size)
        assert not watch.poll()
    assert [watch.poll() for _ in range(4)] == [False, True, False, False]


def test_a_rename_into_place_is_a_change_of_the_same_time_and_size():
    marks = {"m": FileMark(1, 100, 1000)}
    watch = FileWatch("m", marks.get)
    marks["m"] = FileMark(2, 100, 1000)
    assert [watch.poll() for _ in range(4)] == [False, False, True, False]


def test_a_file_that_goes_or_is_empty_is_no_change_and_its_return_may_be_one():
    marks = {"m": FileMark(1, 100, 1000)}
    watch = FileWatch("m", marks.get)
    del marks["m"]
    assert not any(watch.poll() for _ in range(4))
    marks["m"] = FileMark(3, 300, 0)
    assert not any(watch.poll() for _ in range(4))
    marks["m"] = FileMark(3, 301, 5)
    assert [watch.poll() for _ in range(3)] == [False, False, True]
    marks["m"] = FileMark(4, 400, 5)
    watch.poll()
    marks["m"] = FileMark(3, 301, 5)
    assert not any(watch.poll() for _ in range(4))


@pytest.mark.parametrize(
    ("unfit", "state"),
    [
        (lambda n: FileMark(2, 200, 0), "empty"),
        (lambda n: None, "not there"),
        (lambda n: FileMark(2, 200 + n, n), "still being written"),
    ],
)
def test_a_file_that_does_not_become_complete_is_told_once_and_taken_when_it_is(unfit, state):
    polls = iter(range(1000))
    watch = FileWatch("m", lambda path: FileMark(1, 100, 1000) if (n := next(polls)) < 5 else unfit(n))
    told = []
    for _ in range(3 * SETTLE_POLLS):
        assert not watch.poll()
        told.append(watch.problem)
    expected = f"its file is {state} after 10 s; it is loaded when the file is complete"
    assert [(n, text) for n, text in enumerate(told) if text] == [(4 + SETTLE_POLLS - 1, expected)]
    watch._mark_of = lambda path: FileMark(3, 300, 1000)
    assert [watch.poll() for _ in range(3)] == [False, False, True]
    assert watch.problem == ""


# --- comparison -------------------------------------------------------------------------------------------------------


def test_each_box_is_matched_once_best_first():
    old = np.array([(0, 0, 10, 10), (100, 100, 110, 110)], np.float32)
    new = np.array([(0, 0, 10, 5), (0, 0, 10, 10), (200, 200, 210, 210)], np.float32)
    assert matched_ious(old, new).tolist() == [1.0]
    assert matched_ious(old, new[:1]).tolist() == [0.5]
    assert matched_ious(old, new[:0]).tolist() == []


def test_boxes_without_area_match_nothing():
    flat = np.array([(5, 5, 5, 5)], np.float32)
    assert matched_ious(flat, flat).tolist() == []


def test_limits_of_a_comparison():
    def compared(old: int, new: int, **limits) -> str:
        one = Comparison(SwapOptions(shadow=1, **limits))
        box = np.array([(0, 0, 10, 10)], np.float32)
        many = [Detections(np.repeat(box, n, 0), np.ones(n), np.zeros(n)) for n in (old, new)]
        one.add([(many[0], many[1])])
        assert one.complete
        return one.problem()

    assert compared(10, 15) == compared(10, 5) == compared(0, 0) == ""
    assert "found 16 objects where the model in force found 10" in compared(10, 16)
    assert "found 4 objects" in compared(10, 4)
    assert compared(10, 16, max_count_change=0.6) == ""
    assert "found 1 objects where the model in force found 0" in compared(0, 1)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shadows": 1}, "unknown key 'shadows': did you mean 'shadow'"),
        ({"shadow": 1.5}, "shadow: '1.5' is not a whole number"),
        ({"keep": "10s"}, "keep: '10s' is not a number"),
        ({"keep": -1}, "keep: -1 is out of range"),
        ({"min_iou": 1.1}, "min_iou: 1.1 is out of range"),
        ({"max-latency": True}, "max_latency: 'True' is not a number"),
    ],
)
def test_bad_swap_options(options, message):
    with pytest.raises(ModelError, match=message.replace(".", r"\.")):
        SwapOptions.from_mapping(options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "by source id"),
        ('{"door": {}}', "by source id"),
        ('{"0": {"confidense": 1}}', "source 0: unknown key 'confidense': did you mean 'confidence'?"),
        ('{"0": {"confidence": 2}}', "source 0: confidence: 2 is not between 0 and 1"),
        ('{"0": {"interval": -1}}', "interval: '-1' is not a whole number"),
        ('{"1": {"region": [0, 0, 1]}}', "neither [left, top, right, bottom] nor"),
        ('{"1": {"region": [0.5, 0, 0.5, 1]}}', "is empty"),
        ('{"1": {"region": [[0, 0], [1, 0], [1, 1.2]]}}', "leaves the picture"),
        ('{"1": {"region": "all"}}', "neither"),
        ('{"1": {"model": ""}}', "model: ''"),
    ],
)
def test_bad_source_options(text, message):
    with pytest.raises(ModelError) as caught:
        parse_source_options(text)
    assert message in str(caught.value)


def test_source_options_there_and_back():
    text = '{"0": {"confidence": 0.5, "classes": ["car", 2]}, "3": {"region": [0, 0.5, 1, 1], "model": "m.onnx"}}'
    options = parse_source_options(text)
    assert options[0] == SourceOptions(confidence=0.5, classes=("car", 2))
    assert options[3].region == ((0, 0.5), (1, 0.5), (1, 1), (0, 1))
    assert parse_source_options(source_options_text(options)) == options
    assert source_options_text({1: SourceOptions()}) == "{}"


def test_a_source_picks_by_confidence_class_and_place():
    boxes = [(0, 0, 20, 20), (80, 80, 100, 100), (0, 80, 20, 100), (0, 70, 20, 90)]  # centres at 10 or 90; 10, 80
    found = Detections(np.array(boxes), np.array([0.75, 0.625, 0.5, 0.25]), np.array([0, 1, 0, 0]))
    names, size = ("person", "car"), (100, 200)

    def picked(**options) -> list[float]:
        return SourceOptions(**options).pick(found, names, size, 0.5).scores.tolist()

    assert picked() == [0.75, 0.625, 0.5]
    assert picked(confidence=0.25) == [0.75, 0.625, 0.5, 0.25]
    assert picked(classes=("car",)) == [0.625]
    assert picked(region=((0.5, 0), (1, 0), (1, 1), (0.5, 1))) == [0.625]
    assert picked(region=((0, 0), (1, 0), (1, 0.3), (0, 0.3))) == [0.75]
    assert SourceOptions(confidence=0.1).pick(found, names, size, 0.5) is found
    assert picked(classes=("cat", "car")) == [0.625]  # a model that comes is checked for its classes


def test_the_inside_of_a_polygon_that_is_not_convex():
    u_shape = [(0, 0), (0.3, 0), (0.3, 0.7), (0.7, 0.7), (0.7, 0), (1, 0), (1, 1), (0, 1)]
    points = np.array([(0.1, 0.1), (0.5, 0.5), (0.9, 0.1), (0.5, 0.8), (0, 0), (1, 0.5), (0.5, 1)])
    assert inside(u_shape, points).tolist() == [True, False, True, True, True, False, False]

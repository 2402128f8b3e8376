"""Evaluation on cases small enough to count by hand."""

import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest

from elements.metadata.rotated import rotated_iou
from pipelines.evaluation import Annotations, Evaluation, EvaluationError, evaluate
from pipelines.evaluation.annotations import Mask, Objects, Row, Sequence
from pipelines.evaluation.html import page
from pipelines.evaluation.overlap import box_overlap, mask_overlap

A, B, C = (0.0, 0.0, 10.0, 10.0), (100.0, 0.0, 110.0, 10.0), (200.0, 0.0, 210.0, 10.0)


def annotations(*frames: list[Row], name: str = "clip", **keys) -> Annotations:
    return Annotations(name, {name: Sequence(dict(enumerate(frames)), **keys)})


def cat(box, score: float = 1.0, **keys) -> Row:
    return Row("cat", box, score, **keys)


def shifted(box, x: float):
    return box[0] + x, box[1], box[2] + x, box[3]


# --- average precision ------------------------------------------------------------------------------------------------


def test_perfect_predictions() -> None:
    truth = annotations([cat(A), Row("dog", B)], [cat(C)])
    result = evaluate(truth, annotations([cat(A, 0.9), Row("dog", B, 0.8)], [cat(C, 0.7)]))
    assert (result.boxes.map, result.boxes.map50, result.frames) == (1, 1, 2)
    assert result.confusion.tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_right_false_right_of_three_objects() -> None:
    """Precision is 1 up to recall 1/3 (34 of 101 points), 2/3 up to 2/3 (33 points), then 0."""
    truth = annotations([cat(A), cat(B)], [cat(C)])
    result = evaluate(truth, annotations([cat(A, 0.9), cat((50, 50, 60, 60), 0.8)], [cat(C, 0.7)]))
    (item,) = result.boxes.classes
    assert item.ap50 == pytest.approx((34 + 33 * 2 / 3) / 101)
    assert (item.truth, item.predicted) == (3, 3)
    assert (item.confidence, item.precision, item.recall) == (0.7, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert item.f1 == pytest.approx(2 / 3)


def test_an_overlap_of_two_thirds_counts_up_to_065() -> None:
    """Moved by 2 of 10 pixels: 8 / 12 = 0.667 is enough for the thresholds 0.5, 0.55, 0.6 and 0.65."""
    result = evaluate(annotations([cat(A)]), annotations([cat(shifted(A, 2), 0.5)]))
    assert (result.boxes.map, result.boxes.map50, result.boxes.map75) == (pytest.approx(0.4), 1, 0)


def test_a_second_prediction_of_an_object_is_false() -> None:
    truth, predicted = annotations([cat(A)]), annotations([cat(A, 0.9), cat(shifted(A, 0.1), 0.8)])
    (item,) = evaluate(truth, predicted).boxes.classes
    assert item.ap50 == 1  # the better one comes first
    assert item.precisions.tolist() == [1, 0.5]
    (item,) = evaluate(truth, predicted, confidence=0.1).boxes.classes
    assert (item.precision, item.recall, item.confidence) == (0.5, 1, 0.1)
    (item,) = evaluate(truth, predicted, confidence=0.95).boxes.classes
    assert math.isnan(item.precision)
    assert item.recall == 0


def test_objects_that_need_not_be_found_and_what_lies_in_them() -> None:
    region = (50.0, 0.0, 90.0, 40.0)
    truth = annotations([cat(A), cat(region, ignore=True)])
    inside = [cat((55, 5, 65, 15), 0.95), cat((70, 5, 80, 15), 0.9), cat((85, 5, 95, 15), 0.85)]
    (item,) = evaluate(truth, annotations([*inside, cat(A, 0.5)])).boxes.classes
    assert (item.truth, item.predicted, item.ap50) == (1, 1, 1)  # the three: neither right nor wrong
    outside = cat((86, 5, 96, 15), 0.85)
    assert evaluate(truth, annotations([outside, cat(A, 0.5)])).boxes.map50 == pytest.approx(0.5)


def test_nothing_found() -> None:
    result = evaluate(annotations([cat(A)]), annotations([]))
    assert (result.boxes.map, result.boxes.classes[0].recall) == (0, 0)
    assert result.as_dict()["boxes"]["classes"]["cat"]["precision"] is None
    json.dumps(result.as_dict(), allow_nan=False)


# --- turned boxes and masks -------------------------------------------------------------------------------------------


def test_turned_boxes_overlap_as_turned_boxes() -> None:
    bar = (0.0, 0.0, 100.0, 10.0)
    truth = annotations([Row("ship", bar, angle=0.5)])
    assert evaluate(truth, annotations([Row("ship", bar, 0.9, angle=0.5 + math.pi)])).boxes.map == 1
    across = evaluate(truth, annotations([Row("ship", bar, 0.9, angle=0.5 + math.pi / 2)]))
    assert (across.boxes.map50, across.rotated) == (0, True)
    exchanged = Row("ship", (45, -45, 55, 55), 0.9, angle=0.5 - math.pi / 2)
    assert evaluate(truth, annotations([exchanged])).boxes.map == 1
    assert not evaluate(annotations([cat(A)]), annotations([cat(A)])).rotated


def test_overlap_with_a_turned_region_is_the_part_of_the_prediction_inside() -> None:
    truth = Objects.of(
        [cat((0, 0, 100, 100), angle=math.pi / 4, ignore=True), cat((0, 0, 100, 100), angle=math.pi / 4)]
    )
    predicted = Objects.of([cat((40, 40, 60, 60)), cat((0, 0, 100, 100))])
    both = rotated_iou([(0, 0, 100, 100)], [0], [(0, 0, 100, 100)], [math.pi / 4])[0, 0]
    expected = [[1, 0.04], [2 * both / (1 + both), both]]
    np.testing.assert_allclose(box_overlap(predicted, truth), expected, atol=1e-9)


def square(x: int, y: int, side: int) -> Mask:
    return Mask(x, y, np.ones((side, side), bool))


def test_masks_overlap_by_pixels() -> None:
    predicted = Objects.of([cat(A, mask=square(0, 0, 4)), cat(A)])
    truth = Objects.of([cat(A, mask=square(2, 2, 4)), cat(A, mask=square(4, 0, 4)), cat(A, mask=square(2, 0, 2))])
    np.testing.assert_allclose(mask_overlap(predicted, truth), [[4 / 28, 0, 0.25], [0, 0, 0]])


def test_masks_are_measured_where_both_have_them() -> None:
    truth = annotations([cat(A, mask=square(0, 0, 10))])
    half = Mask(0, 0, np.ones((6, 10), bool))
    result = evaluate(truth, annotations([cat(A, 0.9, mask=half)]))
    assert result.masks is not None
    assert (result.masks.map50, result.masks.map, result.boxes.map) == (1, pytest.approx(0.3), 1)  # 0.5, 0.55, 0.6
    assert evaluate(truth, annotations([cat(A, 0.9)])).masks is None


# --- tracks -----------------------------------------------------------------------------------------------------------


def tracks_of(*ids: int, boxes=(A, B), score: float = 0.9) -> list[list[Row]]:
    """Frames of one object on A with these ids, one after the other."""
    return [[cat(boxes[0], score, track_id=i)] for i in ids]


def test_perfect_tracks() -> None:
    result = evaluate(annotations(*tracks_of(1, 1, 1)), annotations(*tracks_of(9, 9, 9)))
    assert result.tracks is not None
    total = result.tracks.total
    assert (total.hota, total.mota, total.idf1, total.switches, total.truth, total.predicted) == (1, 1, 1, 0, 1, 1)


def test_an_id_that_changes_half_way() -> None:
    """Four frames, two ids: half of the object's frames are associated with each, so AssA is 0.5."""
    result = evaluate(annotations(*tracks_of(1, 1, 1, 1)), annotations(*tracks_of(5, 5, 6, 6)))
    assert result.tracks is not None
    total = result.tracks.total
    assert (total.deta, total.assa, total.hota) == pytest.approx((1, 0.5, math.sqrt(0.5)))
    assert (total.switches, total.mota, total.idf1) == (1, 0.75, 0.5)


def test_misses_and_false_ones() -> None:
    truth = annotations(*tracks_of(1, 1, 1, 1))
    found = tracks_of(5, 5, 5)
    found[0].append(cat(C, 0.9, track_id=7))
    result = evaluate(truth, annotations(*found, []))
    assert result.tracks is not None
    total = result.tracks.total
    assert total.mota == pytest.approx(1 - 2 / 4)
    assert total.deta == pytest.approx(3 / 5)


def test_tracks_on_objects_that_need_not_be_found_do_not_count() -> None:
    truth = annotations(*[[cat(A, track_id=1), cat(B, track_id=2, ignore=True)] for _ in range(3)])
    found = annotations(*[[cat(A, 0.9, track_id=5), cat(B, 0.9, track_id=6)] for _ in range(3)])
    result = evaluate(truth, found)
    assert result.tracks is not None
    assert (result.tracks.total.hota, result.tracks.total.predicted) == (1, 1)


def test_classes_are_tracked_apart_and_added_up() -> None:
    truth = annotations(*[[cat(A, track_id=1), Row("dog", B, track_id=1)]] * 2)
    found = annotations(*[[cat(A, 0.9, track_id=5)]] * 2)
    result = evaluate(truth, found)
    assert result.tracks is not None
    assert (result.tracks.classes["cat"].mota, result.tracks.classes["dog"].mota, result.tracks.total.mota) == (
        1,
        0,
        0.5,
    )
    assert result.notes == ["never predicted: 'dog'"]


def test_turned_objects_are_tracked_by_turned_overlap() -> None:
    bar = (0.0, 0.0, 100.0, 10.0)
    truth = annotations(*[[Row("ship", bar, angle=0.3 * n, track_id=1)] for n in range(5)])
    right = annotations(*[[Row("ship", bar, 0.9, angle=0.3 * n, track_id=1)] for n in range(5)])
    still = annotations(*[[Row("ship", bar, 0.9, track_id=1)] for n in range(5)])
    results = [evaluate(truth, predictions).tracks for predictions in (right, still)]
    assert results[0].total.hota == pytest.approx(1)
    assert results[1].total.hota < 0.5


def test_no_tracks_without_ids() -> None:
    assert evaluate(annotations([cat(A)]), annotations(*tracks_of(1))).tracks is None
    assert evaluate(annotations(*tracks_of(1)), annotations([cat(A, 0.5)])).tracks is None


def test_an_id_twice_in_a_frame_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="'clip' frame 0: two predicted objects of 'cat' have track id 5"):
        evaluate(annotations(*tracks_of(1)), annotations([cat(A, 0.9, track_id=5), cat(B, 0.9, track_id=5)]))


# --- what does not fit together ---------------------------------------------------------------------------------------


def test_class_names_that_differ() -> None:
    with pytest.raises(EvaluationError, match=r"no class name in common: .*'Cat'.*'cat'.*--map 'Cat=cat'"):
        evaluate(annotations([cat(A)]), annotations([Row("Cat", A, 0.9)]))
    renamed = annotations([Row("Cat", A, 0.9)]).renamed({"Cat": "cat"})
    assert evaluate(annotations([cat(A)]), renamed).boxes.map == 1


def test_classes_that_the_truth_lacks_are_left_out_and_said() -> None:
    result = evaluate(annotations([cat(A)]), annotations([cat(A, 0.9), Row("dog", B, 0.9), Row("dog", C, 0.9)]))
    assert result.boxes.map == 1
    assert result.notes == ["left out, since the truth has none of these classes: dog (2)"]


def test_sequences_by_name() -> None:
    one = annotations([cat(A)], name="one")
    two = one.merged(annotations([cat(B)], name="two"))
    assert evaluate(two, two).sequences == 2
    assert evaluate(annotations([cat(A)], name="a"), annotations([cat(A)], name="b")).boxes.map == 1
    with pytest.raises(EvaluationError, match=r"one has nothing for 'two' of one, two; it has 'one'"):
        evaluate(two, one)
    assert evaluate(one, two).notes == ["left out, since there is no truth for them: 'two'"]
    with pytest.raises(EvaluationError, match="one and one both have 'one'"):
        one.merged(one)


def test_frames_and_sizes() -> None:
    truth = annotations([cat(A)], [cat(A)], length=2, size=(640, 480))
    assert evaluate(truth, annotations([cat(A, 0.9)])).notes == [
        "'clip': 1 of 2 frames have no prediction and count as empty"
    ]
    with pytest.raises(EvaluationError, match="frame 2 of 'clip', of which the truth has 2 frames"):
        evaluate(truth, annotations([], [], []))
    late = Annotations("late", {"clip": Sequence({7: [cat(A)]})})
    with pytest.raises(EvaluationError, match="late has none of the 1 frames of 'clip'"):
        evaluate(annotations([cat(A)]), late)
    with pytest.raises(EvaluationError, match="640 x 480 pixels in the truth and 320 x 240"):
        evaluate(truth, annotations([cat(A)], size=(320, 240)))


# --- confusion and report ---------------------------------------------------------------------------------------------


def both() -> Evaluation:
    truth = annotations([cat(A, track_id=1), Row("dog", B, track_id=2), cat(C, track_id=3)])
    found = [Row("dog", A, 0.9, track_id=4), Row("dog", B, 0.8, track_id=5), cat((50, 50, 60, 60), 0.9, track_id=6)]
    return evaluate(truth, annotations(found))


def test_confusion() -> None:
    assert both().confusion.tolist() == [[0, 1, 1], [0, 1, 0], [1, 0, 0]]


class Balanced(HTMLParser):
    """Fails on tags that are not closed in order, and on anything that is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_report_stands_alone_and_shows_the_numbers() -> None:
    result = both()
    text = page(result, "A <test>", [("truth", "a&b.json")])
    reader = Balanced()
    reader.feed(text)
    assert reader.open == []
    words = " ".join(reader.text)
    assert "A <test>" in words
    assert "a&b.json" in words
    assert f"{result.boxes.map:.3f}" in reader.text
    assert {"cat", "dog", "Confusion", "Tracks", "HOTA"} <= set(reader.text)
    assert text.count("<polyline") == 4
    assert "http" not in text


def test_the_report_of_many_classes_of_which_one_was_found() -> None:
    truth = annotations([Row(f"class{n}", A) for n in range(80)])
    text = page(evaluate(truth, annotations([Row("class3", A, 0.5)])), "Evaluation", [])
    Balanced().feed(text)
    assert text.count("<polyline") == 160
    assert "nan" not in text

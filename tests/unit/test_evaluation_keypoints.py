"""Average precision of key points, on numbers that can be worked out by hand."""

import json
import math

import numpy as np
import pytest

from pipelines.evaluation import Annotations, EvaluationError, evaluate, read_events, read_truth
from pipelines.evaluation.annotations import Objects, Row, Sequence
from pipelines.evaluation.html import page
from pipelines.evaluation.keypoints import COCO_SIGMAS, keypoint_similarity, sigmas

BOX = (0.0, 0.0, 100.0, 100.0)


def row(points, score: float = 1.0, **keys) -> Row:
    return Row("hand", BOX, score, keypoints=np.array(points, np.float64), **keys)


def clip(*rows: Row) -> Annotations:
    return Annotations("clip", {"clip": Sequence({0: list(rows)}, length=1)})


def similarity(predicted: Row, truth: Row) -> float:
    return float(keypoint_similarity(Objects.of([predicted]), Objects.of([truth]))[0, 0])


def test_similarity_of_points_whose_sigma_is_not_known() -> None:
    """Area 10,000, k = 2 · 0.05 = 0.1: a point 10 pixels off has exp(-100 / (2 · 10,000 · 0.01)) = exp(-0.5)."""
    truth = row([[10, 10, 2], [50, 50, 1], [90, 90, 0]])
    assert similarity(row([[10, 10, 1], [50, 50, 1], [0, 0, 1]]), truth) == 1  # the third is not labelled
    assert similarity(row([[20, 10, 1], [50, 50, 1], [90, 90, 1]]), truth) == pytest.approx((math.exp(-0.5) + 1) / 2)
    assert similarity(row([[10, 10, 1], [math.nan, math.nan, math.nan]]), truth) == 0.5  # the others were not found
    assert similarity(row([[20, 10, 1], [50, 40, 1]]), truth._replace(area=2500.0)) == pytest.approx(math.exp(-2))


def test_cocos_points_have_cocos_sigmas() -> None:
    """A nose (0.026) and an ankle (0.089), each off by k times the object's side, are as similar."""
    assert (sigmas(17)[0], sigmas(17)[16], sigmas(5).tolist()) == (0.026, 0.089, [0.05] * 5)
    truth = np.zeros((17, 3))
    truth[[0, 16], 2] = 2
    found = truth.copy()
    found[:, 0] = 100 * 2 * COCO_SIGMAS
    assert similarity(row(found), row(truth)) == pytest.approx(math.exp(-0.5))


def test_average_precision() -> None:
    """A similarity of (exp(-0.5) + 1) / 2 = 0.803 counts up to 0.8, which are 7 of 10 thresholds."""
    truth = clip(row([[10, 10, 2], [50, 50, 2]]))
    result = evaluate(truth, clip(row([[20, 10, 0.9], [50, 50, 0.9]], 0.8))).keypoints
    assert result is not None
    assert (result.map, result.map50, result.map75) == pytest.approx((0.7, 1, 1))
    assert (result.classes[0].truth, result.classes[0].predicted, result.classes[0].confidence) == (1, 1, 0.8)


def test_objects_without_labelled_points_need_not_be_found_and_take_one_prediction() -> None:
    labelled, bare = row([[10, 10, 2]]), row([[0, 0, 0]])._replace(box=(500, 500, 600, 600))
    inside, too = row([[550, 550, 1]], 0.9), row([[560, 560, 1]], 0.8)
    result = evaluate(clip(labelled, bare), clip(inside, too, row([[10, 10, 1]], 0.7))).keypoints
    assert result is not None
    assert (result.classes[0].truth, result.classes[0].predicted) == (1, 2)
    assert result.map == pytest.approx(0.5)  # one false before the right one


def test_only_where_both_have_points() -> None:
    with_points, without = row([[10, 10, 2]]), Row("hand", BOX, 0.9)
    assert evaluate(clip(with_points), clip(without)).keypoints is None
    assert evaluate(clip(without), clip(with_points)).keypoints is None


def test_other_numbers_of_points_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="predicted objects have 2 key points, true ones 1"):
        evaluate(clip(row([[10, 10, 2]])), clip(row([[10, 10, 1], [20, 20, 1]])))


def test_from_cocos_file_and_an_event_file_to_json_and_the_report(tmp_path) -> None:
    (tmp_path / "truth.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}],
        "categories": [{"id": 1, "name": "hand"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 100, 100], "area": 10000,
                         "keypoints": [10, 10, 2, 50, 50, 1, 0, 0, 0]}],
    }))  # fmt: skip
    (tmp_path / "found.jsonl").write_text(json.dumps({
        "source": "a", "frame": 0, "width": 640, "height": 480,
        "objects": [{"bbox": [0, 0, 100, 100], "label": "hand", "confidence": 0.8,
                     "keypoints": [[20, 10, 0.9], [50, 50, 0.9], [None, None, None]]}],
    }) + "\n")  # fmt: skip
    result = evaluate(read_truth(tmp_path / "truth.json"), read_events(tmp_path / "found.jsonl"))
    told = result.as_dict()["keypoints"]
    assert (told["map"], told["map50"], told["classes"]["hand"]["truth"]) == (0.7, 1.0, 1)
    assert "Key points (OKS in place of overlap)" in page(result, "Evaluation", [])


def test_points_that_are_none_name_the_entry(tmp_path) -> None:
    (tmp_path / "truth.json").write_text(json.dumps({
        "images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "hand"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 100, 100], "keypoints": [10, 10]}],
    }))  # fmt: skip
    with pytest.raises(EvaluationError, match=r"annotations\[0\]: keypoints is not \[x, y, v\]"):
        read_truth(tmp_path / "truth.json")

"""How far two models agree: counted pairs, and the command on pictures."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

from elements.inference.compare import Agreement, matches
from elements.metadata.detections import Detections
from tests.gstorch_cli import gstorch
from tests.onnx_heads import head
from tests.onnx_models import finder, save
from tests.pictures import frame_of


def objects(*boxes, classes=None, scores=None, angles=None):
    n = len(boxes)
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(scores or [0.9] * n, np.float32),
        np.array(classes or [0] * n),
        angles=None if angles is None else np.array(angles, np.float32),
    )


def test_equal_objects_agree_in_any_order():
    result = Agreement()
    a, b = (0, 0, 10, 10), (50, 50, 70, 90)
    result.add([objects(a, b)], [objects(b, a)])
    assert (result.matched, result.agreement, result.mean_iou, result.shift(95)) == (2, 1.0, 1.0, 0.0)


def test_an_object_that_one_lacks_counts_against_both():
    result = Agreement()
    result.add([objects((0, 0, 10, 10), (50, 50, 70, 90))], [objects((0, 0, 10, 10))])
    assert result.agreement == pytest.approx(2 / 3)


def test_shift_and_score_are_those_of_the_pairs():
    result = Agreement()
    result.add([objects((0, 0, 100, 100), scores=[0.9])], [objects((2, 0, 100, 101), scores=[0.8])])
    assert result.shift(50) == pytest.approx(2)
    assert result.score_shift(50) == pytest.approx(0.1, abs=1e-6)
    assert result.mean_iou == pytest.approx(98 * 100 / (100 * 100 + 98 * 101 - 98 * 100))


def test_another_class_is_another_object():
    rows, _, _ = matches(objects((0, 0, 10, 10)), objects((0, 0, 10, 10), classes=[1]))
    assert not len(rows)


def test_two_close_objects_are_not_crossed():
    """The best pair of one object must not leave the other one without."""
    one, other = objects((0, 0, 10, 10), (2, 0, 12, 10)), objects((2, 0, 12, 10), (4, 0, 14, 10))
    assert sorted(zip(*(x.tolist() for x in matches(one, other)[:2]), strict=True)) == [(0, 0), (1, 1)]


def test_turned_boxes_are_compared_turned():
    box = (0, 0, 40, 4)
    assert not len(matches(objects(box, angles=[0]), objects(box, angles=[np.pi / 2]))[0])
    assert len(matches(objects(box, angles=[0]), objects(box, angles=[np.pi]))[0]) == 1


def test_nothing_found_by_either_is_agreement():
    result = Agreement()
    result.add([objects()], [objects()])
    assert (result.agreement, result.mean_iou, result.shift(95), result.frames) == (1.0, 1.0, 0.0, 1)


SILENT = """
from elements.metadata.detections import Detections

class Silent:
    names = ("red", "green", "blue")
    def __init__(self, config): pass
    def load(self): pass
    def infer(self, frames): return [Detections() for _ in frames]
    def close(self): pass
"""

# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, size in enumerate([(640, 360), (360, 640)]):
        cv2.imwrite(str(folder / f"{i}.png"), frame_of(*size).pixels[..., ::-1])
    (folder / "notes.txt").write_text("not a picture")
    return folder


def test_fp16_beside_fp32(tmp_path, pictures):
    one = save(finder("yolov8", (320, 320)), tmp_path / "fp32.onnx")
    other = save(finder("yolov8", (320, 320), dtype="float16"), tmp_path / "fp16.onnx")
    done = gstorch("models", "compare", one, other, pictures, "--labels", "red,green,blue", "--json")
    assert done.code == 0, done.stderr
    numbers = json.loads(done.stdout)
    assert (numbers["frames"], numbers["objects_first"], numbers["agreement"]) == (2, 6, 1.0)
    assert numbers["shift_px_95"] < 2


def test_too_little_in_common_is_exit_code_1(tmp_path, pictures):
    one = save(finder("yolov8", (320, 320)), tmp_path / "a.onnx")
    (tmp_path / "silent.py").write_text(SILENT)
    arguments = ("models", "compare", one, "silent:Silent", pictures, "--labels", "red,green,blue")
    assert gstorch(*arguments, cwd=tmp_path).code == 0
    done = gstorch(*arguments, "--min-agreement", "0.9", cwd=tmp_path)
    assert done.code == 1
    assert "the models have 0.0% of their objects in common, less than 90.0%" in done.stderr


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("nowhere", "there is no such file"),
        ("notes.txt", "neither a video nor a picture"),
        ("empty", "no picture in it"),
    ],
)
def test_sources_that_are_none(tmp_path, source, text):
    model = save(finder("yolov8", (320, 320)), tmp_path / "a.onnx")
    (tmp_path / "notes.txt").write_text("no video")
    (tmp_path / "empty").mkdir()
    done = gstorch("models", "compare", model, model, tmp_path / source, "--labels", "red,green,blue")
    assert (done.code, done.stdout) == (1, "")
    assert text in done.stderr


def test_other_classes_cannot_be_compared(tmp_path, pictures):
    one = save(finder("yolov8", (320, 320)), tmp_path / "a.onnx")
    done = gstorch("models", "compare", one, tmp_path / "missing.onnx", pictures, "--labels", "red,green,blue")
    assert done.code == 1
    assert "missing.onnx': there is no such file" in done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AnswersNone", "fails on picture 0 of {0}: TypeError: infer() must return a list of one Detections"),
        ("ExitsOnFour", "fails on picture 4 of {0}: SystemExit: had enough"),
        ("RaisesOnFour", "fails on picture 4 of {0}: ValueError: no such luck"),
    ],
)
def test_a_model_that_fails_is_named_with_the_picture(tmp_path, name, text):
    for number in range(5):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.zeros((64, 64, 3), np.uint8))
    model = f"tests.own_models:{name}"
    result = gstorch("models", "compare", model, model, str(tmp_path))
    assert result.code == 1
    assert result.stderr.startswith(f"error: model '{model}' {text.format(tmp_path)}")
    assert len(result.stderr.splitlines()) == 1


def test_task_and_layout_can_be_declared(tmp_path, pictures):
    path = save(head("yolov8", "obb", (320, 320)), tmp_path / "m.onnx")
    result = gstorch("models", "compare", path, path, str(pictures), "--task", "obb", "--labels", "a,b,c", "--json")
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout)["agreement"] == 1

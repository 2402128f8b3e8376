"""Decoders on arrays small enough to check by hand, and the choice among them."""

import math

import numpy as np
import pytest

from elements.inference.decoders import Decoder, Sample, choose_decoder
from elements.inference.errors import ModelError
from elements.inference.finish import finish
from elements.inference.letterbox import place

SIZE = (96, 96)  # 144 + 36 + 9 = 189 cells of strides 8, 16, 32


def sample(*shape, labels=None, ultralytics=False, largest=60.0):
    output = np.zeros(shape, np.float32)
    output.flat[0] = largest
    return Sample({"output": output}, SIZE, labels, ultralytics)


@pytest.mark.parametrize(
    ("given", "layout"),
    [
        (sample(1, 7, 189), "yolov8"),
        (sample(2, 84, 189), "yolov8"),
        (sample(1, 189, 7, ultralytics=True), "yolov8-transposed"),
        (sample(1, 189, 7, labels=3), "yolov8-transposed"),
        (sample(1, 84, 189, ultralytics=True), "yolov8"),
        (sample(1, 567, 8), "yolov5"),
        (sample(1, 567, 8, ultralytics=True), "yolov5"),
        (sample(1, 189, 8, labels=3, largest=2), "yolox"),
        (sample(1, 189, 85, largest=2), "yolox"),
        (sample(1, 189, 85, largest=60), "yolox-decoded"),
        (sample(1, 300, 6), "end2end"),
        (sample(1, 100, 6), "end2end"),
    ],
)
def test_layout_is_told(given, layout):
    assert choose_decoder(given).layout == layout


QUERIES = np.random.default_rng(0).random((1, 300, 84)).astype(np.float32)
FINISHED = np.concatenate([QUERIES[..., :5], np.floor(QUERIES[..., 5:6] * 80)], axis=2)
LOGITS = QUERIES[..., :5] * 12 - 6
SOFTMAX = np.tile(np.array([[[0.9, 0.1]]], np.float32), (1, 300, 1))
BOXES, CLASSES, SCORES = QUERIES[..., :4], np.ones((1, 300), np.float32), QUERIES[..., 0]
PROTOTYPES, MASKS = np.zeros((1, 32, 24, 24), np.float32), np.zeros((1, 300, 24, 24), np.float32)


def rows(*shape, **columns):
    """Pixels in the box columns, scores of 0.5, and other values where told."""
    output = np.full(shape, 0.5, np.float32)
    output[..., :4] = 40
    for start, value in columns.items():
        output[..., int(start[1:]) :] = value
    return output


@pytest.mark.parametrize(
    ("outputs", "told", "layout", "task"),
    [
        ({"a": rows(1, 189, 39).swapaxes(1, 2), "b": PROTOTYPES}, {}, "yolov8", "segment"),
        ({"a": rows(1, 567, 40), "b": PROTOTYPES}, {}, "yolov5", "segment"),
        ({"a": rows(1, 300, 38, _5=1.0), "b": PROTOTYPES}, {}, "end2end", "segment"),
        ({"a": rows(1, 189, 8).swapaxes(1, 2)}, {"task": "obb"}, "yolov8", "obb"),
        ({"a": rows(1, 189, 8, _7=-0.7).swapaxes(1, 2)}, {"label_count": 3}, "yolov8", "obb"),
        ({"a": rows(1, 189, 8).swapaxes(1, 2)}, {"label_count": 3}, "yolov8", "detect"),  # refused later: 4 classes
        ({"a": rows(1, 189, 56, _5=40.0).swapaxes(1, 2)}, {"label_count": 1}, "yolov8", "pose"),
        ({"a": rows(1, 189, 56).swapaxes(1, 2)}, {"task": "pose"}, "yolov8", "pose"),
        ({"a": rows(1, 189, 39).swapaxes(1, 2)}, {"task": "pose", "keypoints": (17, 2)}, "yolov8", "pose"),
        ({"a": rows(1, 300, 57, _5=1.0)}, {}, "end2end", "pose"),
        ({"a": rows(1, 300, 7, _5=1.0)}, {}, "end2end", "obb"),
        ({"a": QUERIES}, {}, "rtdetr", "detect"),
        ({"a": FINISHED}, {}, "rtdetr-end2end", "detect"),
        ({"dets": BOXES, "labels": LOGITS}, {}, "rfdetr", "detect"),
        ({"dets": BOXES, "labels": LOGITS, "masks": MASKS}, {}, "rfdetr", "segment"),
        ({"labels": CLASSES, "boxes": BOXES, "scores": SCORES}, {}, "separate", "detect"),
        (
            {"detection_classes": CLASSES, "detection_boxes": BOXES, "detection_scores": SCORES},
            {},
            "tf-detection",
            "detect",
        ),
        ({"scores": SOFTMAX, "boxes": BOXES}, {}, "ssd", "detect"),
        ({"a": rows(1, 189, 112)}, {}, "nanodet", "detect"),
        ({"a": np.zeros((1, 85, 6, 6), np.float32)}, {}, "fastestdet", "detect"),
        ({"a": SOFTMAX[:, 0]}, {}, "classify", "classify"),
        ({"a": np.ones((1, 512, 1, 1), np.float32)}, {"task": "embed"}, "embed", "embed"),
    ],
)
def test_layout_and_task_are_told(outputs, told, layout, task):
    decoder = choose_decoder(Sample(outputs, SIZE, **told))
    assert (decoder.layout, decoder.task) == (layout, task)


def test_a_vector_may_be_two_things():
    with pytest.raises(ModelError, match=r"classify \(classify, 512 classes\) or embed \(embed\).* declare 'task'"):
        choose_decoder(Sample({"output": np.ones((1, 512), np.float32)}, SIZE))


def test_a_further_output_must_be_explained():
    outputs = {"output": np.zeros((1, 7, 189), np.float32), "features": np.zeros((1, 9), np.float32)}
    with pytest.raises(ModelError, match=r"output \(1, 7, 189\); features \(1, 9\).*declare it with 'layout'"):
        choose_decoder(Sample(outputs, SIZE))
    assert choose_decoder(Sample(outputs, SIZE), "yolov8").reading.outputs == ("output",)


@pytest.mark.parametrize(
    ("columns", "declared", "fits"), [(6, "obb", "detect"), (6, "pose", "detect"), (6, "segment", "detect")]
)
def test_a_task_that_does_not_fit_is_told_with_the_one_that_does(columns, declared, fits):
    rows = np.zeros((1, 300, columns), np.float32)
    with pytest.raises(
        ModelError, match=rf"no layout known here for task {declared} \(.*\), but fit task {fits}: set 'task'"
    ):
        choose_decoder(Sample({"output": rows}, SIZE, task=declared))


def test_two_readings_are_refused_by_name():
    with pytest.raises(ModelError) as raised:
        choose_decoder(sample(1, 189, 9, largest=2))
    for part in (
        "(1, 189, 9)",
        "yolov8-transposed (detect, 5 classes)",
        "yolox (detect, 4 classes)",
        "no names are given",
        "'layout'",
    ):
        assert part in str(raised.value)


def test_unknown_shape_is_refused_with_all_layouts():
    with pytest.raises(ModelError) as raised:
        choose_decoder(sample(1, 85, 22))
    for part in ("(1, 85, 22)", "96x96", "declare it with 'layout'", *Decoder.registry):
        assert part in str(raised.value)


def test_declared_layout_wins():
    assert choose_decoder(sample(1, 189, 9), "yolov8-transposed").layout == "yolov8-transposed"
    with pytest.raises(ModelError, match="'yolo9' is not one of auto, "):
        choose_decoder(sample(1, 189, 9), "yolo9")
    with pytest.raises(ModelError, match="one row per grid cell"):
        choose_decoder(sample(1, 300, 9), "yolox")


def decoded(layout, output, confidence=0.5, normalized=False):
    decoder = choose_decoder(Sample({"output": output[None]}, SIZE), layout)
    decoder.normalized = normalized
    return decoder.decode([output], SIZE, confidence)


def test_yolov8():
    output = np.zeros((189, 7), np.float32)
    output[5] = [20, 30, 10, 6, 0.1, 0.5, 0.2]
    output[6] = [20, 30, 10, 6, 0.1, 0.499, 0.2]
    for layout, array in (("yolov8", output.T), ("yolov8-transposed", output)):
        found = decoded(layout, np.ascontiguousarray(array))
        assert found.boxes.tolist() == [[15, 27, 25, 33]]
        assert (found.scores.tolist(), found.class_ids.tolist(), found.invalid) == ([0.5], [1], 0)


def test_yolov5_multiplies_objectness():
    output = np.zeros((567, 8), np.float32)
    output[9] = [20, 30, 10, 6, 0.8, 0.1, 0.2, 0.75]
    output[10] = [20, 30, 10, 6, 0.8, 0.1, 0.2, 0.5]  # 0.4 in all
    found = decoded("yolov5", output)
    assert found.boxes.tolist() == [[15, 27, 25, 33]]
    assert found.scores == pytest.approx([0.6])
    assert found.class_ids.tolist() == [2]


def test_yolox_decodes_its_grid():
    output = np.zeros((189, 8), np.float32)
    output[12 * 2 + 3] = [0.5, 0.25, math.log(2), math.log(3), 1, 0.9, 0, 0]  # stride 8, cell (3, 2)
    output[144 + 6 * 1 + 2] = [0.5, 0.5, 0, 0, 1, 0, 0.8, 0]  # stride 16, cell (2, 1)
    output[144 + 36 + 3 * 1 + 0] = [0.5, 0.5, 0, 0, 1, 0, 0, 0.7]  # stride 32, cell (0, 1)
    found = decoded("yolox", output)
    np.testing.assert_allclose(found.boxes, [[20, 6, 36, 30], [32, 16, 48, 32], [0, 32, 32, 64]], atol=1e-4)
    assert found.class_ids.tolist() == [0, 1, 2]


def test_end2end():
    output = np.zeros((300, 6), np.float32)
    output[0] = [1, 2, 3, 4, 0.9, 7]
    found = decoded("end2end", output)
    assert (found.boxes.tolist(), found.class_ids.tolist()) == ([[1, 2, 3, 4]], [7])


def test_normalized_boxes_are_scaled():
    output = np.zeros((300, 6), np.float32)
    output[0] = [0.25, 0.5, 0.5, 1, 0.9, 7]
    assert decoded("end2end", output, normalized=True).boxes.tolist() == [[24, 48, 48, 96]]
    assert decoded("end2end", output, normalized=None).boxes.tolist() == [[24, 48, 48, 96]]


@pytest.mark.parametrize("layout", ["yolov8", "yolov8-transposed", "yolov5", "yolox", "yolox-decoded", "end2end"])
def test_broken_numbers_are_left_out_and_counted(layout):
    rows = {"yolov5": 567, "end2end": 300}.get(layout, 189)
    columns = {"yolov8": 7, "yolov8-transposed": 7, "end2end": 6}.get(layout, 8)
    output = np.zeros((rows, columns), np.float32)
    output[0], output[1], output[2] = 0.9, 0.9, 0.9
    output[1, 4:] = np.nan
    output[2, 0] = np.inf
    found = decoded(layout, output.T if layout == "yolov8" else output)
    assert (len(found.scores), found.invalid) == (1, 2)
    assert np.isfinite(found.boxes).all()


def test_infinite_score():
    output = np.zeros((189, 7), np.float32)
    output[3, 5] = np.inf
    found = decoded("yolov8", output.T)
    assert (len(found.scores), found.invalid) == (0, 1)


def test_categories_of_coco_get_the_numbers_of_its_names():
    """RF-DETR as trained on COCO has 91 columns: 1 is the person, 90 the toothbrush, 12 nothing."""
    logits = np.full((3, 91), -9, np.float32)
    logits[0, 1] = logits[1, 90] = logits[2, 12] = 9
    outputs = {"dets": np.full((1, 3, 4), 0.5, np.float32), "labels": logits[None]}
    decoder = choose_decoder(Sample(outputs, SIZE))
    assert decoder.reading.classes == 80
    found = decoder.decode([outputs["dets"][0], logits], SIZE, 0.5)
    assert found.class_ids.tolist() == [0, 79]
    assert found.boxes.tolist() == [[24, 24, 72, 72]] * 2


def test_key_points_without_scores():
    output = np.zeros((189, 9), np.float32)
    output[4] = [20, 30, 10, 6, 0.9, 15, 27, 25, 33]
    decoder = choose_decoder(
        Sample({"output": output[None]}, SIZE, 1, task="pose", keypoints=(2, 2)), "yolov8-transposed"
    )
    found = decoder.decode([output], SIZE, 0.5)
    detections = finish(found, [output], decoder, SIZE, place((192, 192), SIZE, "center"), 0.5)
    assert detections.keypoints.tolist() == [[[30, 54, 1], [50, 66, 1]]]


@pytest.mark.parametrize("column", [7, 8], ids=["first", "second"])
def test_what_a_task_adds_must_be_numbers(column):
    output = np.zeros((189, 9), np.float32)
    output[3:5] = [20, 30, 10, 6, 0.9, 0.1, 0.2, 1, 1]
    output[3, column] = np.nan
    outputs = {"output": output[None], "prototypes": np.zeros((1, 2, 24, 24), np.float32)}
    decoder = choose_decoder(Sample(outputs, SIZE, 3), "yolov8-transposed")
    assert decoder.task == "segment"
    found = decoder.decode([output, outputs["prototypes"][0]], SIZE, 0.5)
    assert (len(found.scores), found.invalid) == (1, 1)

"""Every task and layout, from model file to detections, on pictures of known truth: odd sizes, portrait, letterbox."""

import functools
import math

import cv2
import numpy as np
import onnx
import pytest

from elements.inference.config import ModelConfig
from elements.inference.decoders import Decoder
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel
from elements.metadata.rotated import corners, rotated_iou
from tests.onnx_heads import HEADS, POINTS, head
from tests.onnx_models import LAYOUTS, save
from tests.pictures import (
    COLORS,
    NAMES,
    SCORE,
    SIZES,
    assert_finds,
    assert_finds_ellipses,
    boxes_in,
    ellipses,
    frame_of,
    picture,
)

# What nothing in a file without metadata tells: angles and key points look like classes, vectors like logits. Real
# RT-DETRs spread their boxes over the input also for noise, these do not.
DECLARED = {
    **{(f"yolov8{kind}", task): {"task": task} for kind in ("", "-transposed") for task in ("obb", "pose")},
    ("classify", "classify"): {"task": "classify"},
    ("embed", "embed"): {"task": "embed"},
    ("rtdetr-end2end", "detect"): {"layout": "rtdetr-end2end"},
}


def loaded(tmp_path, layout, task, size=(640, 640), metadata=None, **options):
    path = save(head(layout, task, size, metadata), tmp_path / "m.onnx")
    told = {} if metadata else DECLARED.get((layout, task), {})
    model = DetectionModel(ModelConfig(path, **{"labels": NAMES, **told, **options}))
    model.load()
    assert (model._network.decoder.layout, model.task) == (layout, task)
    return model


@functools.cache
def turned(width, height):
    """A frame with three turned rectangles, their boxes and angles."""
    side = min(width, height)
    center = np.array([(0.25, 0.3), (0.7, 0.35), (0.5, 0.75)]) * (width, height)
    size = np.array([(0.36, 0.2), (0.4, 0.15), (0.3, 0.22)]) * side
    boxes, angles = np.hstack([center - size / 2, center + size / 2]), np.array([0.3, -0.6, 1.2])
    large = np.full((height * 4, width * 4, 3), 40, np.uint8)
    for color, points in zip(COLORS, corners(boxes, angles), strict=True):
        # Pixel i covers [i, i + 1), and fillPoly paints about pixel centres.
        cv2.fillPoly(large, [np.round((points * 4 - 0.5) * 256).astype(np.int32)], color, cv2.LINE_AA, 8)
    image = cv2.GaussianBlur(cv2.resize(large, (width, height), interpolation=cv2.INTER_AREA), (0, 0), 1)
    return ArrayFrame(image), boxes, angles


def in_order(detections):
    order = np.argsort(detections.class_ids)
    assert detections.class_ids[order].tolist() == [0, 1, 2]
    return detections[order]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", [layout for layout, task in HEADS if task == "detect"])
def test_boxes(tmp_path, layout, size):
    model = loaded(tmp_path, layout, "detect", (480, 480))
    assert_finds(model.infer([frame_of(*size)])[0], *size, tolerance=0.5)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", [layout for layout, task in HEADS if task == "segment"])
def test_masks(tmp_path, layout, size):
    assert_finds_ellipses(loaded(tmp_path, layout, "segment").infer([ellipses(*size)[0]])[0], *size)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", [layout for layout, task in HEADS if task == "pose"])
def test_keypoints(tmp_path, layout, size):
    model = loaded(tmp_path, layout, "pose")
    found = in_order(model.infer([frame_of(*size)])[0])
    assert found.keypoints.shape == (3, POINTS, 3)
    box = np.array(list(boxes_in(*size).values()))
    truth = np.stack([box[:, :2], (box[:, :2] + box[:, 2:]) / 2, box[:, 2:]], axis=1)
    np.testing.assert_allclose(found.keypoints[..., :2], truth, atol=0.5)
    np.testing.assert_allclose(found.keypoints[..., 2], 0.75)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", [layout for layout, task in HEADS if task == "obb"])
def test_angles(tmp_path, layout, size):
    frame, boxes, angles = turned(*size)
    found = in_order(loaded(tmp_path, layout, "obb").infer([frame])[0])
    off = (found.angles - angles + math.pi / 2) % math.pi - math.pi / 2  # half a turn changes nothing
    assert np.abs(np.degrees(off)).max() <= 0.5
    np.testing.assert_allclose(found.boxes, boxes, atol=0.5)
    assert rotated_iou(found.boxes, found.angles, boxes, angles).diagonal().min() > 0.98


def test_the_strongest_colour_is_the_class(tmp_path):
    """On a wide frame only what is in the middle counts: the input is cut out of it."""
    model = loaded(tmp_path, "classify", "classify", (64, 64))
    frame = ArrayFrame(picture(400, 100, {0: (0, 0, 140, 100), 2: (160, 10, 240, 90)}))
    (found,) = model.infer([frame])
    assert found.boxes.tolist() == [[0, 0, 400, 100]]
    assert found.class_ids.tolist() == [2]
    assert 0.99 < found.scores[0] <= 1
    model.confidence = 1.0
    assert len(model.infer([ArrayFrame(picture(100, 100, {}))])[0]) == 0


def test_embedding_is_one_long(tmp_path):
    model = loaded(tmp_path, "embed", "embed", (64, 64), labels=None)
    (found,) = model.infer([ArrayFrame(picture(100, 50, {0: (0, 0, 30, 50), 1: (60, 0, 100, 50)}))])
    np.testing.assert_allclose(found.embeddings, [[0.6, 0.8, 0]], atol=0.01)
    assert (found.boxes.tolist(), found.class_ids.tolist(), found.scores.tolist()) == ([[0, 0, 100, 50]], [0], [1])
    assert len(model.infer([ArrayFrame(picture(100, 50, {}))])[0]) == 0  # nothing but zeros has no direction
    assert model.stats.nan == 1


@pytest.mark.parametrize(
    ("task", "side", "shared"), [("classify", 64, True), ("embed", 64, True), ("classify", 256, False)]
)
def test_small_pictures_share_runs_and_get_the_same_answers(tmp_path, monkeypatch, task, side, shared):
    """41 pictures in runs of equal size for all threads, one of them without an answer; one by one gives the same."""
    network = head(task, task, (side, side))
    network.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    labels = NAMES if task == "classify" else None
    model = DetectionModel(ModelConfig(save(network, tmp_path / "m.onnx"), task=task, labels=labels))
    model.load()
    frames = [ArrayFrame(picture(90, 60, {n % 3: (0, 0, 30 + n, 60)} if n else {})) for n in range(41)]
    engine, sizes = model._network.engine, []
    run = engine.run
    monkeypatch.setattr(engine, "run", lambda tensor: sizes.append(len(tensor)) or run(tensor))
    monkeypatch.setattr(model, "_threads", 2)
    model.confidence = 0.5
    together = model.infer(frames)
    assert sorted(sizes, reverse=True) == ([11, 11, 11, 8] if shared else [1] * 41)
    assert len(together[0]) == 0
    for found, frame in zip(together, frames, strict=True):
        (alone,) = model.infer([frame])
        assert (found.class_ids.tolist(), found.boxes.tolist()) == (alone.class_ids.tolist(), alone.boxes.tolist())
        np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-5)
        if task == "embed":
            np.testing.assert_allclose(found.embeddings, alone.embeddings, atol=1e-6)


@pytest.mark.parametrize(("layout", "task"), [("yolov8", "obb"), ("yolov8", "pose"), ("end2end", "pose")])
def test_the_task_is_told_by_the_file(tmp_path, layout, task):
    metadata = {"task": task, "names": str(list(NAMES)), "stride": "32", "kpt_shape": f"[{POINTS}, 3]"}
    loaded(tmp_path, layout, task, (64, 64), metadata=metadata, labels=None)


def test_the_size_that_boxes_are_scaled_to_is_told(tmp_path):
    """RT-DETR's own export takes the picture's (width, height) as a second input; it gets the network's."""
    model = head("separate", "detect", (640, 320))
    node = next(node for node in model.graph.node if node.output == ["boxes"])
    node.output[0] = "plain"
    made, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    model.graph.initializer.append(constant(np.array([640, 320, 640, 320], np.float32), "full"))
    model.graph.node.extend([
        made("Cast", ["orig_target_sizes"], ["told"], to=onnx.TensorProto.FLOAT),
        made("Concat", ["told", "told"], ["twice"], axis=1),
        made("Div", ["twice", "full"], ["factor"]),
        made("Mul", ["plain", "factor"], ["boxes"]),
    ])  # fmt: skip
    model.graph.input.append(onnx.helper.make_tensor_value_info("orig_target_sizes", onnx.TensorProto.INT64, ["b", 2]))
    loaded_model = DetectionModel(ModelConfig(save(model, tmp_path / "m.onnx"), labels=NAMES))
    loaded_model.load()
    assert loaded_model._network.decoder.layout == "separate"
    assert_finds(loaded_model.infer([frame_of(641, 359)])[0], 641, 359, tolerance=0.5)


def test_every_layout_is_tried_here():
    assert {layout for layout, _ in HEADS} | set(LAYOUTS) == set(Decoder.registry)
    finder_only = {(layout, "detect") for layout in LAYOUTS}
    pairs = {(layout, task) for layout, kind in Decoder.registry.items() for task in kind.shapes}
    assert pairs == set(HEADS) | finder_only
    assert SCORE == 0.9

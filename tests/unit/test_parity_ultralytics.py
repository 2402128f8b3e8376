"""The same answer as ultralytics' own post-processing, on models that give a fixed crowd of overlapping objects.

Skipped where ultralytics (dev only, AGPL) is missing. Nothing is downloaded.
"""

import cv2
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch")
ultralytics = pytest.importorskip("ultralytics", reason="needs ultralytics")

import onnx  # noqa: E402

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.frame import ArrayFrame  # noqa: E402
from elements.inference.letterbox import place  # noqa: E402
from elements.inference.model import DetectionModel  # noqa: E402
from elements.metadata.rotated import rotated_iou  # noqa: E402
from tests.onnx_models import Graph, build, save  # noqa: E402

SIZE = 320
CELLS = 40 * 40 + 20 * 20 + 10 * 10
SOURCES = [(500, 333), (333, 500), (1280, 720)]
CLASSES = 4
CONFIDENCE, IOU = 0.3, 0.5
PUT_ON = {"detect": 0, "obb": 1, "segment": 32, "pose": 51}  # columns


def crowd(task, end2end, source):
    """Raw outputs, batch first: 25 clusters of 8 boxes that overlap more or less, the other rows score low.

    All centres are in the picture: what lies in the padding alone is reported there, with no area left.
    """
    rng = np.random.default_rng(len(task) + end2end)
    rows = 300 if end2end else CELLS
    at = place(source, (SIZE, SIZE), "center")
    low, high = np.array([at.left, at.top]) + 12, np.array([at.left + at.width, at.top + at.height]) - 12
    center = rng.uniform(low, high, (25, 1, 2)) + rng.uniform(-9, 9, (25, 8, 2))
    size = rng.uniform(20, 70, (25, 1, 2)) * rng.uniform(0.8, 1.25, (25, 8, 2))
    boxes = np.full((rows, 4), 20.0)
    boxes[:200] = np.concatenate([center, size], axis=2).reshape(-1, 4)
    best, number = np.zeros(rows), rng.integers(0, CLASSES, rows)
    best[:200] = rng.permutation(np.linspace(0.2, 0.95, 200))  # no two alike
    extras = rng.normal(size=(rows, PUT_ON[task])) / 10
    extras[:, :1] = 1
    if task == "obb":
        extras = rng.uniform(-np.pi / 4, 3 * np.pi / 4, (rows, 1))
    elif task == "pose":
        extras = rng.uniform(0, SIZE, (rows, 17, 3)) / (1, 1, SIZE)
    extras = extras.reshape(rows, -1)
    if end2end:
        order = np.argsort(-best)
        if task != "obb":
            boxes = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)
        output = np.concatenate([boxes, best[:, None], number[:, None], extras], axis=1)[order]
    else:
        scores = best[:, None] * np.eye(CLASSES)[number]
        output = np.concatenate([boxes, scores, extras], axis=1).T
    outputs = {"output0": output[None].astype(np.float32)}
    if task == "segment":
        planes = [cv2.resize(rng.normal(size=(6, 6)), (80, 80), interpolation=cv2.INTER_CUBIC) for _ in range(32)]
        planes[0] += 1.5  # most pixels are inside
        outputs["output1"] = np.stack(planes)[None].astype(np.float32)
    return outputs


def model_of(outputs, task, end2end, path):
    """An ONNX file that gives ``outputs`` whatever it sees, with the metadata of ultralytics' exports."""
    graph = Graph()
    zero = graph.add("Mul", graph.add("ReduceMean", "image", keepdims=0), graph.floats(0.0))
    for name, value in outputs.items():
        graph.nodes.append(onnx.helper.make_node("Add", [graph.constant(value), zero], [name]))
    metadata = {
        "author": "Ultralytics", "task": task, "stride": "32", "imgsz": f"[{SIZE}, {SIZE}]", "batch": "1",
        "names": str({i: f"class {i}" for i in range(CLASSES)}), "end2end": str(end2end), "channels": "3",
        **({"kpt_shape": "[17, 3]"} if task == "pose" else {}),
    }  # fmt: skip
    kinds = dict.fromkeys(outputs, onnx.TensorProto.FLOAT)
    return save(build(graph, [1, 3, SIZE, SIZE], kinds, metadata=metadata), path)


@pytest.fixture(autouse=True)
def no_torchvision(monkeypatch):
    """ultralytics' own suppression serves as well as torchvision's, which is not always built for the torch there."""
    monkeypatch.setattr("ultralytics.nn.autobackend.AutoBackend.warmup", lambda *args, **kwargs: None)


@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize("end2end", [False, True], ids=["dense", "end2end"])
@pytest.mark.parametrize("task", PUT_ON)
def test_the_same_objects(tmp_path, task, end2end, source):
    path = model_of(crowd(task, end2end, source), task, end2end, tmp_path / "m.onnx")
    model = DetectionModel(ModelConfig(path, confidence=CONFIDENCE, iou=IOU))
    model.load()
    picture = np.zeros((source[1], source[0], 3), np.uint8)
    (ours,) = model.infer([ArrayFrame(picture)])
    theirs = ultralytics.YOLO(path, task=task).predict(
        picture, conf=CONFIDENCE, iou=IOU, imgsz=SIZE, max_det=300, retina_masks=True, verbose=False
    )[0]
    found = theirs.obb if task == "obb" else theirs.boxes
    order = np.argsort(-found.conf.numpy(), kind="stable")
    if task == "obb" and not end2end:
        # Its suppression of rotated boxes lets boxes that are gone suppress others (fast NMS): a few less stay.
        stay = np.isin(ours.scores.round(4), found.conf.numpy().round(4))
        assert stay.mean() > 0.9
        ours = ours[stay]
    elif task == "segment":  # objects without a pixel are left out there
        ours = ours[[bool(mask.any()) for mask in ours.masks]]
    assert len(ours) == len(order) > 50
    np.testing.assert_allclose(ours.scores, found.conf.numpy()[order], atol=1e-5)
    np.testing.assert_array_equal(ours.class_ids, found.cls.numpy()[order])
    if task == "obb":
        box = found.xywhr.numpy()[order]
        upright = np.concatenate([box[:, :2] - box[:, 2:4] / 2, box[:, :2] + box[:, 2:4] / 2], axis=1)
        assert rotated_iou(ours.boxes, ours.angles, upright, box[:, 4]).diagonal().min() > 0.97
        return
    np.testing.assert_allclose(ours.boxes, found.xyxy.numpy()[order], atol=0.5)
    if task == "pose":
        np.testing.assert_allclose(ours.keypoints[..., :2], theirs.keypoints.xy.numpy()[order], atol=0.5)
        np.testing.assert_allclose(ours.keypoints[..., 2], theirs.keypoints.conf.numpy()[order], atol=1e-5)
    if task == "segment":
        # Its masks are enlarged from a padding rounded to whole pixels of the prototypes (4 x 4 of the input's).
        wanted = theirs.masks.data.numpy()[order] > 0
        overlap = [(a & b).sum() / (a | b).sum() for a, b in zip(ours.full_masks(*source), wanted, strict=True)]
        assert np.mean(overlap) > 0.95
        assert np.quantile(overlap, 0.05) > 0.9

"""Whole models from file to boxes: every layout, input type and batch, on pictures whose boxes are known."""

import sys

import numpy as np
import onnx
import pytest

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.model import DetectionModel, FrameError, open_model
from elements.inference.own import OwnModel
from tests import onnx_models
from tests.onnx_models import LAYOUTS, finder, save
from tests.pictures import NAMES, SCORE, SIZES, assert_finds, frame_of


def loaded(path, **options):
    options.setdefault("labels", NAMES)
    model = DetectionModel(ModelConfig(path, **options))
    model.load()
    return model


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "free"])
def test_boxes_are_within_a_pixel(tmp_path, layout, fixed):
    path = save(finder(layout, (640, 640) if fixed else None), tmp_path / "m.onnx")
    # Only this one cannot be told here: a real head spreads its boxes over the input, also for noise.
    declared = "yolox-decoded" if layout == "yolox-decoded" else "auto"
    model = loaded(path, input_size=(640, 640), layout=declared)
    for width, height in SIZES:
        assert_finds(model.infer([frame_of(width, height)])[0], width, height)


@pytest.mark.parametrize("letterbox", ["center", "top-left", "stretch"])
@pytest.mark.parametrize("size", SIZES)
def test_every_letterbox(tmp_path, letterbox, size):
    model = loaded(save(finder("yolov8"), tmp_path / "m.onnx"), letterbox=letterbox)
    assert_finds(model.infer([frame_of(*size)])[0], *size)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("layout", ["yolov8", "yolox"])
def test_input_type_is_taken_from_the_model(tmp_path, dtype, channels_last, layout):
    path = save(finder(layout, (320, 320), dtype=dtype, channels_last=channels_last), tmp_path / "m.onnx")
    assert_finds(loaded(path).infer([frame_of(640, 360)])[0], 640, 360)


@pytest.mark.parametrize("layout", ["yolov5", "yolov8", "yolov8-transposed", "yolox-decoded", "end2end"])
@pytest.mark.parametrize("declared", ["auto", "normalized"])
def test_boxes_from_0_to_1(tmp_path, layout, declared):
    path = save(finder(layout, (320, 320), normalized=True), tmp_path / "m.onnx")
    model = loaded(path, layout=layout, coordinates=declared)
    assert_finds(model.infer([frame_of(640, 360)])[0], 640, 360)


@pytest.mark.parametrize(
    ("layout", "size", "rectangular", "expected"),
    [
        ("yolov8", (416, 416), None, (416, 416)),
        ("yolov8", (416, 416), True, (416, 256)),
        ("yolov8", None, None, (416, 256)),
        ("yolov8", None, False, (416, 416)),
        ("yolox", None, None, (416, 416)),
        ("yolox", (416, 416), True, (416, 256)),
    ],
)
def test_the_input_is_as_large_as_authors_make_it_unless_told_otherwise(tmp_path, layout, size, rectangular, expected):
    wanted = None if size else (416, 416)
    path = save(finder(layout, size), tmp_path / "m.onnx")
    model = loaded(path, input_size=wanted, rectangular=rectangular, layout=layout)
    frames = [frame_of(768, 432), frame_of(500, 500)]
    assert [run.size for run in model._plan(frames, model._network)] == [expected, (416, 416)]
    for found, frame in zip(model.infer(frames), frames, strict=True):
        assert_finds(found, frame.width, frame.height)


@pytest.mark.parametrize(
    ("letterbox", "reason"),
    [("stretch", "with letterbox stretch there is no padding"), ("center", "layout end2end does not tell")],
)
def test_rectangles_that_cannot_be(tmp_path, letterbox, reason):
    config = ModelConfig(save(finder("end2end"), tmp_path / "m.onnx"), rectangular=True, letterbox=letterbox)
    with pytest.raises(ModelError, match=f"rectangular: true is set, but {reason}"):
        DetectionModel(config).load()


@pytest.mark.parametrize("batch", [1, 4, None])
@pytest.mark.parametrize("frames", [0, 1, 3, 5])
def test_any_number_of_frames(tmp_path, batch, frames):
    """Partial batches are padded, and frames of different sizes come back in their order."""
    model = loaded(save(finder("yolov8", (320, 320), batch=batch), tmp_path / "m.onnx"))
    sizes = [(640, 360), (360, 640), (500, 500), (640, 360), (640, 480)][:frames]
    found = model.infer([frame_of(*size) for size in sizes])
    assert len(found) == frames
    for detections, size in zip(found, sizes, strict=True):
        assert_finds(detections, *size, tolerance=1.5)
    assert model.stats.frames == frames


def test_together_as_alone(tmp_path):
    model = loaded(save(finder("yolov8", (320, 320), batch=4), tmp_path / "m.onnx"))
    frames = [frame_of(*size) for size in SIZES]
    for together, frame in zip(model.infer(frames), frames, strict=True):
        np.testing.assert_array_equal(together.boxes, model.infer([frame])[0].boxes)


def test_confidence_counts_from_the_threshold_on(tmp_path):
    score = float(np.float32(SCORE))
    model = loaded(save(finder("yolov8", (320, 320)), tmp_path / "m.onnx"), confidence=score)
    assert len(model.infer([frame_of(640, 360)])[0]) == 3
    model.confidence = score + 1e-6
    assert len(model.infer([frame_of(640, 360)])[0]) == 0


def test_classes_are_picked(tmp_path):
    model = loaded(save(finder("yolov8", (320, 320)), tmp_path / "m.onnx"), classes=("blue", 0))
    assert sorted(model.infer([frame_of(640, 360)])[0].class_ids) == [0, 2]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nan_is_counted_and_said_once(tmp_path, layout, caplog):
    model = loaded(save(finder(layout, (320, 320), not_numbers=True), tmp_path / "m.onnx"), layout=layout)
    for _ in range(3):
        assert_finds(model.infer([frame_of(640, 360)])[0], 640, 360)
    assert model.stats.nan == 6
    assert caplog.text.count("not finite numbers") == 1


def test_what_lies_in_the_padding_is_no_object(tmp_path):
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = [10, 2, 50, 10, 0.9, 0]  # 16:9 in 64x64 begins at row 14
    rows[0, 1] = [10, 2, 50, 20, 0.9, 0]
    model = loaded(save(onnx_models.constant(rows), tmp_path / "m.onnx"), labels=None)
    assert model.infer([ArrayFrame(np.zeros((36, 64, 3), np.uint8))])[0].boxes.tolist() == [[10, 0, 50, 6]]


def test_names_of_ultralytics(tmp_path):
    metadata = {"names": "{0: 'r', 1: 'g', 2: 'b'}", "stride": "32", "task": "detect", "imgsz": "[320, 320]"}
    model = loaded(save(finder("yolov8-transposed", None, metadata=metadata), tmp_path / "m.onnx"), labels=None)
    assert model.names == ("r", "g", "b")
    assert model._network.size == (320, 320)


def test_the_failing_frame_is_named(tmp_path):
    class Broken(ArrayFrame):
        def resized(self, width, height, out=None):
            raise ValueError("no pixels")

    model = loaded(save(finder("yolov8", (320, 320)), tmp_path / "m.onnx"))
    frames = [frame_of(64, 64), Broken(np.zeros((9, 16, 3), np.uint8), source_id=3, frame_number=17)]
    with pytest.raises(FrameError, match="ValueError: no pixels") as raised:
        model.infer(frames)
    assert (raised.value.frame.source_id, raised.value.frame.frame_number) == (3, 17)
    assert isinstance(raised.value.__cause__, ValueError)


# --- what is refused --------------------------------------------------------------------------------------------------


def with_input(shape):
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["image"], ["output"])],
        "test",
        [onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, None)],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)


REFUSED = {
    "unknown layout": (onnx_models.unknown_layout(), {}, ["output (1, 7, 7, 30)", "'layout'"]),
    "label count": (finder("yolov8", (64, 64)), {"labels": ("a", "b")}, ["(1, 7, 84)", "3 classes", "2 class names"]),
    "name count": (
        finder("yolov8", (64, 64), metadata={"names": "['a']", "task": "detect", "stride": "32"}),
        {},
        ["3 classes", "1 class names", "'labels' with 3 names"],
    ),
    "no prototypes": (
        finder(size=(64, 64), metadata={"task": "segment"}),
        {},
        ["output (1, 7, 84)", "for task segment", "yolov8 (B, 4+C+M, A) and (B, M, h, w)"],
    ),
    "no prototypes, declared": (
        finder(size=(64, 64)),
        {"task": "segment", "layout": "yolov8"},
        ["layout yolov8 for task segment needs (B, 4+C+M, A) and (B, M, h, w)", "output (1, 7, 84)"],
    ),
    "unknown task": (finder(size=(64, 64), metadata={"task": "depth"}), {}, ["says task 'depth'", "only detect, obb,"]),
    "two tasks": (
        finder(size=(64, 64), metadata={"task": "detect"}),
        {"task": "obb"},
        ["task: obb is declared", "says 'detect'", "leave 'task' out"],
    ),
    "layout of another task": (
        finder(size=(64, 64)),
        {"task": "pose", "layout": "yolox"},
        ["layout yolox is for task detect, but the task is pose"],
    ),
    "key points": (
        finder(size=(64, 64), metadata={"task": "pose", "kpt_shape": "[17, 9]"}),
        {},
        ["'kpt_shape' is not [points, 2 or 3]"],
    ),
    "no probabilities": (
        onnx_models.constant(np.full((1, 84, 7), 5.0)),
        {"layout": "yolov8-transposed"},
        ["from 5 to 5"],
    ),
    "rank": (with_input([1, 3, 64]), {}, ["3 dimensions", "[1, 3, 64]", "(batch, 3, height, width)"]),
    "grey": (with_input([1, 1, 64, 64]), {}, ["3 colours", "[1, 1, 64, 64]"]),
    "open channels": (with_input([1, "c", 64, 64]), {}, ["3 colours"]),
    "fixed size": (finder(size=(64, 64)), {"input_size": (128, 128)}, ["128x128 is set", "fixed to 64x64"]),
    "range": (finder(size=(64, 64), dtype="uint8"), {"scale": "0-1"}, ["uint8", "leave scale out"]),
    "class": (finder(size=(64, 64)), {"classes": ("gren",), "labels": NAMES}, ["'gren'", "did you mean 'green'"]),
    "device": (finder(size=(64, 64)), {"device": "gpu"}, ["'gpu' is not auto, cpu, cuda"]),
    "precision": (finder(size=(64, 64)), {"precision": "fp16"}, ["exported in fp32", "export it in fp16"]),
    "compile": (finder(size=(64, 64)), {"compile": True}, ["is for engine torch, and engine onnx runs it"]),
    "batch": (finder(size=(64, 64), batch=4), {"batch_size": 8}, ["batch-size 8", "at most 4 frames"]),
    "no cuda": (finder(size=(64, 64)), {"device": "cuda:0"}, ["cuda:0", "onnxruntime-gpu", "cpu or auto"]),
}


@pytest.mark.parametrize(("model", "options", "parts"), REFUSED.values(), ids=REFUSED)
def test_refused_at_start(tmp_path, model, options, parts):
    path = save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError) as raised:
        DetectionModel(ModelConfig(path, **options)).load()
    text = str(raised.value)
    assert text.startswith(f"model '{path}': ")
    for part in parts:
        assert part in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("data", "message"),
    [(None, "there is no such file"), (b"", "ONNX"), (b"hello " * 100, "complete ONNX file"), ("cut", "ONNX")],
)
def test_files_that_are_no_models(tmp_path, data, message):
    path = tmp_path / "m.onnx"
    if data == "cut":
        data = finder("yolov8", (64, 64)).SerializeToString()[:2000]
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ModelError, match=message):
        DetectionModel(ModelConfig(str(path))).load()


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ModelError, match="is a folder"):
        DetectionModel(ModelConfig(str(tmp_path))).load()


def test_weights_in_a_missing_file(tmp_path):
    model = onnx_models.constant(np.zeros((1, 300, 6), np.float32))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelError, match="weights lie in a file of their own"):
        DetectionModel(ModelConfig(str(tmp_path / "m.onnx"))).load()


def test_two_inputs(tmp_path):
    model = with_input([1, 3, 64, 64])
    model.graph.input.append(onnx.helper.make_tensor_value_info("scale", onnx.TensorProto.FLOAT, [1, 2]))
    with pytest.raises(ModelError, match=r"has 2 inputs \(image tensor\(float\) \[1, 3, 64, 64\]; scale"):
        DetectionModel(ModelConfig(save(model, tmp_path / "m.onnx"))).load()


def test_a_graph_bound_to_its_size(tmp_path):
    """A reshape with constants: the size cannot be freed."""
    model = finder("yolov8", (64, 64))
    model.graph.node[-1].input[0] = "reshaped"
    shape = onnx.numpy_helper.from_array(np.array([1, 7, 84], np.int64), "fixed_shape")
    model.graph.initializer.append(shape)
    last = model.graph.node[-2].output[0]
    model.graph.node.insert(
        len(model.graph.node) - 1, onnx.helper.make_node("Reshape", [last, "fixed_shape"], ["reshaped"])
    )
    path = save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"rectangular: true is set, but .+: leave it out"):
        DetectionModel(ModelConfig(path, labels=["r", "g", "b"], rectangular=True)).load()
    assert len(loaded(path).infer([frame_of(640, 360)])[0]) == 3


def test_a_box_turned_inside_out_takes_nothing_with_it(tmp_path):
    """Heads that give sizes without bounds may give one below 0, which OpenCV finds to overlap with everything."""
    output = np.zeros((1, 7, 84), np.float32)
    output[0, :5, 0] = 10, 10, -20, 30, 0.9
    output[0, :5, 1] = 50, 50, 20, 20, 0.8
    model = loaded(save(onnx_models.constant(output), tmp_path / "m.onnx"), layout="yolov8")
    (found,) = model.infer([frame_of(64, 64)])
    assert found.boxes.tolist() == [[40, 40, 60, 60]]


@pytest.mark.parametrize("box", [(30, 5, 10, 6), (30, 5, np.inf, 6)], ids=["in the padding", "not finite"])
@pytest.mark.parametrize("coordinates", ["pixel", "normalized"])
def test_key_points_of_nobody(tmp_path, box, coordinates):
    """The only object is left out: it lies in the padding, or is no number."""
    output = np.zeros((1, 11, 84), np.float32)
    output[0, :5, 0] = *box, 0.9
    output[0, :4] /= 64 if coordinates == "normalized" else 1
    metadata = {"task": "pose", "kpt_shape": "[2, 3]", "names": "{0: 'a'}", "stride": "32"}
    network = onnx_models.constant(output)
    onnx.helper.set_model_props(network, metadata)
    model = loaded(save(network, tmp_path / "m.onnx"), labels=None, coordinates=coordinates)
    (found,) = model.infer([frame_of(64, 32)])
    assert (len(found), found.keypoints.shape) == (0, (0, 2, 3))


# --- configuration ----------------------------------------------------------------------------------------------------


def test_config_from_plain_values():
    config = ModelConfig.from_mapping(
        {
            "model": "m.onnx",
            "input-size": "640x384",
            "classes": "person, 2",
            "batch_size": 4,
            "pad": None,
            "rectangular": "true",
        }
    )
    assert config == ModelConfig(
        "m.onnx", input_size=(640, 384), classes=("person", "2"), batch_size=4, rectangular=True
    )
    assert ModelConfig.from_mapping({"path": "m.onnx", "input_size": 640}).input_size == (640, 640)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "m", "confidense": 1}, "unknown key 'confidense': did you mean 'confidence'"),
        ({}, "no model is given"),
        ({"path": "m", "confidence": 1.5}, "confidence: 1.5 is not between 0 and 1"),
        ({"path": "m", "letterbox": "middle"}, "letterbox: 'middle' is not one of auto, center, top-left, stretch"),
        ({"path": "m", "pad": 300}, "pad: 300"),
        ({"path": "m", "rectangular": "yes"}, "rectangular: 'yes' is neither true nor false"),
        ({"path": "m", "input_size": "big"}, "'big' is not a size"),
        ({"path": "m", "input_size": "16x16"}, "below 32x32"),
    ],
)
def test_config_is_checked(options, message):
    with pytest.raises(ModelError, match=message):
        ModelConfig.from_mapping(options)


def test_open_model_by_suffix_and_class(tmp_path):
    assert isinstance(open_model(ModelConfig("m.onnx")), DetectionModel)
    own = open_model(ModelConfig("elements.inference.model:DetectionModel"))
    assert isinstance(own, OwnModel)
    assert isinstance(open_model(ModelConfig("m.pt2")), DetectionModel)
    with pytest.raises(ModelError, match=r"no engine runs '\.txt': use one of \.onnx, .*\.pt, .*a class of your own"):
        open_model(ModelConfig("m.txt"))
    with pytest.raises(ModelError, match=r"there is no module 'nowhere' .*PYTHONPATH"):
        open_model(ModelConfig("nowhere:Model"))
    with pytest.raises(ModelError, match=r"has no class 'DetectionModl': did you mean 'DetectionModel'\?"):
        open_model(ModelConfig("elements.inference.model:DetectionModl"))
    with pytest.raises(ModelError, match=r"the class lacks load, infer, close\(\)"):
        open_model(ModelConfig("elements.inference.config:ModelConfig"))


def test_infer_before_load():
    with pytest.raises(RuntimeError, match=r"call load\(\) first"):
        DetectionModel(ModelConfig("m.onnx")).infer([])


def test_openvino_that_is_not_installed_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModelError, match=r"OpenVINO is not installed: pip install openvino, or gstorch\[openvino\]"):
        loaded(save(finder("yolov8"), tmp_path / "m.onnx"), engine="openvino")


def test_a_file_that_declares_a_free_batch_and_takes_one_is_given_one(tmp_path):
    """Small inputs share a run; that such a file fails on two shows at the start, not on the first two objects."""
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("GlobalAveragePool", ["images"], ["mean"]),
            onnx.helper.make_node("Reshape", ["mean", "shape"], ["flat"]),
            onnx.helper.make_node("Softmax", ["flat"], ["scores"], axis=1),
        ],
        "classifier",
        [onnx.helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["n", 3, 64, 64])],
        [onnx.helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, ["n", 3])],
        [onnx.helper.make_tensor("shape", onnx.TensorProto.INT64, [2], [1, 3])],
    )
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    model = loaded(str(path), task="classify", labels=NAMES, confidence=0.0)
    found = model.infer([frame_of(640, 360)] * 3)
    assert [len(detections) for detections in found] == [1, 1, 1]

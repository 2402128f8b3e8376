"""The demo detector's file, its training pictures and its loss."""

import ast
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tools.detector.evaluate import FIRST_TEST_SEED, Sample, evaluate
from tools.detector.pictures import Letterbox, canvas, letterbox, truth_rows
from tools.scenes import CLASSES, Scene, TruthObject

MODEL = Path(__file__).resolve().parents[2] / "configs" / "models" / "street.onnx"


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])


def test_file_describes_itself_as_yolov8_exports_do(session: onnxruntime.InferenceSession) -> None:
    metadata = session.get_modelmeta().custom_metadata_map
    assert ast.literal_eval(metadata["names"]) == dict(enumerate(CLASSES))
    assert (metadata["task"], metadata["stride"], metadata["license"]) == ("detect", "32", "Apache-2.0")
    assert session.get_outputs()[0].shape[1] == 4 + len(CLASSES)
    assert MODEL.stat().st_size < 6 * 2**20
    (output,) = session.run(None, {"images": np.zeros((2, 3, 64, 96), np.float32)})
    assert output.shape == (2, 8, 8 * 12 + 4 * 6 + 2 * 3)


@pytest.mark.parametrize("size", [(640, 360), (360, 640)])
def test_finds_most_of_an_unseen_scene(session: onnxruntime.InferenceSession, size: tuple[int, int]) -> None:
    scene = Scene(FIRST_TEST_SEED + 1, *size, 25)
    pictures = []
    for index in (0, 200, 400):
        picture, objects = scene.render(index)
        pictures.append(Sample(*letterbox(picture, *canvas(*size)), tuple(objects)))
    precision = evaluate(lambda images: session.run(None, {"images": images})[0], pictures)
    assert precision["mean"] > 0.8


def test_training_goes_on_from_the_file(session: onnxruntime.InferenceSession) -> None:
    torch = pytest.importorskip("torch", reason="training needs torch; the demo does not")
    from tools.detector.network import Detector, Exported
    from tools.detector.resume import load_exported

    detector = Detector(len(CLASSES))
    load_exported(detector, MODEL)
    images = np.random.default_rng(0).random((1, 3, 96, 160), np.float32)
    with torch.no_grad():
        found = Exported(detector).eval()(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(found, session.run(None, {"images": images})[0], atol=2e-3)


def test_letterbox_centres_on_grey() -> None:
    boxed, placed = letterbox(np.zeros((720, 1280, 3), np.uint8), 640, 384)
    assert placed == Letterbox(0.5, 0, 12)
    assert boxed.shape == (384, 640, 3)
    assert (boxed[:12] == 114).all()
    assert (boxed[12:372] == 0).all()
    assert (boxed[372:] == 114).all()


def test_truth_rows_move_with_the_letterbox() -> None:
    items = [TruthObject(1, "car", (100, 200, 300, 400), 1.0, False), TruthObject(2, "person", (0, 0, 8, 17), 1, False)]
    rows = truth_rows(items, Letterbox(0.5, 0, 12))
    assert rows[0].tolist() == [50, 112, 150, 212, CLASSES.index("car"), 0]
    assert rows[1, 5] == 1, "8.5 pixels high: too small to ask for"
    assert (rows[2:, 4] == -1).all()


def test_each_cell_serves_the_object_it_lies_in() -> None:
    torch = pytest.importorskip("torch", reason="training needs torch; the demo does not")
    from tools.detector.loss import assign
    from tools.detector.network import cells

    centres, strides = cells(64, 64, torch.device("cpu"))
    truth = torch.tensor([[[0.0, 0.0, 32.0, 64.0], [32.0, 0.0, 64.0, 64.0], [0.0, 0.0, 0.0, 0.0]]])
    labels, owed = torch.tensor([[0, 1, 0]]), torch.tensor([[True, True, False]])
    boxes = torch.where(centres[:, :1] < 32, truth[0, 0], truth[0, 1])[None]
    index, target = assign(torch.full((1, len(centres), 2), 0.5), boxes, centres, strides, truth, labels, owed)
    serving = index[0] >= 0
    assert int(serving.sum()) == 20, "ten cells for each of the two objects"
    assert (index[0][serving] == (centres[serving, 0] >= 32).long()).all()
    assert target[0][serving].min() > 0.99

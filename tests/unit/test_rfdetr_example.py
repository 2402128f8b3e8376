"""configs/examples/rfdetr_model.py against a double of the rfdetr package, which gives supervision's type."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import supervision as sv

from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.model import open_model

EXAMPLES = Path(__file__).parents[2] / "configs" / "examples"


class RFDETRSegNano:
    """Finds one object per picture: its left half, of class 3."""

    made = None
    options = None

    def __init__(self, **options):
        RFDETRSegNano.made = options

    def inference(self, **options):
        RFDETRSegNano.options = options

    def predict(self, images, threshold, include_source_image):
        assert (threshold, include_source_image) == (0.25, False)
        assert all(image.dtype == np.uint8 for image in images)
        return [self.look(*image.shape[:2]) for image in images]

    @staticmethod
    def look(height, width):
        mask = np.zeros((1, height, width), bool)
        mask[:, :, : width // 2] = True
        box = np.array([[0, 0, width // 2, height]], np.float32)
        return sv.Detections(xyxy=box, mask=mask, confidence=np.array([0.75]), class_id=np.array([3]))


@pytest.fixture(autouse=True)
def package(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    classes = types.SimpleNamespace(COCO_CLASSES={1: "person", 3: "car"})
    monkeypatch.setitem(sys.modules, "rfdetr", types.SimpleNamespace(RFDETRSegNano=RFDETRSegNano))
    monkeypatch.setitem(sys.modules, "rfdetr.assets", types.SimpleNamespace(coco_classes=classes))
    monkeypatch.setitem(sys.modules, "rfdetr.assets.coco_classes", classes)


def opened(**params):
    return open_model(ModelConfig("rfdetr_model:RfDetr", params=params))


def test_pictures_in_detections_out() -> None:
    model = opened(variant="SegNano", threshold=0.25, resolution=384, half=True)
    model.load()
    assert RFDETRSegNano.made == {"resolution": 384}
    assert RFDETRSegNano.options == {"compile": False, "dtype": "float16"}
    assert model.names == ("0", "person", "2", "car")
    first, second = model.infer(
        [ArrayFrame(np.zeros((40, 60, 3), np.uint8)), ArrayFrame(np.zeros((10, 8, 3), np.uint8))]
    )
    assert first.boxes.tolist() == [[0, 0, 30, 40]]
    assert (first.scores.tolist(), first.class_ids.tolist()) == ([0.75], [3])
    assert first.masks[0].shape == (40, 30)
    assert first.masks[0].all()
    assert second.boxes.tolist() == [[0, 0, 4, 10]]
    model.close()


def test_own_labels_and_a_checkpoint() -> None:
    model = opened(variant="SegNano", weights="best.pth", labels=["plate"])
    model.load()
    assert RFDETRSegNano.made == {"pretrain_weights": "best.pth"}
    assert model.names == ("plate",)


def test_without_the_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rfdetr", None)
    with pytest.raises(ModelError, match="RF-DETR is not installed: pip install rfdetr"):
        opened().load()


def test_a_variant_that_there_is_not() -> None:
    with pytest.raises(ModelError, match=r"params: variant: input should be 'Nano', .* not this text"):
        opened(variant="Tiny")

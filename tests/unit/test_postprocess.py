"""Functions of one's own behind a network."""

from __future__ import annotations

import numpy as np
import pytest

from elements.inference.answer import ask
from elements.inference.config import ModelConfig
from elements.inference.errors import FrameError, ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.letterbox import place
from elements.inference.model import open_model
from elements.inference.postprocess import NetworkFrame
from elements.metadata.detections import Detections
from tests.onnx_models import NAMES, constant, finder, save
from tests.pictures import picture

BOX = {0: (50.0, 40.0, 200.0, 120.0)}
calls: list[tuple[dict[str, tuple[int, ...]], list[int]]] = []


def spy(outputs, frames, *, names, config, class_id: int = 0):
    """Notes what it is given; one object per frame."""
    calls.append(({name: value.shape for name, value in outputs.items()}, [f.frame.frame_number for f in frames]))
    assert (names, config.postprocess) == (("a", "b"), f"{__name__}:spy")
    return [Detections(f.to_source([[0, 0, 32, 32]]), np.ones(1), np.array([class_id])) for f in frames]


def forgets_one(outputs, frames):
    return [Detections()] * (len(frames) - 1)


def fails(outputs, frames):
    raise KeyError("boxes")


def half_broken(outputs, frames):
    boxes = np.array([[1, 1, 9, 9], [np.nan, 1, 9, 9]], np.float32)
    return [Detections(boxes, np.ones(2, np.float32), np.array([5, 0])) for _ in frames]


def opened(path, function, **more):
    model = open_model(ModelConfig(path, postprocess=f"{__name__}:{function}", **more))
    model.load()
    return model


@pytest.fixture
def network(tmp_path):
    """Any batch of 64x64, labels a and b."""
    return save(constant(np.zeros((1, 7, 3), np.float32), ("batch", 3, 64, 64)), tmp_path / "net.onnx")


def frames(*sizes):
    return [ArrayFrame(np.zeros((h, w, 3), np.uint8), 0, n) for n, (w, h) in enumerate(sizes)]


def test_the_function_gets_outputs_frames_and_params(network) -> None:
    calls.clear()
    model = opened(network, "spy", labels=("a", "b"), params={"class_id": 1})
    found = model.infer(frames((128, 64), (64, 64), (64, 128)))
    assert calls == [({"output": (1, 7, 3)}, [n]) for n in range(3)]
    assert [one.class_ids.tolist() for one in found] == [[1]] * 3
    # 128x64 lies in the middle of 64x64 at half size: rows 16 to 48
    assert found[0].boxes.tolist() == [[0, 0, 64, 32]]
    assert found[1].boxes.tolist() == [[0, 0, 32, 32]]
    assert model.names == ("a", "b")
    model.close()


def test_broken_rows_are_counted_and_unnamed_classes_told_once(network, caplog) -> None:
    model = opened(network, "half_broken", labels=("a", "b"))
    for _ in range(2):
        found, broken = ask(model, frames((64, 64), (64, 64)), network)
        assert [len(one) for one in found] == [1, 1]
        assert broken == 2
    assert caplog.messages == [
        f"model '{network}': postprocess() returned class 5, but it has 2 names (0 to 1): such objects are called by "
        "their number; this is said once"
    ]


def test_a_network_of_a_fixed_batch(tmp_path) -> None:
    calls.clear()
    path = save(constant(np.zeros((2, 7, 3), np.float32), (2, 3, 64, 64)), tmp_path / "two.onnx")
    found = opened(path, "spy", labels=("a", "b")).infer(frames(*[(64, 64)] * 3))
    assert calls == [({"output": (2, 7, 3)}, [0, 1]), ({"output": (2, 7, 3)}, [2])]
    assert len(found) == 3


def test_a_layout_read_by_hand_gives_what_the_decoder_gives(tmp_path) -> None:
    path = save(finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))}), tmp_path / "finder.onnx")
    frame = ArrayFrame(picture(640, 360, BOX, soft=2))
    by_hand = open_model(ModelConfig(path, postprocess="tests.own_models:read"))
    decoded = open_model(ModelConfig(path, input_size=(320, 320)))
    for model in (by_hand, decoded):
        model.load()
    (mine,), (theirs,) = by_hand.infer([frame]), decoded.infer([frame])
    assert abs(mine.boxes - theirs.boxes).max() < 1e-3
    assert abs(mine.boxes - BOX[0]).max() < 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            "forgets_one",
            r"forgets_one: TypeError: postprocess\(\) must return a list of one Detections per frame \(1\)",
        ),
        ("fails", "fails: KeyError: 'boxes'"),
    ],
)
def test_a_function_that_fails_is_named_with_the_frame(network, function, text) -> None:
    model = opened(network, function)
    with pytest.raises(FrameError, match=text) as caught:
        model.infer(frames((64, 64)))
    assert caught.value.frame.frame_number == 0


@pytest.mark.parametrize(
    ("function", "params", "text"),
    [
        ("reed", {}, "module .*test_postprocess. has no function 'reed'"),
        ("calls", {}, "it cannot be called"),
        ("spy", {"classid": 1}, r"unknown parameter 'classid' \(did you mean 'class_id'\?\)"),
    ],
)
def test_what_is_refused(network, function, params, text) -> None:
    with pytest.raises(ModelError, match=text) as caught:
        opened(network, function, params=params)
    assert str(caught.value).startswith(f"model '{network}': postprocess '{__name__}:{function}': ")


def test_points_come_back_through_the_letterbox() -> None:
    frame = NetworkFrame(ArrayFrame(np.zeros((90, 160, 3), np.uint8)), (64, 64), place((160, 90), (64, 64), "center"))
    assert frame.points_to_source([[0, 14], [64, 50]]).tolist() == [[0, 0], [160, 90]]

"""Classes of one's own as models."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from elements.inference.answer import checked_answer
from elements.inference.config import ModelConfig
from elements.inference.errors import ModelError
from elements.inference.frame import ArrayFrame
from elements.inference.own import OwnModel, Pace, open_own
from elements.metadata.detections import Detections

SECOND = 1_000_000_000


class Counter:
    """Counts the frames of each source in its state, and gives the count as class number."""

    names = tuple("abcdefgh")

    def __init__(self, config: ModelConfig, step: int = 1) -> None:
        self.config, self.step = config, step

    def load(self):
        self.loaded = True

    def infer(self, frames):
        self.frames = frames
        return [self.count(frame.state) for frame in frames]

    def count(self, state):
        state["seen"] = state.get("seen", 0) + self.step
        return Detections(np.zeros((1, 4)), np.ones(1), np.array([state["seen"]]))

    def close(self):
        self.loaded = False


class Torch(Counter):
    frames = "torch"


def model(model_class=Counter, **params):
    return OwnModel(ModelConfig("pkg:Class", params=params), model_class)


def frame(source_id=0, pts=0, **more):
    return ArrayFrame(np.full((4, 6, 3), 7, np.uint8), source_id, 5, pts, **more)


def counts(model, *frames):
    return [int(found.class_ids[0]) for found in model.infer(frames)]


class Alone(Counter):
    def __init__(self) -> None: ...


@pytest.mark.parametrize(
    "option", [{"compile": True}, {"rectangular": False}, {"labels": ("a",)}, {"input_size": (64, 64)}, {"pad": 0}]
)
def test_options_that_a_class_does_not_see_are_refused(option) -> None:
    config = ModelConfig("pkg:Class", **option)
    assert OwnModel(config, Counter).config == config
    with pytest.raises(ModelError, match=f"^{next(iter(option))} is for model files: leave it out, or give the class"):
        OwnModel(config, Alone)


@pytest.mark.parametrize(
    ("names", "known"),
    [(["a", "b"], ("a", "b")), ({1: "b", 0: "a"}, ("a", "b")), (None, ()), (np.array(["a", "b"]), ("a", "b"))],
)
def test_names_as_they_are_declared(names, known) -> None:
    own = model(type("Named", (Counter,), {"names": names}))
    own.load()
    assert own.names == known


@pytest.mark.parametrize("names", ["plate", {1: "b"}, [1, 2], 7, {"a": 0}])
def test_what_are_no_names(names) -> None:
    with pytest.raises(ModelError, match=r"^names = .*: the names of the classes are needed, as in \('plate',\)"):
        model(type("Named", (Counter,), {"names": names})).load()


def test_options_of_the_stage_need_nobody_who_sees_them() -> None:
    options = {"confidence": 0.1, "iou": 0.2, "classes": ("a",), "device": "cpu", "batch_size": 4}
    assert OwnModel(ModelConfig("pkg:Class", **options), Alone)


def test_a_gpu_is_not_asked_for_in_vain() -> None:
    with pytest.raises(ModelError, match="device is for model files: leave it out, or give the class a parameter"):
        OwnModel(ModelConfig("pkg:Class", device="cuda"), Alone)


def test_the_class_is_made_with_config_and_params() -> None:
    made = model(step=3)
    made.load()
    assert (made.step, made.loaded, made.names[:2], made.config.path) == (3, True, ("a", "b"), "pkg:Class")
    made.confidence = 0.7
    assert (made.confidence, made._model.confidence) == (0.7, 0.7)
    made.close()
    assert made.loaded is False


def test_what_a_frame_shows() -> None:
    made = model()
    taken = datetime(2026, 11, 30, 12, tzinfo=UTC)
    made.infer([frame(2, 3 * SECOND // 2, source="door", utc_ns=int(taken.timestamp()) * SECOND), frame(3)])
    first, second = made.frames
    assert (first.width, first.height, first.source, first.source_id, first.frame_number) == (6, 4, "door", 2, 5)
    assert (first.pts, first.stream_time_s, first.time_utc) == (1_500_000_000, 1.5, taken)
    assert (second.source, second.time_utc) == ("3", None)
    assert first.array.shape == (4, 6, 3)
    assert first.array.dtype == np.uint8
    assert first.array is first.array
    assert (first.array == 7).all()
    assert first.resized(3, 2).shape == (2, 3, 3)


def test_a_picture_cannot_be_painted_on() -> None:
    made, given = model(), frame()
    made.infer([given])
    with pytest.raises(ValueError, match="read-only"):
        made.frames[0].array[:] = 0
    assert (given.pixels == 7).all()


def test_state_is_kept_per_source_and_dropped_at_its_end() -> None:
    made = model()
    assert counts(made, frame(0), frame(1), frame(0, 1)) == [1, 1, 2]
    assert counts(made, frame(0, 2), frame(1, 2)) == [3, 2]
    made.forget(0)
    assert counts(made, frame(0, 3), frame(1, 3)) == [1, 3]


def test_state_is_dropped_when_stream_time_steps_back() -> None:
    made = model()
    assert counts(made, frame(0, SECOND), frame(1, SECOND)) == [1, 1]
    assert counts(made, frame(0, 0), frame(1, 2 * SECOND)) == [1, 2]


class Once(Counter):
    failed = False

    def infer(self, frames):
        found = super().infer(frames)
        if not Once.failed:
            Once.failed = True
            raise ValueError("not yet")
        return found


def test_frames_that_are_given_again_are_no_step_back() -> None:
    made = model(Once)
    with pytest.raises(ValueError, match="not yet"):
        made.infer([frame(0, SECOND), frame(0, 2 * SECOND)])
    assert counts(made, frame(0, SECOND)) == [3]  # the failed call has counted two


def test_tensors_are_copies() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    made, given = model(Torch), frame()
    made.load()
    made.infer([given])
    tensor = made.frames[0].tensor
    assert (tuple(tensor.shape), tensor.dtype) == ((4, 6, 3), torch.uint8)
    tensor.zero_()
    assert (given.pixels == 7).all()


def test_torch_is_asked_for_and_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match="PyTorch is not installed"):
        model(Torch).load()


class Half:
    def infer(self, frames): ...


class OddFrames(Counter):
    frames = "cupy"


@pytest.mark.parametrize(
    ("model_class", "params", "text"),
    [
        (Half, {}, "the class lacks load, close()"),
        (OddFrames, {}, "frames = 'cupy': a class declares 'numpy' or 'torch'"),
        (Counter, {"stop": 1}, "params: stop: unknown parameter 'stop' (did you mean 'step'?)"),
    ],
)
def test_what_is_refused(model_class, params, text) -> None:
    with pytest.raises(ModelError) as caught:
        model(model_class, **params)
    assert str(caught.value) == text


def test_an_error_names_the_model() -> None:
    with pytest.raises(ModelError, match=r"^model 'tests.own_models:God': .* did you mean 'Good'\?"):
        open_own(ModelConfig("tests.own_models:God"), lambda config: None)


def test_a_slow_model_is_told_of_once(caplog) -> None:
    caplog.set_level(logging.WARNING, "gstorch")
    pace = Pace("m:Slow")
    for second in range(30):  # two frames, 0.99 of each second inside
        pace.add(2, float(second), second + 0.99)
    (record,) = caplog.records
    assert "model 'm:Slow' holds the pipeline back: infer() takes 495 ms per frame (2.0 frames/s)" in record.message
    assert "99% of the last 11 s" in record.message


def test_a_model_that_waits_for_frames_is_not_slow(caplog) -> None:
    pace = Pace("m:Fast")
    for second in range(30):
        pace.add(2, float(second), second + 0.9)
    assert not caplog.records


def test_boxes_without_area_are_left_out_and_wrong_ones_told_once(caplog) -> None:
    boxes = np.array([[10, 20, 30, 40], [10, 20, 10, 40], [200, 100, 50, 40]])
    found = Detections(boxes, np.array([0.9, 0.8, 0.7]), np.array([0, 1, 2]), angles=np.array([0.1, 0.2, 0.3]))
    for _ in range(2):
        (flat, kept), broken = checked_answer([found[1:2], found], 2, "shop.models:Turned")
        assert (len(flat), kept.class_ids.tolist(), kept.angles.round(1).tolist(), broken) == (0, [0], [0.1], 0)
    told = "model 'shop.models:Turned': infer() returns boxes whose right or lower side comes before"
    assert caplog.text.count(told) == 1


def with_class(number: int) -> Detections:
    return Detections(np.array([[10, 20, 30, 40]]), np.array([0.9]), np.array([number]))


def test_a_class_beyond_the_names_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    for number in (1, 2, 3):
        checked_answer([with_class(0), with_class(number)], 2, "shop.models:Named", names=("car", "bus"))
    assert caplog.messages == [
        "model 'shop.models:Named': infer() returned class 2, but it has 2 names (0 to 1): such objects are called by "
        "their number; this is said once"
    ]
    checked_answer([with_class(7)], 1, "shop.models:Nameless")
    assert len(caplog.messages) == 1


def test_a_class_that_metadata_cannot_hold_is_refused() -> None:
    assert checked_answer([with_class(2**31 - 1)], 1, "m")[1] == 0
    with pytest.raises(ValueError, match="class_ids above 2147483647, which metadata cannot hold: 2147483648"):
        checked_answer([with_class(2**31)], 1, "m")


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ("red", r"infer\(\) returned 'red' as attributes\[0\]: a mapping is needed, \{'colour': 'red'\}"),
        (None, r"returned None as attributes\[0\]: a mapping is needed"),
        ({5: "red"}, r"returned \{5: 'red'\} as attributes\[0\]: a mapping is needed"),
        ({"colour": {"name": "red"}}, r"as attributes\[0\]\['colour'\]: a label is needed, or a mapping with 'label'"),
        ({"colour": {"label": "red", "class_id": -1}}, r"the numbers 'class_id' and 'probability'"),
        ({"colour": {"label": "red", "class_id": "1"}}, r"the numbers 'class_id' and 'probability'"),
        ({"colour": {"label": "red", "probability": float("nan")}}, r"the numbers 'class_id' and 'probability'"),
    ],
)
def test_attributes_that_are_no_labels(attributes, problem) -> None:
    """They are found with the model's answer, where source and frame are known, not when metadata is written."""
    answer = Detections(np.array([[0, 0, 9, 9]]), np.ones(1), np.zeros(1), attributes=[attributes])
    with pytest.raises((TypeError, ValueError), match=problem):
        checked_answer([answer], 1, "m")


def test_attributes_that_are_labels() -> None:
    given = {
        "colour": "red",
        "plate": 7,
        "kind": {"label": "van", "class_id": np.int64(4), "probability": np.float32(0.5)},
    }
    answer = Detections(np.array([[0, 0, 9, 9]]), np.ones(1), np.zeros(1), attributes=[given])
    assert checked_answer([answer], 1, "m") == ([answer], 0)

"""What `elements.metadata.edit` does, on the portable runtime and on the real libnvds_meta.so alike."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from elements.metadata import edit
from elements.metadata.classified import Label, labels_of
from elements.metadata.edit import (
    attach_json,
    classify,
    classify_all,
    editor_of,
    json_meta_type,
    mask_of,
    object_columns,
    read_json,
    remove_objects,
    set_mask,
)
from elements.metadata.nvds import layout
from elements.metadata.nvds.handles import struct_of
from elements.metadata.object_fields import ObjectColumns
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.pyservicemaker.metadata import BatchMetadata
from tests.contract.nvds_double.native import SKIP

VALUES = [{"a": [1, 2.5, None]}, "ü 行", [], "nul \0 inside", "x" * 5000]


class Portable:
    """A batch of one frame with objects of classes 0, 1 and 2."""

    def __init__(self) -> None:
        self._batch = BatchMeta(4, [FrameMeta()])
        _fill(self.handle())

    def handle(self) -> Any:
        return BatchMetadata(self._batch)

    def copied(self) -> Any:
        """A handle of a copy, as behind a tee."""
        return BatchMetadata(self._batch.clone())


class DeepStream:
    """The same in a buffer with DeepStream's metadata."""

    def __init__(self) -> None:
        from tests.contract.nvds_double.batches import FrameSpec, Surfaces

        self._surfaces = Surfaces([FrameSpec(np.zeros((8, 8, 3), np.uint8), (8, 8))])
        self.buffer = self._surfaces.buffer(max_frames=4)
        _fill(self.handle())

    def handle(self) -> Any:
        from tests.contract.nvds_double import Buffer

        return Buffer(self.buffer).batch_meta

    def copied(self) -> Any:
        self.buffer = self.buffer.copy_deep()  # the original is freed with all that it holds
        return self.handle()

    def walk(self) -> dict[str, Any]:
        from tests.contract.nvds_double.walk import walk

        return walk(self.buffer)


def _fill(batch_meta: Any) -> None:
    for frame in batch_meta.frame_items:
        for class_id in range(3):
            made = batch_meta.acquire_object_meta()
            made.class_id, made.confidence, made.label = class_id, class_id / 4, f"class {class_id}"
            frame.append(made)


needs_library = pytest.mark.skipif(bool(SKIP), reason=SKIP)


@pytest.fixture(params=[Portable, pytest.param(DeepStream, marks=needs_library)])
def runtime(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture
def deepstream() -> DeepStream:
    if SKIP:
        pytest.skip(SKIP)
    return DeepStream()


def first(items: Any) -> Any:
    for item in items:
        return item  # valid while the iteration stands here
    raise AssertionError("there is none")


def classes(batch_meta: Any) -> list[int]:
    return sorted(item.class_id for item in first(batch_meta.frame_items).object_items)


def targets(batch_meta: Any) -> list[Any]:
    """The batch, its frame, and one of its objects."""
    frame = first(batch_meta.frame_items)
    return [batch_meta, frame, first(frame.object_items)]


# --- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2])
def test_json_is_read_back_at_each_level(runtime: Any, level: int) -> None:
    target = targets(runtime.handle())[level]
    for number, value in enumerate(VALUES):
        attach_json(target, f"value {number}", value)
    assert [read_json(target, f"value {n}") for n in range(len(VALUES))] == VALUES
    assert read_json(target, "another") is None


@pytest.mark.parametrize("level", [0, 1, 2])
def test_json_takes_the_place_of_what_was_there(runtime: Any, level: int) -> None:
    target = targets(runtime.handle())[level]
    attach_json(target, "other", "stays")
    attach_json(target, "note", 1)
    attach_json(target, "note", 2)
    assert (read_json(target, "note"), read_json(target, "other")) == (2, "stays")
    assert len(list(target.user_meta_items(json_meta_type(target, "note")))) == 1


def test_json_goes_with_a_copy_of_the_buffer(runtime: Any) -> None:
    for target, value in zip(targets(runtime.handle()), VALUES, strict=False):
        attach_json(target, "note", value)
    copied = runtime.copied()
    assert read_json(copied, "note") == VALUES[0]
    frame = first(copied.frame_items)
    assert read_json(frame, "note") == VALUES[1]
    assert [read_json(item, "note") for item in frame.object_items if read_json(item, "note") is not None] == [
        VALUES[2]
    ]


def test_operators_find_json_through_pyservicemaker(runtime: Any) -> None:
    frame = targets(runtime.handle())[1]
    attach_json(frame, "note", {"a": 1})
    assert json_meta_type(frame, "note") >= 8194
    assert json_meta_type(frame, "note") != json_meta_type(frame, "other")
    assert [meta.get_user_data_json() for meta in frame.user_meta_items(json_meta_type(frame, "note"))] == [{"a": 1}]


def test_what_is_no_json_is_refused(runtime: Any) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        attach_json(runtime.handle(), "note", object())


def test_the_payload_is_a_c_string_with_callbacks(deepstream: DeepStream) -> None:
    attach_json(deepstream.handle(), "note", {"ü": 1})
    ((meta_type, text),) = deepstream.walk()["user"]
    assert meta_type == json_meta_type(deepstream.handle(), "note")
    assert json.loads(text) == {"ü": 1}


# --- classifiers ------------------------------------------------------------------------------------------------------


def test_labels_of_classifiers(runtime: Any) -> None:
    item = targets(runtime.handle())[2]
    classify(item, "colour", "red", class_id=3, probability=0.75, component_id=9)
    classify(item, "kind", "行" * 100)
    seen = {}
    for meta in item.classifier_items:
        info = meta.get_label_info(0)
        seen[meta.classifier_type] = (meta.unique_component_id, meta.n_labels, info.label, info.class_id, info.prob)
    assert seen == {"colour": (9, 1, "red", 3, 0.75), "kind": (0, 1, "行" * 100, 0, 1.0)}


@pytest.mark.parametrize(("text", "kept"), [("red\0 car", "red"), ("a\ud800b", "a?b"), ("", "")])
def test_labels_are_what_c_strings_can_hold(runtime: Any, text: str, kept: str) -> None:
    item = targets(runtime.handle())[2]
    classify(item, f"colour{text}", text)
    ((kind, label),) = [(meta.classifier_type, meta.get_label_info(0).label) for meta in item.classifier_items]
    assert (kind, label) == (f"colour{kept}", kept)


def test_many_objects_are_labelled_at_once(runtime: Any) -> None:
    """Those at places 0 and 2 of ``object_items``, of which the newest comes first."""
    frame = first(runtime.handle().frame_items)
    classify_all(frame, "colour", {0: ("red", 3, 0.5), 2: ("x" * 200, 4, 0.25)}, 9)
    frame = first(runtime.handle().frame_items)
    found = [(item.class_id, item.unique_component_id, labels_of(item)) for item in frame.object_items]
    assert found == [
        (2, 0, {"colour": [Label("red", 3, 0.5)]}),
        (1, 0, {}),
        (0, 0, {"colour": [Label("x" * 200, 4, 0.25)]}),
    ]


@pytest.mark.parametrize("editable", [True, False])
def test_objects_of_a_component_are_read_in_columns(runtime: Any, editable: bool, monkeypatch: Any) -> None:
    frame = first(runtime.handle().frame_items)
    for item in frame.object_items:
        rect = item.rect_params
        rect.left, rect.top, rect.width, rect.height, rect.rotation_angle = 1.5, 2, 30 + item.class_id, 4, 22.5
        item.unique_component_id, item.object_id = item.class_id % 2, 2**64 - 1 - item.class_id
    if not editable:
        monkeypatch.setattr(edit, "find_editor", lambda handle: None)
    columns = object_columns(frame, 0)
    assert columns.places == [0, 2]
    assert columns.class_ids == [2, 0]
    assert columns.object_ids == [2**64 - 3, 2**64 - 1]
    assert columns.labels == ["class 2", "class 0"]
    assert columns.rects == [(1.5, 2, 32, 4, 22.5), (1.5, 2, 30, 4, 22.5)]
    assert object_columns(frame, 7) == ObjectColumns([], [], [], [], [])


@pytest.mark.parametrize("length", [0, 126, 127, 128, 300])
def test_labels_of_any_length_survive_a_copy(runtime: Any, length: int) -> None:
    classify(targets(runtime.handle())[2], "kind", "x" * length)
    labels = [
        meta.get_label_info(0).label
        for item in first(runtime.copied().frame_items).object_items
        for meta in item.classifier_items
    ]
    assert labels == ["x" * length]


# --- masks ------------------------------------------------------------------------------------------------------------


def test_masks_are_copied_and_replaced(runtime: Any) -> None:
    item = targets(runtime.handle())[2]
    mask = np.arange(6, dtype=np.float32).reshape(2, 3)
    set_mask(item, np.zeros((50, 60)))
    set_mask(item, mask[:, ::-1], threshold=0.25)
    mask[:] = -1
    assert item.mask_params.threshold == 0.25
    assert item.mask_params.mask_array.tolist() == [[2, 1, 0], [5, 4, 3]]


def test_masks_survive_a_copy(deepstream: DeepStream) -> None:
    set_mask(targets(deepstream.handle())[2], np.full((4, 5), 0.5))
    deepstream.copied()
    (mask,) = [item["mask"] for item in deepstream.walk()["frames"][0]["objects"] if item["mask"]]
    assert mask[1].tolist() == [[0.5] * 5] * 4


@pytest.mark.parametrize("shape", [(0, 3), (4,), (2, 2, 1)])
def test_misshapen_masks_are_refused(runtime: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a mask has shape"):
        set_mask(targets(runtime.handle())[2], np.zeros(shape))


# --- removal and marks ------------------------------------------------------------------------------------------------


def test_objects_are_removed(runtime: Any) -> None:
    batch_meta = runtime.handle()
    frame = first(batch_meta.frame_items)
    assert remove_objects(frame, lambda item: item.confidence < 0.3) == 2
    assert classes(batch_meta) == [2]
    assert remove_objects(frame, lambda item: False) == 0
    assert remove_objects(frame, lambda item: True) == 1
    assert classes(batch_meta) == []
    frame.append(batch_meta.acquire_object_meta())
    assert classes(batch_meta) == [0]


def test_removed_objects_give_back_what_they_own(deepstream: DeepStream) -> None:
    batch_meta = deepstream.handle()
    frame = first(batch_meta.frame_items)
    for item in frame.object_items:
        attach_json(item, "note", 1)
        classify(item, "kind", "x" * 200)
        set_mask(item, np.ones((3, 3)))
        item.text_params.display_text = "text"
    assert remove_objects(frame, lambda item: item.class_id != 1) == 2
    walked = deepstream.walk()
    assert [item["class_id"] for item in walked["frames"][0]["objects"]] == [1]
    assert walked["pools"] == {"frame": 1, "object": 1, "classifier": 1, "display": 0, "user": 1, "label": 1}
    fresh = batch_meta.acquire_object_meta()  # the pool's elements come back empty
    assert (fresh.label, fresh.text_params.display_text, fresh.mask_params.mask_array.size) == ("", "", 0)


def test_parents_that_go_are_forgotten(deepstream: DeepStream) -> None:
    from tests.contract.nvds_double.native import u64

    objects = {item["class_id"]: item["at"] for item in deepstream.walk()["frames"][0]["objects"]}
    u64(objects[2] + 40).value = objects[0]
    u64(objects[1] + 40).value = objects[2]
    remove_objects(first(deepstream.handle().frame_items), lambda item: item.class_id == 0)
    parents = {item["class_id"]: item["parent"] for item in deepstream.walk()["frames"][0]["objects"]}
    assert parents == {1: objects[2], 2: 0}


def test_inference_is_marked(deepstream: DeepStream) -> None:
    frame = first(deepstream.handle().frame_items)
    editor_of(frame).mark_inferred(frame)
    assert deepstream.walk()["frames"][0]["infer_done"] == 1


WRONG = {
    "mask": lambda handle: set_mask(handle, np.ones((2, 2), np.float32)),
    "no mask": mask_of,
    "label": lambda handle: classify(handle, "colour", "red"),
    "lineage": edit.lineage_of,
    "detector's box": edit.detector_box,
}


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG)
def test_what_is_no_object_is_refused(runtime: Any, use: Any, level: int) -> None:
    """In DeepStream's memory a batch that was taken for an object would be written over."""
    with pytest.raises((TypeError, AttributeError)):
        use(targets(runtime.handle())[level])


@pytest.mark.parametrize("level", [0, 2])
def test_what_is_no_frame_is_refused(runtime: Any, level: int) -> None:
    for use in (lambda handle: remove_objects(handle, lambda item: True), lambda handle: classify_all(handle, "a", {})):
        with pytest.raises((TypeError, AttributeError)):
            use(targets(runtime.handle())[level])


def test_null_handles_raise(deepstream: DeepStream) -> None:
    from tests.contract.nvds_double.metadata import batch_handle

    attach_json(deepstream.handle(), "note", 1)
    with pytest.raises(RuntimeError, match="BatchMetadata: null handle"):
        attach_json(batch_handle(None), "note", 1)
    frame = first(deepstream.handle().frame_items)
    for item in frame.object_items:
        gone = item
    with pytest.raises(RuntimeError, match="ObjectMetadata: null handle"):
        read_json(gone, "note")


# --- objects in objects -----------------------------------------------------------------------------------------------


def parent_of(item: Any) -> Any:
    """The struct of the object in which this one was found."""
    if hasattr(item, "_meta"):
        return item._meta.parent
    return layout.ObjectMeta.from_address(struct_of(item)).parent


def test_an_object_knows_in_which_one_it_was_found(runtime: Any) -> None:
    batch_meta = runtime.handle()
    frame = first(batch_meta.frame_items)
    outer = first(frame.object_items)
    inner = batch_meta.acquire_object_meta()
    frame.append(inner)
    assert not parent_of(inner)
    editor_of(inner).set_parent(inner, outer)
    assert parent_of(inner) == (outer._meta if hasattr(outer, "_meta") else struct_of(outer))

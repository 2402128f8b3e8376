"""The metadata classes over plain batches."""

import pytest

from elements.portable.meta import (
    UNTRACKED_OBJECT_ID,
    BatchMeta,
    ClassifierMeta,
    FrameMeta,
    LabelInfo,
    ObjectMeta,
    UserMeta,
)
from elements.portable.pyservicemaker import osd
from elements.portable.pyservicemaker._pydeepstream import BatchMetadata, FrameMetadata, ObjectMetadata


@pytest.fixture
def meta() -> BatchMeta:
    """Two frames; the first has objects of classes 0, 1 and 2, in the order of their making."""
    objects = [ObjectMeta(class_id=i, label=f"class {i}") for i in range(3)]
    return BatchMeta(2, [FrameMeta(pad_index=0, frame_number=7, objects=objects), FrameMeta(pad_index=1, source_id=1)])


@pytest.fixture
def batch(meta: BatchMeta) -> BatchMetadata:
    return BatchMetadata(meta)


def first_frame(batch: BatchMetadata) -> FrameMetadata:
    for frame in batch.frame_items:
        return frame
    raise AssertionError


# --- iteration --------------------------------------------------------------------------------------------------------


def test_frames_in_order_objects_newest_first(batch: BatchMetadata) -> None:
    assert batch.n_frames == 2
    seen = [(frame.pad_index, [item.class_id for item in frame.object_items]) for frame in batch.frame_items]
    assert seen == [(0, [2, 1, 0]), (1, [])]


def test_trap_1_items_are_stale_after_the_iteration_moves_on(batch: BatchMetadata) -> None:
    frame = first_frame(batch)
    kept = list(frame.object_items)
    assert len(kept) == 3
    for item in kept:
        with pytest.raises(RuntimeError, match="stale"):
            _ = item.class_id
    with pytest.raises(RuntimeError, match="stale"):
        kept[0].class_id = 4


def test_trap_1_after_break_the_loop_variable_is_valid(batch: BatchMetadata) -> None:
    for item in first_frame(batch).object_items:
        if item.class_id == 1:
            break
    assert item.label == "class 1"


def test_trap_1_values_taken_in_a_comprehension_are_fine(batch: BatchMetadata) -> None:
    assert [item.label for item in first_frame(batch).object_items] == ["class 2", "class 1", "class 0"]


def test_trap_2_items_are_single_pass_without_length_and_start_anew(batch: BatchMetadata) -> None:
    frame = first_frame(batch)
    items = frame.object_items
    with pytest.raises(TypeError):
        len(items)
    assert len(list(items)) == 3
    assert list(items) == []
    assert len(list(frame.object_items)) == 3


def test_objects_appended_while_iterating_are_not_visited(batch: BatchMetadata, meta: BatchMeta) -> None:
    frame = first_frame(batch)
    for _ in frame.object_items:
        frame.append(batch.acquire_object_meta())
    assert len(meta.frames[0].objects) == 6


# --- objects ----------------------------------------------------------------------------------------------------------


def test_an_appended_object_is_in_the_batch(batch: BatchMetadata, meta: BatchMeta) -> None:
    made = batch.acquire_object_meta()
    assert made.object_id == UNTRACKED_OBJECT_ID
    made.class_id, made.confidence, made.unique_component_id, made.label = 5, 0.75, 1, "van"
    rect = made.rect_params
    rect.left, rect.top, rect.width, rect.height = 10, 20, 30, 40
    first_frame(batch).append(made)
    stored = meta.frames[0].objects[-1]
    assert (stored.class_id, stored.confidence, stored.label) == (5, 0.75, "van")
    assert stored.detector_box == (10, 20, 30, 40)


def test_a_tracked_object_gets_no_detector_box(batch: BatchMetadata, meta: BatchMeta) -> None:
    made = batch.acquire_object_meta()
    made.object_id = 3
    made.rect_params.width = 30
    first_frame(batch).append(made)
    assert meta.frames[0].objects[-1].detector_box == (0, 0, 0, 0)


def test_rect_params_are_live_and_assigning_copies(batch: BatchMetadata) -> None:
    made, mine = batch.acquire_object_meta(), osd.Rect()
    mine.left = 4
    made.rect_params = mine
    mine.left = 9
    assert made.rect_params.left == 4
    made.rect_params.left = 6
    assert made.rect_params.left == 6
    with pytest.raises(TypeError):
        made.rect_params = (1, 2, 3, 4)


def test_appending_the_same_object_twice_raises(batch: BatchMetadata) -> None:
    frame, made = first_frame(batch), batch.acquire_object_meta()
    frame.append(made)
    with pytest.raises(RuntimeError, match="appended before"):
        frame.append(made)
    for item in frame.object_items:
        with pytest.raises(RuntimeError, match="appended before"):
            frame.append(item)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("class_id", -1),
        ("class_id", 1.0),
        ("object_id", -1),
        ("object_id", 2**64),
        ("confidence", "high"),
        ("label", 3),
        ("nv_bbox_info", (1, 2, 3, 4)),
        ("text_params", osd.Text()),
    ],
)
def test_ill_typed_values_are_refused(batch: BatchMetadata, attribute: str, value: object) -> None:
    with pytest.raises(TypeError):
        setattr(batch.acquire_object_meta(), attribute, value)


def test_object_id_has_64_bits(batch: BatchMetadata) -> None:
    made = batch.acquire_object_meta()
    made.object_id = 2**64 - 2
    assert made.object_id == 2**64 - 2


def test_trap_9_labels_are_cut_at_127_bytes_on_a_character(batch: BatchMetadata) -> None:
    made = batch.acquire_object_meta()
    made.label = "x" * 200
    assert made.label == "x" * 127
    made.label = "é" * 100  # two bytes each
    assert made.label == "é" * 63
    made.label = "é" * 63
    assert made.label == "é" * 63


def test_nv_bbox_info_is_the_tracker_box(batch: BatchMetadata) -> None:
    made = batch.acquire_object_meta()
    made.nv_bbox_info = {"left": 1, "top": 2, "width": 3, "height": 4}
    assert made.nv_bbox_info == {"left": 1.0, "top": 2.0, "width": 3.0, "height": 4.0}


def test_classifiers_newest_first_and_empty_labels_are_skipped() -> None:
    classifiers = [
        ClassifierMeta(2, "colour", [LabelInfo("red")]),
        ClassifierMeta(3, "make", [LabelInfo(), LabelInfo("acme", 4)]),
    ]
    item = ObjectMetadata(ObjectMeta(classifiers=classifiers))
    assert [(c.unique_component_id, c.classifier_type, c.n_labels) for c in item.classifier_items] == [
        (3, "make", 2),
        (2, "colour", 1),
    ]
    for classifier in item.classifier_items:
        assert classifier.get_n_label(0) == "acme"
        assert classifier.get_label_info(1).class_id == 4
        with pytest.raises(RuntimeError, match="null"):
            _ = classifier.get_label_info(9).label
        break


# --- frames, display and user metadata --------------------------------------------------------------------------------


def test_trap_5_frame_fields_are_read_only(batch: BatchMetadata) -> None:
    frame = first_frame(batch)
    assert (frame.frame_number, frame.buffer_pts) == (7, 2**64 - 1)
    with pytest.raises(AttributeError):
        frame.frame_number = 8


def test_trap_4_what_append_refuses(batch: BatchMetadata) -> None:
    frame = first_frame(batch)
    for wrong in (batch.acquire_user_meta(), batch.acquire_frame_meta(), None):
        with pytest.raises(TypeError, match=r"Invalid type for FrameMetadata\.append"):
            frame.append(wrong)
    with pytest.raises(TypeError, match=r"Invalid type for BatchMetadata\.append"):
        batch.append(batch.acquire_user_meta())
    with pytest.raises(TypeError):
        batch.acquire_object_meta().append(batch.acquire_display_meta())


def test_display_meta_takes_16_of_each_and_copies(
    batch: BatchMetadata, meta: BatchMeta, caplog: pytest.LogCaptureFixture
) -> None:
    display, text = batch.acquire_display_meta(), osd.Text()
    text.display_text = "first"
    for _ in range(18):
        display.add_text(text)
    text.display_text = "changed"
    display.add_line(osd.Line())
    counts = (display.n_labels, display.n_rects, display.n_lines, display.n_arrows, display.n_circles)
    assert counts == (16, 0, 1, 0, 0)
    assert caplog.text.count("is ignored") <= 1
    first_frame(batch).append(display)
    assert meta.frames[0].displays[0].texts[0].display_text == "first"
    with pytest.raises(RuntimeError, match="appended before"):
        first_frame(batch).append(display)


def test_trap_8_text_and_text_params_are_unrelated(batch: BatchMetadata) -> None:
    with pytest.raises(TypeError):
        batch.acquire_display_meta().add_text(osd.TextParams())


def test_user_data_goes_round_as_json(batch: BatchMetadata) -> None:
    made, item = batch.acquire_user_meta(), batch.acquire_object_meta()
    assert made
    assert made.get_user_data_json() is None
    made.set_user_data_json({"plate": ["AB", 12]}, 8193)
    item.append(made)
    assert [user.get_user_data_json() for user in item.user_meta_items(8193)] == [{"plate": ["AB", 12]}]
    assert list(item.user_meta_items(8194)) == []


def test_trap_7_foreign_user_data_is_not_read_as_json() -> None:
    item = ObjectMetadata(ObjectMeta(user=[UserMeta(8193, object())]))
    for user in item.user_meta_items(8193):
        with pytest.raises(RuntimeError, match="does not hold JSON"):
            user.get_user_data_json()


# --- null handles -----------------------------------------------------------------------------------------------------


def test_trap_10_a_null_batch_is_empty_and_everything_else_raises() -> None:
    null = BatchMetadata(None)
    assert null.n_frames == 0
    assert list(null.frame_items) == []
    assert list(null.preprocess_batch_items) == []
    assert null.extract(4) == []
    for call in (null.acquire_object_meta, null.acquire_display_meta, null.acquire_user_meta, null.acquire_frame_meta):
        with pytest.raises(RuntimeError, match="null"):
            call()
    with pytest.raises(RuntimeError, match="null"):
        null.user_meta_items(12)


def test_classes_have_no_constructor_for_users() -> None:
    with pytest.raises(TypeError):
        ObjectMetadata()


# --- extract ----------------------------------------------------------------------------------------------------------


def test_trap_11_extract_needs_a_length_and_there_is_no_max_frames(batch: BatchMetadata) -> None:
    with pytest.raises(TypeError):
        batch.extract()
    assert not hasattr(batch, "max_frames")


def test_extract_is_plain_data_by_pad_index(meta: BatchMeta) -> None:
    rect = meta.frames[0].objects[2].rect
    rect.left, rect.top, rect.width, rect.height = 1.9, 2, 10.9, 5
    absent, second = meta.frames[1], meta.frames[0]
    second.pad_index, absent.pad_index = 1, 9
    nothing, extracted = BatchMetadata(meta).extract(2)
    assert nothing is None
    assert extracted["bboxes"][0] == [1, 2, 11, 7]
    assert extracted["labels"] == [["class 2"], ["class 1"], ["class 0"]]
    assert extracted["objects"] == [-1, -1, -1]
    assert extracted["timestamp"] == -1

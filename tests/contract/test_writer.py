"""What the writer leaves on each object, read back through pyservicemaker's API."""

import math

import numpy as np
import pytest

from elements.metadata.detections import Detections
from elements.metadata.placement import Placement
from elements.metadata.writer import short_label, write_detections
from elements.portable.meta import BatchMeta, FrameMeta, LabelInfo
from elements.portable.pyservicemaker import osd
from elements.portable.pyservicemaker.metadata import BatchMetadata

IDENTITY = Placement.stretched((640, 360), (640, 360))


def written(detections, placement=IDENTITY, names=("car", "bus")):
    """The plain objects after writing, in the order of the detections."""
    frame = FrameMeta()
    batch_meta = BatchMetadata(BatchMeta(frames=[frame]))
    for frame_meta in batch_meta.frame_items:
        write_detections(batch_meta, frame_meta, detections, placement, names, 7, osd)
    return frame.objects


def one(box=(100, 50, 140, 80), class_id=1, **more):
    return Detections(np.array([box]), np.array([0.75]), np.array([class_id]), **more)


def test_every_field():
    (written_object,) = written(one())
    assert (written_object.class_id, written_object.label, written_object.unique_component_id) == (1, "bus", 7)
    assert written_object.confidence == 0.75
    assert written_object.object_id == 2**64 - 1
    rect, text = written_object.rect, written_object.text
    assert (rect.left, rect.top, rect.width, rect.height) == (100, 50, 40, 30)
    assert written_object.detector_box == (100, 50, 40, 30)
    assert (rect.border_width, rect.border_color, rect.has_bg_color) == (3, osd.Color(1, 0, 0, 1), 0)
    assert rect.rotation_angle == 0
    assert (text.display_text, text.x_offset, text.y_offset) == ("bus", 100, 40)
    assert (text.font_params.name, text.font_params.size) == ("Serif", 11)
    assert text.font_params.color == osd.Color(1, 1, 1, 1)
    assert (text.set_bg_clr, text.text_bg_clr) == (1, osd.Color(0, 0, 0, 1))


def test_boxes_go_where_the_mux_put_the_picture():
    (landscape,) = written(one((0, 0, 1920, 1080)), Placement.padded((1920, 1080), (640, 640)))
    assert (landscape.rect.left, landscape.rect.top) == (0, 140)
    assert (landscape.rect.width, landscape.rect.height) == (640, 360)


def test_text_never_leaves_the_top():
    (high,) = written(one((0, 3, 10, 20)))
    assert (high.text.x_offset, high.text.y_offset) == (0, 0)


def test_angles_become_degrees():
    (turned,) = written(one(angles=np.array([math.pi / 6], np.float32)))
    assert turned.rect.rotation_angle == pytest.approx(30, abs=1e-4)


def test_objects_do_not_share_structs():
    boxes = np.array([[0, 0, 10, 10], [20, 20, 40, 50]])
    first, second = written(Detections(boxes, np.array([0.9, 0.8]), np.array([0, 1])))
    assert (first.rect.left, second.rect.left) == (0, 20)
    assert (first.text.display_text, second.text.display_text) == ("car", "bus")
    assert first.rect is not second.rect


def test_a_class_without_a_name():
    assert written(one(class_id=5))[0].label == "5"


def test_given_track_ids_are_kept():
    boxes = np.array([[0, 0, 10, 10], [20, 20, 40, 50]])
    tracked = Detections(boxes, np.ones(2), np.zeros(2), track_ids=np.array([4, -1]))
    assert [o.object_id for o in written(tracked)] == [4, 2**64 - 1]


def test_masks_are_cut_to_the_boxes():
    mask = np.zeros((1, 360, 640), bool)
    mask[0, 50:60] = True
    (masked,) = written(one(masks=mask))
    assert masked.mask.mask_array.shape == (30, 40)
    assert masked.mask.mask_array.sum() == 400
    assert masked.mask.threshold == 0.5


def test_attributes_become_classifier_labels():
    attributes = [{"colour": "red", "kind": {"label": "van", "class_id": 4, "probability": 0.5}}]
    (classified,) = written(one(attributes=attributes))
    labels = [(c.classifier_type, c.unique_component_id, c.labels[0]) for c in classified.classifiers]
    assert labels == [("colour", 7, LabelInfo("red", 0, 1.0)), ("kind", 7, LabelInfo("van", 4, 0.5))]


def test_nothing_found():
    assert written(Detections()) == []


@pytest.mark.parametrize(
    ("label", "length"), [("a" * 127, 127), ("a" * 128, 127), ("ß" * 64, 126), ("a" + "日" * 60, 127), ("", 0)]
)
def test_labels_are_cut_between_characters(label, length):
    cut = short_label(label)
    assert len(cut.encode()) == length
    assert label.startswith(cut)


@pytest.mark.parametrize(("label", "kept"), [("red\0 car", "red"), ("a\ud800b", "a?b")])
def test_labels_are_what_c_strings_can_hold(label, kept):
    assert short_label(label) == kept


def test_text_of_a_box_that_is_far_away():
    (far,) = written(one((1e10, 1e10, 2e10, 2e10)))
    assert (far.text.x_offset, far.text.y_offset) == (2**32 - 1, 2**32 - 1)

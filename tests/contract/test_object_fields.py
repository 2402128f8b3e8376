"""Rows of objects: the short way on the portable runtime leaves what pyservicemaker's API would."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from elements.metadata import writer
from elements.metadata.detections import Detections
from elements.metadata.edit import attach_json, classify, find_editor, object_ids, read_objects, set_mask
from elements.metadata.look import look_of
from elements.metadata.object_fields import ObjectFields
from elements.metadata.placement import Placement, all_to_source
from elements.portable.meta import UNTRACKED_OBJECT_ID, BatchMeta, FrameMeta
from elements.portable.pyservicemaker import osd
from elements.portable.pyservicemaker.metadata import BatchMetadata
from tests.contract.test_event_objects import MUX, NAMES, SOURCE, DeepStream, Portable
from tests.contract.test_event_objects import runtime as runtime  # the fixture, for both runtimes


def rows_of(runtime: Portable | DeepStream) -> list[tuple[ObjectFields, bool]]:
    (found,) = [[(row, more) for _, row, more in read_objects(frame)] for frame in runtime.handle().frame_items]
    return found


def write(runtime: Portable | DeepStream, detections: Detections) -> None:
    batch_meta = runtime.handle()
    for frame in batch_meta.frame_items:
        place = Placement.stretched(MUX, MUX)
        writer.write_detections(batch_meta, frame, detections, place, NAMES, 7, runtime.osd)


def test_the_short_way_writes_what_the_api_writes():
    detections = Detections(
        np.array([[1.5, 2.25, 30.75, 40.5], [-5, -6, 700, 10], [100, 3, 110, 50]]),
        np.array([0.9, 0.5, 0.25]),
        np.array([0, 1, 9]),
        angles=np.array([0, 0.5, -1]),
        track_ids=np.array([3, -1, 2**40]),
    )
    rows = writer._rows(detections, Placement.padded(SOURCE, MUX), ("car", "ü" * 100), 20, None)
    short, long = BatchMeta(frames=[FrameMeta()]), BatchMeta(frames=[FrameMeta()])
    for frame in BatchMetadata(short).frame_items:
        find_editor(frame).append_objects(frame, rows, 7, look_of(osd))
    handle = BatchMetadata(long)
    for frame in handle.frame_items:
        writer._append_objects(handle, frame, rows, 7, look_of(osd), find_editor(frame))
    assert len(rows) == 3
    assert short.frames[0].objects == long.frames[0].objects


def test_rows_are_read_newest_first(runtime):
    write(
        runtime,
        Detections(np.array([[10, 20, 40, 60], [1, 2, 3, 4]]), [0.75, 0.5], [1, 0], track_ids=np.array([5, -1])),
    )
    (second, _), (first, more) = rows_of(runtime)
    assert first == (1, 5, 0.75, "bus", 10, 20, 30, 40, 0)
    assert (second.object_id, second.label, second[4:]) == (UNTRACKED_OBJECT_ID, "car", (1, 2, 2, 2, 0))
    assert not more


def test_a_turned_box(runtime):
    write(runtime, Detections(np.array([[10, 20, 40, 60]]), [0.75], [1], angles=np.array([math.pi / 6])))
    ((row, _),) = rows_of(runtime)
    assert row.degrees == pytest.approx(30, abs=1e-4)


@pytest.mark.parametrize("what", ["label", "json", "mask", "parent"])
def test_what_is_attached_is_told(runtime, what):
    write(runtime, Detections(np.array([[10, 20, 40, 60], [12, 22, 20, 30]]), [0.75, 0.5], [1, 0]))
    for frame in runtime.handle().frame_items:
        newest = next(iter(frame.object_items))
        if what == "label":
            classify(newest, "colour", "red")
        elif what == "json":
            attach_json(newest, "plate", "AB 1")
        elif what == "mask":
            set_mask(newest, np.ones((2, 2), np.float32))
        else:
            find_editor(newest).set_parent(newest, newest)
    assert [more for _, more in rows_of(runtime)] == [True, False]


def test_a_rectangle_that_was_changed_is_where_the_object_is(runtime):
    write(runtime, Detections(np.array([[10, 20, 40, 60]]), [0.75], [1]))
    for frame in runtime.handle().frame_items:
        for item in frame.object_items:
            rect = item.rect_params
            rect.left = 15.0
            item.rect_params = rect
    ((row, _),) = rows_of(runtime)
    assert row[4:8] == (15, 20, 30, 40)


def test_what_was_changed_of_an_object_is_read(runtime):
    write(runtime, Detections(np.array([[10, 20, 40, 60]]), [0.75], [1]))
    for frame in runtime.handle().frame_items:
        for item in frame.object_items:
            item.class_id, item.object_id, item.confidence, item.label = 5, 77, 0.5, "van"
    assert [row for row, _ in rows_of(runtime)] == [(5, 77, 0.5, "van", 10, 20, 30, 40, 0)]


def test_ids_are_read_newest_first(runtime):
    boxes = np.array([[10, 20, 40, 60], [1, 2, 3, 4]])
    write(runtime, Detections(boxes, [0.75, 0.5], [1, 0], track_ids=np.array([5, -1])))
    assert [object_ids(frame) for frame in runtime.handle().frame_items] == [[UNTRACKED_OBJECT_ID, 5]]


def test_text_is_made_of_what_was_found_not_of_what_became_of_it():
    runtime = Portable()
    write(runtime, Detections(np.array([[10, 50, 40, 60]]), [0.75], [1]))
    for frame in runtime.handle().frame_items:
        for item in frame.object_items:
            item.label = "van"
            item.rect_params.left = 99.0
            text = item.text_params
            assert (text.display_text, text.x_offset, text.y_offset) == ("bus", 10, 40)


def test_boxes_of_several_frames_at_once():
    places = [Placement.padded((500, 301), (640, 640)), Placement.stretched((64, 48), (1280, 720))]
    boxes = np.array([[1, 2, 3, 4], [100.5, 200.25, 300, 400], [0, 0, 1280, 720]], np.float32)
    together = all_to_source(boxes, places, [2, 1])
    assert np.array_equal(together[:2], places[0].to_source(boxes[:2]))
    assert together[2].tolist() == [0, 0, 64, 48]


def test_events_of_a_batch_are_those_of_its_frames(pyservicemaker):
    make = importlib.import_module("pipelines.operators.frame_event").EventMaker
    sizes = [(64, 48), (500, 301), (64, 48)]
    frames = [
        FrameMeta(source_id=i, source_width=w, source_height=h, pipeline_width=640, pipeline_height=640, buffer_pts=0)
        for i, (w, h) in enumerate(sizes)
    ]
    batch_meta = BatchMetadata(BatchMeta(frames=frames))
    for frame, count in zip(batch_meta.frame_items, (2, 0, 1), strict=True):
        boxes = np.array([[5, 6, 900, 30]] * count, np.float32).reshape(-1, 4)
        found = Detections(boxes, [0.5] * count, [0] * count, angles=np.full(count, 0.25 * (count - 1)))
        writer.write_detections(batch_meta, frame, found, Placement.padded(sizes[frame.source_id], MUX), NAMES, 7, osd)
    maker = make("test", ["a", "b", "c"], True)
    together = maker.events_of(batch_meta.frame_items)
    assert together == [maker.event_of(frame) for frame in batch_meta.frame_items]
    assert [len(event["objects"]) for event in together] == [2, 0, 1]
    assert together[2]["objects"][0]["bbox"] == [5.0, 6.0, 64.0, 30.0]
    assert "corners" in together[0]["objects"][1]

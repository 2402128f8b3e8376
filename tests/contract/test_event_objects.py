"""From Detections through metadata to event entries, through a mux of another size, on both runtimes."""

from __future__ import annotations

import importlib
import io
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from elements.metadata.detections import Detections
from elements.metadata.edit import attach_json, classify, remove_objects
from elements.metadata.placement import Placement
from elements.metadata.rle import decode
from elements.metadata.rotated import corners
from elements.metadata.writer import write_detections
from tests.contract.nvds_double.native import SKIP

SCHEMA = json.loads((Path(__file__).parents[2] / "configs/schema/event.schema.json").read_text())
SOURCE, MUX = (500, 301), (640, 640)
NAMES = ("car", "bus")
BOX = (100.3, 40.6, 221.7, 140.2)


class Portable:
    """A padded batch of one frame on the portable runtime."""

    def __init__(self) -> None:
        from elements.portable.meta import BatchMeta, FrameMeta
        from elements.portable.pyservicemaker import osd

        sizes = {"source_width": SOURCE[0], "source_height": SOURCE[1]}
        frame = FrameMeta(**sizes, pipeline_width=MUX[0], pipeline_height=MUX[1], buffer_pts=40_000_000)
        self._batch, self.osd = BatchMeta(frames=[frame]), osd

    def handle(self) -> Any:
        from elements.portable.pyservicemaker.metadata import BatchMetadata

        return BatchMetadata(self._batch)

    def copy(self) -> None:
        self._batch = self._batch.clone()


class DeepStream:
    """The same in a buffer with DeepStream's metadata."""

    def __init__(self) -> None:
        from tests.contract.nvds_double import osd
        from tests.contract.nvds_double.batches import FrameSpec, Surfaces

        self._surfaces = Surfaces([FrameSpec(np.zeros((MUX[1], MUX[0], 3), np.uint8), SOURCE, number=1)])
        self._buffer, self.osd = self._surfaces.buffer(), osd

    def handle(self) -> Any:
        from tests.contract.nvds_double import Buffer

        return Buffer(self._buffer).batch_meta

    def copy(self) -> None:
        self._buffer = self._buffer.copy_deep()


@pytest.fixture(params=[Portable, pytest.param(DeepStream, marks=pytest.mark.skipif(bool(SKIP), reason=SKIP))])
def runtime(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture
def writer(pyservicemaker: object) -> Iterator[Callable[..., Any]]:
    """Makes event writers that write to memory and raise."""

    def failed(text: str, trace: str) -> None:
        raise AssertionError(f"{text}\n{trace}")

    make = importlib.import_module("pipelines.operators.events").EventWriter
    yield lambda **more: make(io.StringIO(), "test", ["only"], True, failed, MUX, **more)


def written(runtime: Any, detections: Detections) -> None:
    batch_meta = runtime.handle()
    for frame in batch_meta.frame_items:
        write_detections(batch_meta, frame, detections, Placement.padded(SOURCE, MUX), NAMES, 7, runtime.osd)


def event(runtime: Any, writer: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """The frame's line, checked against the schema."""
    operator = writer(**options)
    operator.handle_metadata(runtime.handle())

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    text = operator._file.getvalue()
    line = json.loads(text, parse_constant=refuse)
    jsonschema.validate(line, SCHEMA)
    (as_data,) = operator._maker.events_of(runtime.handle().frame_items)
    assert text == json.dumps(finite(as_data), ensure_ascii=False) + "\n"
    return line


def finite(value: Any) -> Any:
    """NaN and infinity, which others may attach, become null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def found(*boxes: tuple[float, ...], **more: Any) -> Detections:
    return Detections(np.array(boxes), np.full(len(boxes), 0.75), np.arange(len(boxes)) % 2, **more)


def disc(x: float, y: float, radius: float) -> np.ndarray:
    rows, columns = np.mgrid[: SOURCE[1], : SOURCE[0]] + 0.5
    return np.hypot(columns - x, rows - y) < radius


def iou(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def test_plain_objects_have_no_more_than_before(runtime, writer):
    written(runtime, found(BOX, (0, 0, 500, 301)))
    line = event(runtime, writer)
    first, second = line["objects"]
    assert set(line) == {*SCHEMA["required"]}
    assert first == {
        "bbox": pytest.approx(BOX, abs=0.02),
        "class_id": 0,
        "label": "car",
        "confidence": 0.75,
        "track_id": None,
    }
    assert second["bbox"] == pytest.approx((0, 0, 500, 301), abs=0.02)


def put_a_plate_into_the_car(runtime: Any) -> None:
    batch_meta = runtime.handle()
    for frame in batch_meta.frame_items:
        for item in frame.object_items:
            if item.label == "car":
                plate, placement = found((110, 50, 120, 60)), Placement.padded(SOURCE, MUX)
                write_detections(batch_meta, frame, plate, placement, ("plate",), 8, runtime.osd, parent=item)


def parents(line: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(item["label"], item.get("parent")) for item in line["objects"]]


def test_an_object_found_in_another_names_its_place(runtime, writer):
    written(runtime, found((0, 0, 500, 301), BOX))
    put_a_plate_into_the_car(runtime)
    assert parents(event(runtime, writer)) == [("car", None), ("bus", None), ("plate", 0)]
    for frame in runtime.handle().frame_items:
        remove_objects(frame, lambda item: item.label == "car")
    assert parents(event(runtime, writer)) == [("bus", None), ("plate", None)]


def test_a_copied_batch_names_no_wrong_parent(runtime, writer):
    written(runtime, found((0, 0, 500, 301), BOX))
    put_a_plate_into_the_car(runtime)
    runtime.copy()
    told = dict(parents(event(runtime, writer)))
    assert told == {"car": None, "bus": None, "plate": 0 if isinstance(runtime, Portable) else None}


def test_masks_come_back_over_the_source_frame(runtime, writer):
    cut = disc(490, 290, 40)
    masks = np.stack([disc(161, 90.4, 49.8), cut])
    written(runtime, found(BOX, (450.2, 250.1, 500, 301), masks=masks))
    runtime.copy()
    for entry, mask in zip(sorted_by_box(event(runtime, writer)), masks, strict=True):
        assert entry["mask"]["size"] == [301, 500]
        assert iou(decode(entry["mask"]), mask) > 0.98


def test_masks_of_rotated_objects(runtime, writer):
    long = disc(200, 150, 60) & (
        np.abs(np.subtract.outer(np.arange(301), np.arange(500)) + 50) < 20
    )  # along y = x - 50
    turned = found((140, 135, 260, 165), masks=long[None], angles=np.array([math.pi / 4], np.float32))
    written(runtime, turned)
    (entry,) = event(runtime, writer)["objects"]
    assert entry["angle"] == pytest.approx(math.pi / 4, abs=1e-4)
    assert entry["corners"] == [pytest.approx(p, abs=0.1) for p in corners((140, 135, 260, 165), math.pi / 4)[0]]
    assert iou(decode(entry["mask"]), long) > 0.97


def test_a_mask_stays_where_the_detector_saw_it(runtime, writer):
    """A tracker moves the object's box; the mask is the picture's."""
    mask = disc(161, 90.4, 49.8)
    written(runtime, found(BOX, masks=mask[None]))
    for frame in runtime.handle().frame_items:
        for item in frame.object_items:
            item.rect_params.left += 30
            item.rect_params.width *= 2
    (entry,) = event(runtime, writer)["objects"]
    assert iou(decode(entry["mask"]), mask) > 0.98


def test_keypoints_come_back_in_source_pixels(runtime, writer):
    points = np.array(
        [[[110.2, 50.4, 0.9], [np.nan, np.nan, 0], [0, 300.9, 0.12345]], [[1, 2, 3]] + [[np.nan] * 3] * 2]
    )
    written(runtime, found(BOX, BOX, keypoints=points))
    runtime.copy()
    entries = {len(entry["keypoints"]): entry["keypoints"] for entry in event(runtime, writer)["objects"]}
    assert entries[1] == [pytest.approx([1, 2, 3], abs=0.02)]
    first, nowhere, low = entries[3]
    assert first == pytest.approx([110.2, 50.4, 0.9], abs=0.02)
    assert nowhere == [None, None, 0]
    assert low == pytest.approx([0, 300.9, 0.1235], abs=0.02)


def test_attributes_by_classifier(runtime, writer):
    attributes = [{"colour": "red", "kind": {"label": "van", "class_id": 4, "probability": 0.5}}]
    written(runtime, found(BOX, attributes=attributes))
    (entry,) = event(runtime, writer)["objects"]
    assert entry["attributes"] == {
        "colour": {"label": "red", "class_id": 0, "probability": 1},
        "kind": {"label": "van", "class_id": 4, "probability": 0.5},
    }
    assert list(entry["attributes"]) == ["colour", "kind"]


def test_classifiers_behind_a_tee(runtime, writer):
    """DeepStream loses their names there."""
    written(runtime, found(BOX, attributes=[{"colour": "red"}]))
    runtime.copy()
    (entry,) = event(runtime, writer)["objects"]
    assert [label["label"] for label in entry["attributes"].values()] == ["red"]
    assert set(entry["attributes"]) <= {"colour", "7"}


def test_embeddings_only_when_asked_for(runtime, writer):
    written(runtime, found(BOX, embeddings=np.array([[0.25, -0.1234567, np.nan]], np.float32)))
    assert "embedding" not in event(runtime, writer)["objects"][0]
    (entry,) = event(runtime, writer, embeddings=True)["objects"]
    assert entry["embedding"] == [0.25, pytest.approx(-0.123457), None]


def test_what_others_attach_is_written_through(runtime, writer):
    written(runtime, found(BOX))
    for frame in runtime.handle().frame_items:
        attach_json(frame, "models", {"people": "v2"})
        attach_json(frame, "events", [{"event": "crowded", "persons": 7, "where": 'Tür "3"'}])
        attach_json(frame, "analytics", {"zones": {"door": 1}, "speed": math.nan})
        for item in frame.object_items:
            attach_json(item, "analytics", {"zones": ["door"], "speeds": [math.inf, 1.5]})
            attach_json(item, "private", "not written")
    line = event(runtime, writer)
    assert line["models"] == {"people": "v2"}
    assert line["events"] == [{"event": "crowded", "persons": 7, "where": 'Tür "3"'}]
    assert line["analytics"] == {"zones": {"door": 1}, "speed": None}
    assert line["objects"][0]["analytics"] == {"zones": ["door"], "speeds": [None, 1.5]}
    assert "private" not in line["objects"][0]


def test_an_event_that_a_user_changes_does_not_change_the_next(runtime, writer):
    maker = writer()._maker
    for frame in runtime.handle().frame_items:
        attach_json(frame, "models", {"people": "v2"})
        maker.event_of(frame)["models"]["people"] = "mine"
        assert maker.event_of(frame)["models"] == {"people": "v2"}


def test_a_classifier_with_several_labels(writer):
    from elements.portable.meta import LabelInfo

    runtime = Portable()
    written(runtime, found(BOX))
    for frame in runtime.handle().frame_items:
        for item in frame.object_items:
            classify(item, "make", "acme", probability=math.nan)
            item._meta.classifiers[0].labels.append(LabelInfo("coupe", 3, 0.5))
    (entry,) = event(runtime, writer)["objects"]
    coupe = {"label": "coupe", "class_id": 3, "probability": 0.5}
    assert entry["attributes"] == {"make": {"label": "acme", "class_id": 0, "probability": None, "more": [coupe]}}


def test_a_pyservicemaker_that_tells_texts_only(writer, monkeypatch):
    from elements.portable.pyservicemaker.metadata import ClassifierMetadata

    monkeypatch.delattr(ClassifierMetadata, "get_label_info")
    runtime = Portable()
    written(runtime, found(BOX, attributes=[{"colour": "red"}]))
    (entry,) = event(runtime, writer)["objects"]
    assert entry["attributes"] == {"colour": {"label": "red", "class_id": None, "probability": None}}


def sorted_by_box(line: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(line["objects"], key=lambda entry: entry["bbox"])

"""Payloads of message stages, field by field, from scripted frames.

The reference documents follow DeepStream's documented fields (full and minimal schema, as nvmsgconv with msg2p-newapi
writes them).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from elements.messages.config import MessageConfig, MessageConfigError, Sensor, load_message_config
from elements.messages.strict_json import encode
from elements.metadata.edit import attach_json, classify
from elements.metadata.placement import Placement
from elements.metadata.writer import write_detections
from pipelines.operators.content import Content
from pipelines.scripted import ScriptedFrame, batch_of, objects_of, use_portable_api

SCHEMAS = Path(__file__).resolve().parents[2] / "configs" / "schema"
CONFIG = SCHEMAS.parent / "messages" / "msgconv.txt"
TIME_NS = 1_927_357_689_123_000_000
TIME = "2031-01-28T09:08:09.123Z"


def validator() -> Draft202012Validator:
    files = [json.loads((SCHEMAS / f"{name}.schema.json").read_text()) for name in ("message", "event")]
    message, event = files
    registry = Registry().with_resource("event.schema.json", Resource.from_contents(event))
    Draft202012Validator.check_schema(message)
    return Draft202012Validator(message, registry=registry)


def van(**changes: Any) -> ScriptedFrame:
    columns = {"class_ids": np.array([2]), "scores": np.array([0.83], np.float32), "track_ids": [17]}
    frame = {
        "objects": objects_of((11.25, 22.5, 133.375, 122.5), **columns),
        "labels": ["van"],
        "number": 0,
        "time_utc_ns": TIME_NS,
    }
    return ScriptedFrame(**{**frame, **changes})  # type: ignore[arg-type]


def messages(content: Content, *frames: ScriptedFrame, edit: Any = None, **options: Any) -> list[dict[str, Any]]:
    """The messages of frames, each in a batch of its own, as a receiver reads them."""
    use_portable_api()
    from pipelines.operators.message import MessageMaker

    sources = options.pop("sources", ["door", "yard"])
    maker = MessageMaker("message", "p", sources, content, options.get("padding", False))
    found = []
    for frame in frames:
        batch = batch_of([frame], **options)
        for meta in batch.frame_items:
            if edit is not None:
                edit(meta)
            found += [json.loads(payload, parse_constant=refuse) for payload in maker.payloads(meta)]
    return found


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def make_and_colour(meta: Any) -> None:
    for item in meta.object_items:
        classify(item, "color", "white", probability=0.7)
        classify(item, "make", "acme", probability=0.9)


# --- DeepStream's schemas ---------------------------------------------------------------------------------------------


def test_minimal_schema_is_deepstreams() -> None:
    assert messages(Content("minimal", config=CONFIG), van()) == [
        {
            "version": "4.0",
            "id": "0",
            "@timestamp": TIME,
            "sensorId": "CAM_42",
            "objects": ["17|11.25|22.5|133.38|122.5|van"],  # source pixels, two decimals
        }
    ]


def test_minimal_schema_appends_labels_newest_first_and_the_confidence() -> None:
    (message,) = messages(Content("minimal", config=CONFIG), van(), edit=make_and_colour)
    assert message["objects"] == ["17|11.25|22.5|133.38|122.5|van|#|acme|white|0.83"]


def test_full_schema_is_deepstreams() -> None:
    (message,) = messages(Content("full", config=CONFIG), van(), edit=make_and_colour)
    ids = message.pop("messageid"), message["event"].pop("id")
    assert len(set(ids)) == 2 and all(len(text) == 36 and text[14] == "8" for text in ids)
    assert message == {
        "mdsversion": "1.0",
        "@timestamp": TIME,
        "place": {
            "id": "7",
            "name": "Dock B",
            "type": "warehouse",
            "location": {"lat": 1.5, "lon": 2.5, "alt": 3.0},
            "place-sub-field": {
                "id": "A3", "name": "North", "level": "L1", "coordinate": {"x": 1.0, "y": 2.0, "z": 3.0},
            },
        },
        "sensor": {
            "id": "CAM_42",
            "type": "Camera",
            "description": "gate",
            "location": {"lat": 1.5, "lon": 2.5, "alt": 3.0},
            "coordinate": {"x": 5.0, "y": 6.0, "z": 7.0},
        },
        "analyticsModule": {"id": "M9", "description": "detector", "source": "demo", "version": "2.1"},
        "object": {
            "id": "17",
            "speed": 0.0,
            "direction": 0.0,
            "orientation": 0.0,
            "van": {"confidence": 0.83, "make": "acme", "color": "white"},
            "bbox": {"topleftx": 11, "toplefty": 22, "bottomrightx": 133, "bottomrighty": 122},
            "location": {},
            "coordinate": {},
        },
        "event": {"type": ""},
        "videoPath": "",
    }  # fmt: skip


def test_frames_without_objects() -> None:
    empty = ScriptedFrame(number=120, time_utc_ns=TIME_NS)
    assert messages(Content("full"), empty) == []
    (message,) = messages(Content("minimal"), empty)
    assert (message["id"], message["objects"]) == ("120", [])


def test_full_schema_has_a_message_for_each_object() -> None:
    frame = ScriptedFrame(objects_of((0, 0, 9, 9), (5, 5, 20, 30), track_ids=[1, 2]), ["cup", "bag"])
    found = messages(Content("full"), frame)
    assert [message["object"]["id"] for message in found] == ["1", "2"]
    assert [list(message["object"])[4] for message in found] == ["cup", "bag"]
    assert len({message[key] for message in found for key in ("messageid",)} | {m["event"]["id"] for m in found}) == 4


def test_what_is_not_configured_is_null_and_the_sensor_is_the_source() -> None:
    (message,) = messages(Content("full"), van())
    assert (message["place"], message["analyticsModule"]) == (None, None)
    assert message["sensor"]["id"] == "door"
    assert messages(Content("minimal"), van())[0]["sensorId"] == "door"


# --- ids, places, text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["full", "minimal", "events"])
def test_no_track_no_id(schema: Any) -> None:
    (message,) = messages(Content(schema), van(objects=objects_of((1, 2, 3, 4))))
    assert "18446744073709551615" not in json.dumps(message)
    if schema == "full":
        assert message["object"]["id"] is None
    elif schema == "minimal":
        assert message["objects"] == ["|1|2|3|4|van"]
    else:
        assert message["objects"][0]["track_id"] is None


@pytest.mark.parametrize("padding", [False, True])
def test_places_are_source_pixels_whatever_the_mux(padding: bool) -> None:
    (message,) = messages(Content("minimal"), van(), mux=(640, 640), padding=padding)
    assert message["objects"] == ["17|11.25|22.5|133.38|122.5|van"]


def test_what_no_json_can_hold_is_null() -> None:
    continued = objects_of((1, 2, 3, 4), scores=np.array([-0.1], np.float32), track_ids=[3])
    (full,) = messages(Content("full"), van(objects=continued))
    assert full["object"]["van"]["confidence"] is None

    def poison(meta: Any) -> None:
        for item in meta.object_items:
            item.confidence = math.nan
            item.rect_params.left = math.inf
            attach_json(item, "analytics", {"speed": math.nan})

    (full,) = messages(Content("full"), van(), edit=poison)
    assert full["object"]["van"]["confidence"] is None
    (event,) = messages(Content("events"), van(), edit=poison)
    assert event["objects"][0]["analytics"] == {"speed": None}


@pytest.mark.parametrize("label", ['the "best" van', "van 🚐", "back\\slash", "line\nbreak"])
def test_labels_of_all_kinds(label: str) -> None:
    (full,) = messages(Content("full"), van(labels=[label]))
    assert list(full["object"])[4] == label
    (minimal,) = messages(Content("minimal"), van(labels=[label]))
    assert minimal["objects"][0].split("|")[5] == label


def test_bars_in_labels_do_not_make_fields() -> None:
    (minimal,) = messages(Content("minimal"), van(labels=["a|b"]))
    assert minimal["objects"] == ["17|11.25|22.5|133.38|122.5|a/b"]


def test_a_label_named_like_a_member_does_not_take_its_place() -> None:
    (full,) = messages(Content("full"), van(labels=["bbox"]))
    assert full["object"]["bbox"]["topleftx"] == 11


def test_a_classifier_named_confidence_does_not_take_its_place() -> None:
    def edit(meta: Any) -> None:
        for item in meta.object_items:
            classify(item, "confidence", "high")

    (full,) = messages(Content("full"), van(), edit=edit)
    assert full["object"]["van"] == {"confidence": 0.83}


def test_strict_json() -> None:
    value = {"a": np.float32(0.5), "b": np.arange(3), "c": [math.inf, np.float64("nan")], 4: (np.int64(2**40), None)}
    assert json.loads(encode(value), parse_constant=refuse) == {
        "a": 0.5, "b": [0, 1, 2], "c": [None, None], "4": [2**40, None],
    }  # fmt: skip
    assert encode(b"\xff van".decode(errors="surrogateescape")).decode() == '"\ufffd van"'
    with pytest.raises(TypeError, match="a object cannot"):
        encode({"a": object()})


# --- which frames and objects -----------------------------------------------------------------------------------------


def frames(count: int, **changes: Any) -> list[ScriptedFrame]:
    return [van(number=number, **changes) for number in range(count)]


def test_every_nth_frame_from_the_first() -> None:
    assert [m["id"] for m in messages(Content("minimal", frame_interval=3), *frames(8))] == ["0", "3", "6"]


def test_frames_with_events_are_sent_whatever_the_interval() -> None:
    crowded = van(number=2, data={"events": [{"event": "crowded"}]})
    found = messages(Content("events", frame_interval=30), van(number=0), van(number=1), crowded)
    assert [(m["frame"], m.get("events")) for m in found] == [(0, None), (2, [{"event": "crowded"}])]


def test_only_frames_with_something() -> None:
    crowded = van(number=2, data={"events": [{"event": "crowded"}]})
    given = (van(number=0), ScriptedFrame(number=1), crowded)
    assert [m["frame"] for m in messages(Content(when="always"), *given)] == [0, 1, 2]
    assert [m["frame"] for m in messages(Content(when="objects"), *given)] == [0, 2]
    assert [m["frame"] for m in messages(Content(when="events"), *given)] == [2]


def test_classes_and_models() -> None:
    objects = objects_of((0, 0, 1, 1), (0, 0, 2, 2), (0, 0, 3, 3), class_ids=np.array([0, 1, 2]), track_ids=[1, 2, 3])
    frame = ScriptedFrame(objects, ["person", "car", "bus"], component_ids=[1, 1, 2])

    def ids(**content: Any) -> list[int]:
        return [item["track_id"] for item in messages(Content(**content), frame)[0]["objects"]]

    assert ids() == [1, 2, 3]
    assert ids(classes=["person", 2]) == [1, 3]
    assert ids(component_ids=[2]) == [3]
    assert ids(component_ids=[1], classes=["bus"]) == []


def test_each_source_tells_of_itself_only() -> None:
    config = MessageConfig({0: Sensor("CAM_A"), 1: Sensor("CAM_B")})
    batch = [van(source_id=0), van(source_id=1, labels=["bus"])] * 3
    for schema in ("full", "minimal", "events"):
        for message in messages(Content(schema, config_by_source=config), *batch):  # type: ignore[arg-type]
            text = json.dumps(message)
            assert ("CAM_A" in text, "van" in text) in ((True, True), (False, False))
            assert ("CAM_B" in text, "bus" in text) in ((True, True), (False, False))
            assert ("CAM_A" in text) != ("CAM_B" in text)


# --- the events schema ------------------------------------------------------------------------------------------------


def test_events_schema_tells_everything() -> None:
    columns = {"angles": np.array([0.5], np.float32), "keypoints": np.array([[[1, 2, 0.9]]], np.float32)}
    frame = van(
        objects=objects_of((11, 22, 133, 122), track_ids=[17], **columns),
        data={"models": {"infer": "a1"}, "events": [{"event": "crowded", "people": 7}], "analytics": {"door": 1}},
        object_data=[{"analytics": {"zones": ["door"]}}],
    )
    (message,) = messages(Content(config=CONFIG), frame, edit=make_and_colour)
    assert list(validator().iter_errors(message)) == []
    assert message["schema_version"] == "1.0"
    assert message["sensor"]["id"] == "CAM_42" and message["place"]["id"] == "7"
    assert message["models"] == {"infer": "a1"} and message["events"][0]["people"] == 7
    (item,) = message["objects"]
    assert item["angle"] == 0.5 and len(item["corners"]) == 4
    assert item["keypoints"] == [[1.0, 2.0, 0.9]]
    assert item["attributes"]["make"]["label"] == "acme"
    assert item["analytics"] == {"zones": ["door"]}


def test_every_message_fits_the_schema() -> None:
    for message in messages(Content(), van(), ScriptedFrame(), van(time_utc_ns=0)):
        assert message["sensor"] == {"id": "door", "type": "Camera", "description": ""}
        assert list(validator().iter_errors(message)) == []


def test_ids_tell_frames_apart_and_are_the_same_again() -> None:
    given = [*frames(3), van(number=0, source_id=1), van(number=0, time_utc_ns=TIME_NS + 1_000_000)]
    first = [message["id"] for message in messages(Content(), *given)]
    assert len(set(first)) == 5
    assert [message["id"] for message in messages(Content(), *given)] == first


# --- configuration files ----------------------------------------------------------------------------------------------


def test_configuration_as_yaml_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "msgconv.yml"
    file.write_text(
        "sensor0: {enable: 1, type: Camera, id: CAM_42, location: 1.5;2.5;3.0, description: gate, "
        "coordinate: 5.0;6.0;7.0}\n"
        "place0: {enable: 1, id: 7, type: warehouse, name: Dock B, location: 1.5;2.5;3.0, coordinate: 1.0;2.0;3.0, "
        "place-sub-field1: A3, place-sub-field2: North, place-sub-field3: L1}\n"
        "analytics0: {enable: 1, id: M9, description: detector, source: demo, version: 2.1}\n"
    )
    assert load_message_config(file) == load_message_config(CONFIG)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sensor0]\nid=1\nkind=x\n", "section 'sensor0': unknown key 'kind'"),
        ("[sensor0]\ntype=Camera\n", "section 'sensor0': has no id"),
        ("[sensor0]\nid=1\nlocation=1;2\n", "location: '1;2' is not three numbers like 1.5;2.5;3.0"),
        ("[camera0]\nid=1\n", "section 'camera0' is none of sensorN, placeN and analyticsN"),
        ("id=1\n", "cannot be read"),
    ],
)
def test_configuration_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "msgconv.txt"
    file.write_text(text)
    with pytest.raises(MessageConfigError, match="msgconv.txt.*" + message):
        load_message_config(file)


def test_sections_that_are_not_enabled_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "msgconv.txt"
    file.write_text("[sensor0]\nenable=0\nid=1\n[sensor1]\nid=2\n")
    assert load_message_config(file).sensors == {1: Sensor("2")}


# --- both kinds of metadata -------------------------------------------------------------------------------------------


def test_deepstreams_metadata_makes_the_same_messages() -> None:
    """The real libnvds_meta, behind a double of NVIDIA's pyservicemaker; padded into a mux of 640x640."""
    from tests.contract.nvds_double.native import SKIP
    from tests.contract.test_event_objects import BOX, MUX, SOURCE, DeepStream, Portable

    if SKIP:
        pytest.skip(SKIP)
    use_portable_api()
    from pipelines.operators.message import MessageMaker

    told: dict[str, list[Any]] = {"full": [], "minimal": [], "events": []}
    for runtime in (Portable(), DeepStream()):
        batch = runtime.handle()
        for frame in batch.frame_items:
            detections = objects_of(BOX, scores=np.array([0.83], np.float32), class_ids=np.array([1]))
            placement = Placement.of(SOURCE, MUX, padding=True)
            write_detections(batch, frame, detections, placement, ["car", "bus"], 1, runtime.osd)
            make_and_colour(frame)
            for schema, found in told.items():
                maker = MessageMaker("message", "p", ["door"], Content(schema, config=CONFIG), True)  # type: ignore[arg-type]
                (payload,) = maker.payloads(frame)
                document = json.loads(payload, parse_constant=refuse)
                found.append(document["object"] if schema == "full" else document["objects"])
    for portable, deepstream in told.values():
        assert portable == deepstream
    assert told["minimal"][0] == ["|100.3|40.6|221.7|140.2|bus|#|acme|white|0.83"]
    assert told["full"][0]["id"] is None
    assert told["full"][0]["bus"] == {"confidence": 0.83, "make": "acme", "color": "white"}

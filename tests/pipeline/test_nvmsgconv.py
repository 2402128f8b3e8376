"""nvmsgconv and nvmsgbroker on batches pushed into them: what arrives, and what is said when nothing does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from elements.base import Gst
from elements.messages import adaptors
from elements.messages.adaptors import AdaptorError
from elements.portable.carrier import new_batch_buffer
from elements.portable.meta import BatchMeta, ClassifierMeta, FrameMeta, LabelInfo, ObjectMeta
from elements.portable.nvmsgbroker import NvMsgBroker
from elements.portable.nvmsgconv import NvMsgConv, as_deepstream
from tests.media import message_of
from tests.waiting import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
CONFIG = str(ROOT / "configs/messages/msgconv.txt")
TIME_NS = 1_796_033_688_710_000_000
TIME = "2026-11-30T10:14:48.710Z"
LIBRARY = "libnvds_mqtt_proto.so"


class FakeAdaptor:
    """Keeps what is sent; refuses when ``away``."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []
        self.opened: list[tuple[Any, ...]] = []
        self.away = self.closed = False

    def open(self, *where: Any) -> FakeAdaptor:
        self.opened.append(where)
        if self.away:
            raise AdaptorError("nobody answers")
        return self

    def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        if self.away:
            raise AdaptorError("gone")
        self.got += messages

    def close(self) -> None:
        self.closed = True

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(payload) for _, payload in self.got]


class Harness:
    """``nvmsgconv ! nvmsgbroker`` with the fake adaptor."""

    def __init__(self, adaptor: FakeAdaptor, broker: dict[str, Any], **converter: Any) -> None:
        adaptors.provide(adaptor.open)
        self.pipeline = Gst.Pipeline.new()
        self.converter, self.broker = NvMsgConv(), NvMsgBroker()
        settings = {"config": CONFIG, "msg2p-newapi": True, "frame-interval": 1}
        settings |= {name.replace("_", "-"): value for name, value in converter.items()}
        for element, values in (
            (self.converter, settings),
            (self.broker, {"proto-lib": LIBRARY, "conn-str": "localhost;1883", "topic": "t", "sync": False, **broker}),
        ):
            for name, value in values.items():
                element.set_property(name, value)
            self.pipeline.add(element)
        self.converter.link(self.broker)
        self.sink = self.converter.get_static_pad("sink")

    def start(self) -> Harness:
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, self.error()
        self.sink.send_event(Gst.Event.new_stream_start("test"))
        self.sink.send_event(Gst.Event.new_caps(Gst.Caps.from_string("video/x-raw(memory:NVMM), format=RGBA")))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        self.sink.send_event(Gst.Event.new_segment(segment))
        return self

    def push(self, *frames: FrameMeta) -> Gst.FlowReturn:
        return self.sink.chain(new_batch_buffer(BatchMeta(len(frames), list(frames)), 0, 0))

    def error(self) -> str:
        return message_of(self.pipeline, Gst.MessageType.ERROR).parse_error()[0].message

    def stop(self) -> None:
        self.pipeline.set_state(Gst.State.NULL)


@pytest.fixture
def adaptor() -> Iterator[FakeAdaptor]:
    before = adaptors._opener
    yield FakeAdaptor()
    adaptors._opener = before


@pytest.fixture
def make(adaptor: FakeAdaptor) -> Iterator[Any]:
    made: list[Harness] = []

    def harness(broker: dict[str, Any] | None = None, **converter: Any) -> Harness:
        made.append(Harness(adaptor, broker or {}, **converter))
        return made[-1]

    yield harness
    for one in made:
        one.stop()


def van(number: int = 0, source: int = 0, object_id: int = 17, labels: bool = False) -> FrameMeta:
    """A frame with an object of class van."""
    frame = FrameMeta(source, source, source, number, 0, ntp_timestamp=TIME_NS)
    item = ObjectMeta(2, object_id, 1, 0.83, label="van")
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = 11.25, 22.5, 122.125, 100.0
    if labels:
        item.classifiers += [
            ClassifierMeta(2, "color", [LabelInfo("white")]), ClassifierMeta(3, "make", [LabelInfo("acme")]),
        ]  # fmt: skip
    frame.objects.append(item)
    return frame


def test_minimal_payload_is_deepstreams_byte_by_byte(make: Any, adaptor: FakeAdaptor) -> None:
    assert make(payload_type=1).start().push(van()) == Gst.FlowReturn.OK
    ((key, payload),) = adaptor.got
    assert payload.decode() == (
        '{\n  "version" : "4.0",\n  "id" : "0",\n  "@timestamp" : "2026-11-30T10:14:48.710Z",\n'
        '  "sensorId" : "CAM_42",\n  "objects" : [\n    "17|11.25|22.5|133.375|122.5|van"\n  ]\n}'
    )
    assert (key, len(payload)) == ("0", 166)


def test_labels_of_classifiers_newest_first(make: Any, adaptor: FakeAdaptor) -> None:
    make(payload_type=1).start().push(van(labels=True))
    assert adaptor.documents[0]["objects"] == ["17|11.25|22.5|133.375|122.5|van|#|acme|white|0.83"]


def test_full_payload(make: Any, adaptor: FakeAdaptor) -> None:
    make(payload_type=0).start().push(van(labels=True))
    (document,) = adaptor.documents
    assert list(document) == [
        *(
            "messageid",
            "mdsversion",
            "@timestamp",
            "place",
            "sensor",
            "analyticsModule",
            "object",
            "event",
            "videoPath",
        ),
    ]
    assert (document["@timestamp"], document["sensor"]["id"]) == (TIME, "CAM_42")
    assert document["object"] == {
        "id": "17", "speed": 0.0, "direction": 0.0, "orientation": 0.0,
        "van": {"confidence": 0.83, "make": "acme", "color": "white"},
        "bbox": {"topleftx": 11, "toplefty": 22, "bottomrightx": 133, "bottomrighty": 122},
        "location": {}, "coordinate": {},
    }  # fmt: skip
    assert b'"location" : {    },' in adaptor.got[0][1]


def test_what_has_no_section_is_null_and_an_untracked_object_too(make: Any, adaptor: FakeAdaptor) -> None:
    make(payload_type=0).start().push(van(source=1, object_id=2**64 - 1))
    (document,) = adaptor.documents
    assert (document["sensor"], document["place"], document["object"]["id"]) == (None, None, None)


def test_frame_interval_of_each_source(make: Any, adaptor: FakeAdaptor) -> None:
    harness = make(payload_type=1, frame_interval=3).start()
    for number in range(7):
        harness.push(van(number), van(number + 1, source=1))
    assert [(key, json.loads(p)["id"]) for key, p in adaptor.got] == [
        *(("0", "0"), ("1", "3"), ("0", "3"), ("1", "6"), ("0", "6")),
    ]
    assert make().converter.get_property("frame-interval") == 1
    assert NvMsgConv().get_property("frame-interval") == 30


@pytest.mark.parametrize("multiple", [False, True])
def test_multiple_payloads_are_the_same(make: Any, adaptor: FakeAdaptor, multiple: bool) -> None:
    frame = van()
    frame.objects.append(van(object_id=18).objects[0])
    make(payload_type=0, multiple_payloads=multiple).start().push(frame)
    assert [document["object"]["id"] for document in adaptor.documents] == ["17", "18"]


@pytest.mark.parametrize(("wanted", "sent"), [(0, 1), (3, 1), (4, 0)])
def test_the_broker_takes_its_component(make: Any, adaptor: FakeAdaptor, wanted: int, sent: int) -> None:
    make({"comp-id": wanted}, payload_type=1, comp_id=3).start().push(van())
    assert len(adaptor.got) == sent


def test_buffers_without_a_batch_pass(make: Any, adaptor: FakeAdaptor) -> None:
    assert make().start().sink.chain(Gst.Buffer.new_allocate(None, 4, None)) == Gst.FlowReturn.OK
    assert adaptor.got == []


def test_layout_of_empty_objects_and_texts_like_them() -> None:
    assert as_deepstream(b'{"a":{},"b":"x : {}"}') == b'{\n  "a" : {    },\n  "b" : "x : {}"\n}'


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broker", "converter", "message"),
    [
        ({}, {"config": None}, "config is not set"),
        ({}, {"config": "/no/such.txt"}, "/no/such.txt: cannot be read"),
        ({}, {"payload_type": 2}, "only the full and the minimal schema"),
        ({}, {"msg2p_newapi": False}, "set msg2p-newapi=1"),
        ({"proto-lib": None}, {}, "No protocol adaptor library provided"),
        ({"proto-lib": "libnvds_azure_proto.so"}, {}, "nothing in place of 'libnvds_azure_proto.so'"),
        ({"conn-str": None}, {}, "No connection string provided"),
    ],
)
def test_what_stops_the_start(make: Any, broker: dict[str, Any], converter: dict[str, Any], message: str) -> None:
    harness = make(broker, **converter)
    assert harness.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
    assert message in harness.error()


def test_a_broker_that_is_away_stops_the_start(make: Any, adaptor: FakeAdaptor) -> None:
    adaptor.away = True
    harness = make()
    assert harness.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
    assert "unable to connect to broker library: nobody answers" in harness.error()
    assert adaptor.opened == [("mqtt", "localhost;1883", "t", None)]


def test_a_lost_broker_ends_the_pipeline_of_the_old_api(make: Any, adaptor: FakeAdaptor) -> None:
    harness = make().start()
    adaptor.away = True
    assert harness.push(van()) == Gst.FlowReturn.ERROR
    assert "failed to send the message: gone" in harness.error()


def test_with_the_new_api_a_lost_broker_costs_messages_only(
    make: Any, adaptor: FakeAdaptor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("elements.portable.nvmsgbroker.RETRY_S", 0.02)
    harness = make({"new-api": True}, payload_type=1).start()

    def push_until(number: int, done: Any) -> None:
        end = time.monotonic() + LIMIT_S
        while not done():
            assert time.monotonic() < end
            assert harness.push(van(number)) == Gst.FlowReturn.OK
            time.sleep(0.01)

    push_until(1, lambda: any(d["id"] == "1" for d in adaptor.documents))
    adaptor.away = True
    push_until(2, lambda: len(adaptor.opened) > 2)
    adaptor.away = False
    push_until(3, lambda: any(d["id"] == "3" for d in adaptor.documents))
    harness.stop()
    assert adaptor.closed
    assert "messages are dropped: gone" in caplog.text

"""Stand-in for DeepStream's ``nvmsgconv``: messages of frames and objects, attached to the frames as payloads."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elements.base import (
    AUTHOR,
    ElementError,
    GObject,
    Gst,
    GstBase,
    Property,
    PropertyTable,
    enum_type,
    gproperties,
    guarded,
    keep_floating,
    sink_and_src,
)
from elements.messages.config import MessageConfig, MessageConfigError, load_message_config
from elements.messages.payloads import About, frame_id, full_payloads, minimal_payload
from elements.metadata.utc import utc_text
from elements.portable.carrier import batch_of, writable_batch
from elements.portable.meta import UNTRACKED_OBJECT_ID, FrameMeta, ObjectMeta, UserMeta

PAYLOAD_META = 8
"""NVDS_PAYLOAD_META of nvdsmeta.h."""
FULL, MINIMAL = 0, 1


@dataclass(frozen=True, slots=True)
class Payload:
    """What a frame's user metadata of type `PAYLOAD_META` holds (NvDsPayload)."""

    data: bytes
    component_id: int


class NvMsgConv(PropertyTable, GstBase.BaseTransform):
    """Makes messages of frame and object metadata (``msg2p-newapi``); buffers pass through.

    Boxes are in mux-frame pixels, as NVIDIA's are. Where that writes invalid JSON or 2^64-1, null is written here.
    Messages that an application attached itself (the old API) do not exist on this runtime.
    """

    __gtype_name__ = "NvMsgConv"
    __gstmetadata__ = ("NvMsgConv (portable)", "Filter/Metadata", "Makes messages of metadata", AUTHOR)
    __gsttemplates__ = sink_and_src("ANY")
    PROPERTIES = (
        Property("config", str, None, "Sensors, places and analytics modules (ini or YAML)"),
        Property("msg2p-lib", str, None, "Library that makes the payloads", effect=False),
        Property(
            "payload-type",
            enum_type(
                "GstorchNvMsgConvPayloadType",
                {
                    FULL: "PAYLOAD_DEEPSTREAM",
                    MINIMAL: "PAYLOAD_DEEPSTREAM_MINIMAL",
                    2: "PAYLOAD_DEEPSTREAM_PROTOBUF",
                    256: "PAYLOAD_RESERVED",
                    257: "PAYLOAD_CUSTOM",
                },
            ),
            FULL,
            "Schema of the messages; full and minimal here",
        ),
        Property("comp-id", "uint", 0, "Component id of the payloads"),
        Property("msg2p-newapi", bool, False, "Work from the metadata of frames and objects; always needed here"),
        Property("frame-interval", "uint", 30, "Messages of every Nth frame", 1),
        Property("multiple-payloads", bool, False, "Several payloads at once; the result is the same", effect=False),
        Property("debug-payload-dir", str, None, "Folder for copies of payloads", effect=False),
        Property("dummy-payload", bool, False, "Payloads without metadata", effect=False),
        Property("embedding-filter", str, None, "Classes whose embeddings are sent", effect=False),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._config = MessageConfig()
        self._abouts: dict[int, About] = {}

    @guarded(False)
    def do_start(self) -> bool:
        self.warn_of_ignored_properties()
        if int(self.values["payload-type"]) not in (FULL, MINIMAL):
            raise ElementError("payload-type: only the full and the minimal schema (0, 1) can be made here")
        if not self.values["msg2p-newapi"]:
            raise ElementError(
                "msg2p-newapi is off: it would send events that the application attached, which this runtime does not "
                "have; set msg2p-newapi=1"
            )
        if not self.values["config"]:
            raise ElementError("config is not set: name a file with sensors, places and analytics modules")
        try:
            self._config = load_message_config(Path(self.values["config"]))
        except MessageConfigError as error:
            raise ElementError(str(error)) from None
        self._abouts.clear()
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        if batch_of(buffer) is None:
            return Gst.FlowReturn.OK
        for frame in writable_batch(buffer).frames:
            if frame.frame_number % self.values["frame-interval"] == 0:
                payloads = (Payload(as_deepstream(p), self.values["comp-id"]) for p in self._payloads(frame))
                frame.user += [UserMeta(PAYLOAD_META, payload) for payload in payloads]
        return Gst.FlowReturn.OK

    def _payloads(self, frame: FrameMeta) -> Iterator[bytes]:
        source_id = frame.source_id
        about = self._abouts.setdefault(source_id, About.of(self._config, source_id))
        data = {
            "frame": frame.frame_number,
            "time_utc": utc_text(frame.ntp_timestamp or time.time_ns()),
            "objects": [_entry(item) for item in frame.objects],
        }
        if int(self.values["payload-type"]) == MINIMAL:
            return iter((minimal_payload(data, about),))
        return full_payloads(data, about, frame_id(source_id, frame.frame_number, data["time_utc"]))


def as_deepstream(payload: bytes) -> bytes:
    """The same JSON in DeepStream's layout: two blanks per level, ``" : "`` between key and value."""
    text = json.dumps(json.loads(payload), ensure_ascii=False, indent=2, separators=(",", " : "))
    return re.sub(r"^(.* : )\{\}(?=,?$)", r"\1{    }", text, flags=re.MULTILINE).encode()


def _entry(item: ObjectMeta) -> dict[str, Any]:
    rect = item.rect
    return {
        "bbox": (rect.left, rect.top, rect.left + rect.width, rect.top + rect.height),
        "label": item.label,
        "confidence": float(item.confidence),
        "track_id": None if item.object_id == UNTRACKED_OBJECT_ID else item.object_id,
        "attributes": {
            found.classifier_type or str(found.unique_component_id): {"label": found.labels[0].label}
            for found in item.classifiers
            if found.labels
        },
    }


FACTORIES: dict[str, type[Gst.Element]] = {"nvmsgconv": NvMsgConv}

GObject.type_register(NvMsgConv)

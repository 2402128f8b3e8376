"""DeepStream's payloads of frames and objects, as nvmsgconv makes them with ``msg2p-newapi``.

A frame is a mapping of ``frame`` (number), ``time_utc`` and ``objects``; an object of ``bbox`` (x1, y1, x2, y2),
``label``, ``confidence``, ``track_id`` and perhaps ``attributes`` (by classifier, each with a ``label``), as in
configs/schema/event.schema.json.

What nvmsgconv writes as invalid JSON or as 2^64-1 is null here, and empty in the texts of the minimal schema.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from elements.messages.config import AnalyticsModule, MessageConfig, Place, Sensor, Triple
from elements.messages.strict_json import encode

MINIMAL_VERSION = "4.0"
FULL_VERSION = b"1.0"
SEPARATOR, IN_ITS_PLACE = "|", "/"
"""The minimal schema joins fields by this; DeepStream does not escape it in labels, here it is replaced."""


@dataclass(frozen=True)
class About:
    """Where the messages of one source come from; ``None`` where it is not configured."""

    sensor: Sensor | None = None
    place: Place | None = None
    analytics: AnalyticsModule | None = None

    @classmethod
    def of(cls, config: MessageConfig, source_id: int) -> About:
        """What the configuration says of a source."""
        return cls(config.sensors.get(source_id), config.places.get(source_id), config.analytics.get(source_id))

    @cached_property
    def documents(self) -> dict[str, Any]:
        """``place``, ``sensor`` and ``analyticsModule`` of the full schema."""
        return {
            "place": None if self.place is None else _place(self.place),
            "sensor": None if self.sensor is None else _sensor(self.sensor),
            "analyticsModule": None if self.analytics is None else _analytics(self.analytics),
        }

    @cached_property
    def members(self) -> bytes:
        """`documents` as JSON, without the braces: encoding them takes longer than all the rest of a payload."""
        return encode(self.documents)[1:-1]


def full_payloads(frame: Mapping[str, Any], about: About, frame_id: int) -> Iterator[bytes]:
    """The full schema (payload-type 0): a message for each object.

    Args:
        frame: see the module.
        about: of its source.
        frame_id: from `frame_id`; ids of messages and events are made of it.
    """
    same = b'"mdsversion":"%b","@timestamp":%b,%b' % (FULL_VERSION, encode(frame["time_utc"]), about.members)
    for index, item in enumerate(frame["objects"]):
        message, event = uuid_text(frame_id, 2 * index).encode(), uuid_text(frame_id, 2 * index + 1).encode()
        yield b'{"messageid":"%b",%b,"object":%b,"event":{"id":"%b","type":""},"videoPath":""}' % (
            message, same, _object(item), event,
        )  # fmt: skip


def minimal_payload(frame: Mapping[str, Any], about: About) -> bytes:
    """The minimal schema (payload-type 1): a message for the frame, also without objects. Arguments as above."""
    return encode(
        {
            "version": MINIMAL_VERSION,
            "id": str(frame["frame"]),
            "@timestamp": frame["time_utc"],
            "sensorId": "0" if about.sensor is None else about.sensor.id,
            "objects": [_line(item) for item in frame["objects"]],
        }
    )


def frame_id(*parts: Any) -> int:
    """128 bits that the same parts give again and others do not: the same frame, replayed, makes the same ids."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=16).digest())


def uuid_text(frame_id: int, index: int) -> str:
    """A UUID (version 8, RFC 9562) of a frame's message: its low 24 bits are ``index``."""
    bits = frame_id & ~(0xF << 76 | 0x3 << 62 | 0xFFFFFF) | 0x8 << 76 | 0x2 << 62 | index
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# --- full -------------------------------------------------------------------------------------------------------------


def _object(item: Mapping[str, Any]) -> bytes:
    """The object as JSON, put together here: a general encoder takes three times as long."""
    track_id = item["track_id"]
    left, top, right, bottom = map(_whole, item["bbox"])
    return (
        b'{"id":%b,"speed":0.0,"direction":0.0,"orientation":0.0,%b"bbox":{"topleftx":%b,"toplefty":%b,'
        b'"bottomrightx":%b,"bottomrighty":%b},"location":{},"coordinate":{}}'
    ) % (
        b"null" if track_id is None else b'"%d"' % track_id,
        _label_member(item["label"], item["confidence"], item.get("attributes", {})),
        left,
        top,
        right,
        bottom,
    )


def _label_member(label: str, confidence: float | None, attributes: Mapping[str, Any]) -> bytes:
    """The member that is named by the label; empty where another one has that name already."""
    if label in _MEMBERS:
        return b""
    known = b"null" if confidence is None or not math.isfinite(confidence) else repr(float(confidence)).encode()
    others = {name: found["label"] for name, found in attributes.items() if name != "confidence"}
    labels = b"," + encode(others)[1:-1] if others else b""
    return b'%b:{"confidence":%b%b},' % (_encoded(label), known, labels)


_MEMBERS = frozenset(("id", "speed", "direction", "orientation", "bbox", "location", "coordinate"))
_encoded = lru_cache(maxsize=1024)(encode)


def _whole(value: float | None) -> bytes:
    """Cut towards zero, as DeepStream does."""
    return b"null" if value is None or not math.isfinite(value) else b"%d" % value


def _sensor(sensor: Sensor) -> dict[str, Any]:
    return {
        "id": sensor.id,
        "type": sensor.type,
        "description": sensor.description,
        "location": _location(sensor.location),
        "coordinate": _coordinate(sensor.coordinate),
    }


def _place(place: Place) -> dict[str, Any]:
    part, name, level = place.sub_fields
    return {
        "id": place.id,
        "name": place.name,
        "type": place.type,
        "location": _location(place.location),
        "place-sub-field": {
            "id": part,
            "name": name,
            "level": level,
            "coordinate": _coordinate(place.coordinate),
        },
    }


def _analytics(module: AnalyticsModule) -> dict[str, Any]:
    return {
        "id": module.id,
        "description": module.description,
        "source": module.source,
        "version": module.version,
    }


def _location(triple: Triple) -> dict[str, float]:
    return dict(zip(("lat", "lon", "alt"), triple, strict=True))


def _coordinate(triple: Triple) -> dict[str, float]:
    return dict(zip(("x", "y", "z"), triple, strict=True))


# --- minimal ----------------------------------------------------------------------------------------------------------


def _line(item: Mapping[str, Any]) -> str:
    """``id|left|top|right|bottom|label``; after labels of classifiers, newest first: ``|#|label…|confidence``."""
    track_id = item["track_id"]
    fields = ["" if track_id is None else str(track_id), *map(_number, item["bbox"]), _field(item["label"])]
    attributes = item.get("attributes")
    if attributes:
        labels = [_field(attribute["label"]) for attribute in attributes.values()][::-1]
        fields += ["#", *labels, _number(item["confidence"])]
    return SEPARATOR.join(fields)


def _number(value: float | None) -> str:
    """Six significant digits; empty where there is no number."""
    return "" if value is None or not math.isfinite(value) else f"{value:g}"


def _field(label: str) -> str:
    return label.replace(SEPARATOR, IN_ITS_PLACE)

"""Messages of what was found, put into an outbox on disk from which a process of its own delivers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from elements.base import ElementError
from elements.messages.config import MessageConfig, MessageConfigError, Sensor, load_message_config
from elements.messages.payloads import About, frame_id, full_payloads, minimal_payload, uuid_text
from elements.messages.strict_json import encode
from pipelines.delivery.broker import BadOptionError, MissingLibraryError
from pipelines.delivery.delivery import Delivery, Settings
from pipelines.delivery.store import Counters, Message, OutboxError
from pipelines.operators.base import Operator, Report
from pipelines.operators.content import Content
from pipelines.operators.exchange import EVENTS
from pipelines.operators.frame_event import EventMaker

EVENTS_VERSION = "1.0"
"""Of configs/schema/message.schema.json. The first number changes when a receiver of the old one would be misled."""
FINISH_S = 3.0
_NOWHERE = ({"lat": 0.0, "lon": 0.0, "alt": 0.0}, {"x": 0.0, "y": 0.0, "z": 0.0})
"""What nobody configured is left out of our own schema: zeros would be taken for a place."""


class MessageMaker:
    """Makes the messages of frames: plain data, all places in source-frame pixels.

    Args:
        stage: the stage's name, part of what message ids are made of.
        pipeline: the definition's name.
        sources: source names, indexed by source id; a source without a configured sensor has one of its name.
        content: what to tell.
        padding: whether the stream mux keeps the aspect ratio by padding.
        mux_size: see `EventMaker`.

    Raises:
        MessageConfigError: the configuration file cannot be used.
    """

    def __init__(
        self,
        stage: str,
        pipeline: str,
        sources: Sequence[str],
        content: Content,
        padding: bool,
        mux_size: tuple[int, int] | None = None,
    ) -> None:
        self._stage, self._content = stage, content
        self._about = _abouts(sources, content)
        ours = content.schema == "events"
        self._maker = EventMaker(
            pipeline, sources, padding, mux_size, ours and content.embeddings, masks=ours, keep=_filter(content)
        )
        self._payloads = {"events": self._events, "minimal": self._minimal, "full": self._full}[content.schema]

    def payloads(self, frame: Any) -> Iterator[bytes]:
        """The messages of a frame (pyservicemaker's FrameMetadata): JSON in UTF-8."""
        wanted = frame.frame_number % self._content.frame_interval == 0
        if not wanted and self._content.schema != "events":
            return iter(())
        event = self._maker.event_of(frame)
        if not (wanted or event.get(EVENTS)):
            return iter(())
        if self._content.when != "always" and not event.get(self._content.when):
            return iter(())
        return self._payloads(event, self._about[frame.source_id])

    def _events(self, event: dict[str, Any], about: About) -> Iterator[bytes]:
        head = {"schema_version": EVENTS_VERSION, "id": uuid_text(self._frame_id(event), 0)}
        yield encode(head)[:-1] + b"," + _members(about) + b"," + encode(event)[1:]

    def _minimal(self, event: dict[str, Any], about: About) -> Iterator[bytes]:
        yield minimal_payload(event, about)

    def _full(self, event: dict[str, Any], about: About) -> Iterator[bytes]:
        return full_payloads(event, about, self._frame_id(event))

    def _frame_id(self, event: Mapping[str, Any]) -> int:
        return frame_id(event["pipeline"], self._stage, event["source"], event["frame"], event["time_utc"])


class MessageSender(Operator):
    """Puts a message for each frame or object into the outbox; never waits for a broker.

    Args:
        settings: where messages go, and their outbox.
        report: see `Operator`.

    The other arguments are those of `MessageMaker`.

    Raises:
        ElementError: what is needed to deliver is not there, or the configuration cannot be used.
    """

    def __init__(
        self,
        stage: str,
        pipeline: str,
        sources: Sequence[str],
        content: Content,
        settings: Settings,
        padding: bool,
        report: Report,
        mux_size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(report)
        self._sources, self._topic = sources, settings.connection.topic
        try:
            self._maker = MessageMaker(stage, pipeline, sources, content, padding, mux_size)
            self.delivery = Delivery(settings)
        except (MessageConfigError, MissingLibraryError, BadOptionError, OutboxError) as error:
            raise ElementError(str(error)) from None
        self._final: Counters | None = None

    @property
    def stats(self) -> dict[str, int]:
        """Messages since the outbox was made: made, and delivered, queued or dropped since."""
        counters = self._final or self.delivery.status().counters
        return {
            "made": counters.made,
            "delivered": counters.delivered,
            "queued": counters.queued,
            "dropped": sum(counters.dropped.values()),
        }

    def process(self, batch_meta: Any) -> None:
        """Put the messages of one batch into the outbox, in one transaction."""
        messages = [
            Message(self._sources[frame.source_id], self._topic, payload)
            for frame in batch_meta.frame_items
            for payload in self._maker.payloads(frame)
        ]
        if messages:
            self.delivery.put(messages)

    def close(self) -> None:
        """Send what is queued for at most `FINISH_S`, unless the broker is away; the rest stays for the next run."""
        status = self.delivery.status()
        away = status.state == "waiting" or status.error
        self._final = self.delivery.close(0.0 if away else FINISH_S)


def _abouts(sources: Sequence[str], content: Content) -> list[About]:
    """Who sends, by source id."""
    in_file = load_message_config(content.config) if content.config is not None else MessageConfig()
    given = content.config_by_source
    merged = MessageConfig(
        {**in_file.sensors, **given.sensors},
        {**in_file.places, **given.places},
        {**in_file.analytics, **given.analytics},
    )
    abouts = [About.of(merged, source_id) for source_id in range(len(sources))]
    return [
        about if about.sensor is not None else replace(about, sensor=Sensor(name))
        for about, name in zip(abouts, sources, strict=True)
    ]


@lru_cache(maxsize=1024)
def _members(about: About) -> bytes:
    """Who sends, as members of a message of the schema ``events``."""
    documents = about.documents
    sensor = {key: value for key, value in (documents["sensor"] or {}).items() if value not in _NOWHERE}
    known = {
        "sensor": sensor, "place": documents["place"], "analytics_module": documents["analyticsModule"]
    }  # fmt: skip
    return encode({key: document for key, document in known.items() if document is not None})[1:-1]


def _filter(content: Content) -> Callable[[Any], bool] | None:
    """Which objects (pyservicemaker's ObjectMetadata) to tell of; ``None``: all."""
    classes, components = frozenset(content.classes), frozenset(content.component_ids)
    if not classes and not components:
        return None

    def keep(item: Any) -> bool:
        return (not components or item.unique_component_id in components) and (
            not classes or item.class_id in classes or item.label in classes
        )

    return keep

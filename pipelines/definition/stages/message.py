"""The message stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo

from elements.messages.config import AnalyticsModule, Place, Sensor
from pipelines.definition.fields import (
    Boolean,
    Bytes,
    Duration,
    FilePath,
    Integer,
    Line,
    Name,
    Number,
    SecretText,
    Text,
    as_path,
)
from pipelines.definition.sections import OneKey, Section, option
from pipelines.definition.stages.types import ClassFilter, Params, StageName
from pipelines.delivery.connection import Connection, Tls, parse_connection

Triple = tuple[Number, Number, Number]
_ORIGIN = (0.0, 0.0, 0.0)


def _beside_the_definition(value: SecretStr, info: ValidationInfo) -> SecretStr:
    """The path of a file, from the definition's folder."""
    if info.data.get("broker") != "file" or value.get_secret_value().startswith("file://"):
        return value
    return SecretStr(str(as_path(value.get_secret_value(), info)))


class SensorSection(Section):
    """What messages say of a source's camera."""

    id: Line = Field(description="Id of the sensor.")
    type: Text = option("Camera", description="Kind of sensor.")
    description: Text = option("", description="What it is, for people.")
    location: Triple = option(_ORIGIN, description="Latitude, longitude, altitude.")
    coordinate: Triple = option(_ORIGIN, description="x, y, z in the place's own frame.")

    def plain(self) -> Sensor:
        """As messages take it."""
        return Sensor(**self.model_dump())


class PlaceSection(Section):
    """What messages say of the place where a source's camera is."""

    id: Line = Field(description="Id of the place.")
    name: Text = option("", description="Its name.")
    type: Text = option("", description="Kind of place.")
    location: Triple = option(_ORIGIN, description="Latitude, longitude, altitude.")
    coordinate: Triple = option(_ORIGIN, description="x, y, z of the part of the place.")
    sub_fields: tuple[Text, Text, Text] = option(
        ("", "", ""), description="Id, name and level of the part of the place: an aisle, an entrance, a parking spot."
    )

    def plain(self) -> Place:
        """As messages take it."""
        return Place(**self.model_dump())


class AnalyticsSection(Section):
    """What messages say of the module that found the objects."""

    id: Line = Field(description="Id of the module.")
    description: Text = option("", description="What it does.")
    source: Text = option("", description="Where it comes from.")
    version: Text = option("", description="Its version.")

    def plain(self) -> AnalyticsModule:
        """As messages take it."""
        return AnalyticsModule(**self.model_dump())


class TlsSection(Section):
    """Files for TLS (PEM); with one of them the connection is encrypted, as with a URL such as mqtts://."""

    ca: FilePath | None = option(None, description="Certificate authorities to trust; default: the system's.")
    cert: FilePath | None = option(None, description="Certificate of ours, if the broker asks for one.")
    key: FilePath | None = option(None, description="Private key of our certificate.")

    def plain(self) -> Tls | None:
        """As the connection takes it; ``None`` if no file is given."""
        return Tls(self.ca, self.cert, self.key) if self.ca or self.cert or self.key else None


class OutboxSection(Section):
    """Where messages wait until they are delivered, and how many may."""

    folder: FilePath = option(
        "outbox", description="Folder on a local disk; the file in it is named after pipeline and stage."
    )
    max_size: Bytes = option("1G", ge=1_000_000, description="Largest size on disk.")
    max_age: Duration = option("168h", gt=0, description="Older messages are dropped.")
    when_full: Literal["drop-oldest", "drop-newest"] = option(
        "drop-oldest", description="Which messages go (and are counted) when there is no room."
    )


class MessageStage(OneKey):
    """Send what was found so far to a broker, in DeepStream's payloads or in ours."""

    KEY: ClassVar[str] = "message"

    payload: Literal["events", "minimal", "full"] = option(
        "events",
        alias="schema",
        title="Schema",
        description="events: ours, a message per frame; DeepStream's minimal (per frame) and full (per object).",
    )
    broker: Literal["kafka", "mqtt", "amqp", "redis", "nats", "webhook", "file"] = Field(
        description="Kind of broker; webhook and file are none, but take messages as well."
    )
    connection: Annotated[SecretText, AfterValidator(_beside_the_definition)] = Field(
        description="host;port as in DeepStream, host:port, or a URL; for file, a path. Never printed."
    )
    topic: Text = option("", description="Topic, routing key (amqp), stream (redis) or subject (nats).")
    name: StageName | None = option(None, description="Name of this stage; default: message, message-2 …")
    delivery: Literal["durable", "direct"] = option(
        "durable",
        description="durable: through an outbox on disk, nothing is lost while the broker is away; direct: by "
        "DeepStream's nvmsgconv and nvmsgbroker.",
    )
    username: Text | None = option(None, description="Log-in name.")
    password: SecretText | None = option(None, description="Password; never printed.")
    tls: TlsSection = option({}, title="Tls", description="Files for TLS.")
    options: Params = option(None, description="Further options of the broker's adapter.")
    timeout: Duration = option("10s", gt=0, description="How long the broker has to answer.")
    config: FilePath | None = option(
        None, description="DeepStream's message converter configuration; N of sensorN is the source's position."
    )
    sensors: dict[Name, SensorSection] = option({}, description="Sensors by source; default: id is the source's name.")
    places: dict[Name, PlaceSection] = option({}, description="Places by source.")
    analytics: dict[Name, AnalyticsSection] = option({}, description="Analytics modules by source.")
    frame_interval: Integer = option(
        1, ge=1, description="Messages of every Nth frame; frames with events are always sent with schema: events."
    )
    when: Literal["always", "objects", "events"] = option(
        "always", description="always: of every frame; objects, events: only of frames that have some."
    )
    classes: Annotated[tuple[ClassFilter, ...], Field(min_length=1)] | None = option(
        None, description="Classes to tell of, names or ids; default: all."
    )
    stages: Annotated[tuple[Name, ...], Field(min_length=1)] | None = option(
        None, description="Infer stages whose objects to tell of; default: all."
    )
    embeddings: Boolean = option(False, description="Send the objects' embeddings, too (schema: events).")
    outbox: OutboxSection = option({}, title="Outbox", description="Where messages wait until they are delivered.")
    adaptor_config: FilePath | None = option(
        None, description="Configuration file of DeepStream's protocol adaptor (delivery: direct)."
    )

    def broker_connection(self) -> Connection:
        """Where messages go.

        Raises:
            AddressError: the address cannot be read.
        """
        address = self.connection.get_secret_value()
        return parse_connection(
            self.broker,
            address,
            topic=self.topic,
            username=self.username,
            password=self.password,
            tls=self.tls.plain(),
            options={key: _option_text(value) for key, value in self.options.get_secret_value().items()},
        )

    def outbox_file(self, pipeline: str) -> Path:
        """The outbox of this stage in a pipeline of that name."""
        return self.outbox.folder / f"{pipeline}-{self.name}.db"


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

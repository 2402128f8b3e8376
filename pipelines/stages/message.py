"""The message stage: an operator with an outbox, or a branch of DeepStream's message elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from elements.messages.config import MessageConfig
from pipelines.definition import MessageStage
from pipelines.definition.stages.message import AnalyticsSection, PlaceSection, SensorSection
from pipelines.delivery.delivery import Settings
from pipelines.delivery.outbox import Limits
from pipelines.draft import Draft, Facts
from pipelines.graph import Attachment, PropertyValue
from pipelines.operators.content import Content

OPERATOR = "pipelines.operators.message:MessageSender"
ADAPTORS = {
    "kafka": "libnvds_kafka_proto.so",
    "mqtt": "libnvds_mqtt_proto.so",
    "amqp": "libnvds_amqp_proto.so",
    "redis": "libnvds_redis_proto.so",
}
LIBRARIES = "/opt/nvidia/deepstream/deepstream/lib"
PAYLOAD_TYPES = {"full": 0, "minimal": 1}
LEAK_OLDEST = 2
DIRECT_QUEUE_BATCHES = 64

Item = TypeVar("Item", SensorSection, PlaceSection, AnalyticsSection)


def add_message(draft: Draft, stage: MessageStage, origin: str, facts: Facts) -> None:
    """Attach the operator behind a queue of its own, or branch off to nvmsgconv and nvmsgbroker."""
    if stage.delivery == "direct":
        _add_direct(draft, stage, origin)
        return
    draft.add_queue(f"{stage.name}-queue", origin)
    params = {
        "stage": str(stage.name),
        "pipeline": draft.graph.name,
        "sources": list(draft.sources),
        "content": content_of(draft, stage),
        "settings": settings_of(stage, draft.graph.name),
        "padding": draft.padding,
        "mux_size": draft.mux_size,
        "report": "@report",
    }
    draft.graph.attach(Attachment(draft.tail, str(stage.name), OPERATOR, params, origin=origin))


def settings_of(stage: MessageStage, pipeline: str) -> Settings:
    """Broker and outbox of a stage in a pipeline of that name."""
    limits = Limits(stage.outbox.max_size, stage.outbox.max_age, stage.outbox.when_full)
    return Settings(stage.broker_connection(), stage.outbox_file(pipeline), limits, stage.timeout)


def content_of(draft: Draft, stage: MessageStage) -> Content:
    """What the stage tells. Infer stages that it names are in the graph, unless nothing is inferred (replay)."""
    nodes = draft.graph.nodes
    components = [nodes[name].properties["unique-id"] for name in stage.stages or () if name in nodes]
    config = MessageConfig(
        {i: section.plain() for i, section in _by_id(draft.sources, stage.sensors).items()},
        {i: section.plain() for i, section in _by_id(draft.sources, stage.places).items()},
        {i: section.plain() for i, section in _by_id(draft.sources, stage.analytics).items()},
    )
    return Content(
        stage.payload,
        stage.when,
        stage.frame_interval,
        stage.classes or (),
        [int(component) for component in components],
        stage.embeddings,
        stage.config,
        config,
    )


def _by_id(sources: Sequence[str], sections: Mapping[str, Item]) -> dict[int, Item]:
    return {sources.index(name): section for name, section in sections.items()}


def _add_direct(draft: Draft, stage: MessageStage, origin: str) -> None:
    """A branch whose queue drops the oldest batches when the broker is slow; the video does not wait."""
    name = str(stage.name)
    tee = draft.add(f"{name}-tee", "tee", origin)
    leaky: dict[str, PropertyValue] = {
        "max-size-buffers": DIRECT_QUEUE_BATCHES, "max-size-bytes": 0, "max-size-time": 0, "leaky": LEAK_OLDEST
    }  # fmt: skip
    draft.add(f"{name}-direct-queue", "queue", origin, leaky)
    converter: dict[str, PropertyValue] = {
        "config": str(stage.config),
        "payload-type": PAYLOAD_TYPES[stage.payload],
        "msg2p-newapi": True,
        "frame-interval": stage.frame_interval,
    }
    draft.add(f"{name}-convert", "nvmsgconv", origin, converter)
    broker: dict[str, PropertyValue] = {
        "proto-lib": f"{LIBRARIES}/{ADAPTORS[stage.broker]}",
        "conn-str": stage.connection.get_secret_value(),
        "topic": stage.broker_connection().topic,
        "new-api": True,
        "sync": False,
        "async": False,
    }
    if stage.adaptor_config is not None:
        broker["config"] = str(stage.adaptor_config)
    draft.add(f"{name}", "nvmsgbroker", origin, broker, secret={"conn-str"})
    draft.tail = tee
    draft.add_queue(f"{name}-queue", origin)

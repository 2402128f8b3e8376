"""Checks of message stages that need more than one value, or other parts of the definition."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from elements.messages.config import MessageConfigError, load_message_config
from pipelines.definition.document import Document
from pipelines.definition.outputs import EventsOutput, Output
from pipelines.definition.problems import KeyPath
from pipelines.definition.sources import Source
from pipelines.definition.stages import InferStage, MessageStage, Stage
from pipelines.definition.validation import did_you_mean
from pipelines.delivery.broker import BadOptionError, MissingLibraryError, broker_class
from pipelines.delivery.connection import AddressError, Connection

WITHOUT_TOPIC = ("webhook", "file")
DIRECT_SCHEMAS = ("minimal", "full")
DIRECT_BROKERS = ("kafka", "mqtt", "amqp", "redis")
DURABLE_KEYS = (
    *("sensors", "places", "analytics", "when", "classes", "stages", "embeddings"),
    *("username", "password", "tls", "options", "outbox", "timeout"),
)
"""Keys that nvmsgconv and nvmsgbroker have no counterpart for, or take from `config` and `adaptor_config`."""


def check_message_stages(
    document: Document, sources: Mapping[int, Source], stages: Mapping[int, Stage], outputs: Mapping[int, Output]
) -> None:
    """Add what is wrong with message stages to the problems of ``document``. ``sources`` and ``stages`` have names."""
    written = {os.path.realpath(output.path) for output in outputs.values() if isinstance(output, EventsOutput)}
    names = [str(source.name) for source in sources.values()]
    before: list[str] = []
    for index, stage in stages.items():
        if isinstance(stage, InferStage):
            before.append(str(stage.name))
        if isinstance(stage, MessageStage):
            path: KeyPath = ("stages", index, "message")
            _check_connection(document, path, stage, written)
            _check_sources(document, path, stage, names)
            _check_infer_stages(document, path, stage, before)
            _check_config(document, path, stage)
            if stage.delivery == "direct":
                _check_direct(document, path, stage)
            elif stage.adaptor_config is not None:
                key = (*path, "adaptor_config")
                document.problem(key, "is for delivery: direct", "use username, password, tls and options", of_key=True)


def _check_connection(document: Document, path: KeyPath, stage: MessageStage, written: Collection[str]) -> None:
    try:
        connection = stage.broker_connection()
    except AddressError as error:
        document.problem((*path, "connection"), str(error))
        return
    if connection.broker == "file" and os.path.realpath(connection.path) in written:
        document.problem((*path, "connection"), "is written by an events output, too", "write to another file")
    if not connection.topic and stage.broker not in WITHOUT_TOPIC:
        document.problem((*path, "topic"), "is missing", f"{stage.broker} needs one")
    if stage.delivery == "durable":
        _check_options(document, path, connection)


def _check_options(document: Document, path: KeyPath, connection: Connection) -> None:
    try:
        broker_class(connection.broker)(connection)
    except BadOptionError as error:
        document.problem((*path, "options"), str(error))
    except MissingLibraryError:
        pass  # a matter of the machine that runs it, which tells then


def _check_sources(document: Document, path: KeyPath, stage: MessageStage, names: list[str]) -> None:
    for key in ("sensors", "places", "analytics"):
        for name in getattr(stage, key):
            if name not in names:
                hint = did_you_mean(name, names) or f"there are: {', '.join(names)}"
                document.problem((*path, key, name), f"no source is named '{name}'", hint, of_key=True)


def _check_infer_stages(document: Document, path: KeyPath, stage: MessageStage, before: list[str]) -> None:
    for place, name in enumerate(stage.stages or ()):
        if name not in before:
            hint = did_you_mean(name, before) or (f"there are: {', '.join(before)}" if before else "none comes before")
            key = (*path, "stages", place)
            document.problem(key, f"no infer stage before this one is named {document.shown(key)}", hint)


def _check_config(document: Document, path: KeyPath, stage: MessageStage) -> None:
    if stage.config is None or not document.look_for_files:
        return
    try:
        load_message_config(stage.config)
    except MessageConfigError as error:  # a file that is not there has been told already
        document.problem((*path, "config"), str(error))


def _check_direct(document: Document, path: KeyPath, stage: MessageStage) -> None:
    """What DeepStream's elements cannot do."""
    if stage.payload not in DIRECT_SCHEMAS:
        hint = "set schema to minimal or full, or delivery to durable"
        document.problem((*path, "schema"), "delivery: direct sends DeepStream's schemas only", hint)
    if stage.broker not in DIRECT_BROKERS:
        hint = f"it has {', '.join(DIRECT_BROKERS)}; or set delivery to durable"
        document.problem((*path, "broker"), f"DeepStream has no adaptor for {stage.broker}", hint)
    if stage.config is None:
        document.problem((*path, "config"), "is missing", "delivery: direct needs DeepStream's converter configuration")
    for key in DURABLE_KEYS:
        if document.at((*path, key)) is not None:
            hint = "remove it, or set delivery to durable"
            if key in ("username", "password", "tls", "options"):
                hint = "write it into the file that adaptor_config names, or set delivery to durable"
            document.problem((*path, key), "has no effect with delivery: direct", hint, of_key=True)

"""Sources: the videos and cameras that a pipeline reads."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, PrivateAttr, SecretStr, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from pipelines.definition import uris
from pipelines.definition.fields import (
    Boolean,
    Duration,
    Integer,
    Name,
    SecretText,
    Text,
    base_directory,
    wrong,
    wrong_text,
)
from pipelines.definition.problems import redact_parameters
from pipelines.definition.sections import Section, option
from pipelines.definition.source_infer import SourceInfer


def _check_uri(uri: str) -> str:
    scheme = uris.scheme_of(uri)
    if not uri.strip():
        raise wrong_text("is empty", "write a path or an address")
    if scheme and scheme not in uris.SCHEMES:
        near = difflib.get_close_matches(scheme, ("rtsp", "http", "https", "file"), 1)
        hint = f"did you mean '{near[0]}://'?" if near else "use file, rtsp, http, https or a plain path"
        raise wrong("has an unknown scheme", hint)
    if scheme == "file" and "%00" in uri:
        raise wrong("holds a zero byte ('%00')", "remove it")
    if scheme and uri.endswith("://"):
        raise wrong("has nothing after the scheme", "write the whole address")
    return uri


def _check_attempts(attempts: int) -> int:
    if attempts == 0:  # DeepStream would take it for "for ever"
        raise wrong(
            "is neither a number of attempts nor for ever", "write -1 for ever, or 1 to give up after one attempt"
        )
    return attempts


class Reconnect(Section):
    """How a lost live source is connected to again: waits grow from `delay` to `max_delay`, doubling."""

    delay: Duration = option("1s", ge=0, description="Wait before the first new attempt.")
    max_delay: Duration = option("30s", ge=0, description="Longest wait between attempts.")
    attempts: Annotated[Integer, AfterValidator(_check_attempts)] = option(
        -1,
        ge=-1,
        json_schema_extra={"not": {"const": 0}},
        description="Attempts before the source counts as failed, at least 1; -1: for ever.",
    )


class Source(Section):
    """A video file or a camera. A plain string is short for a mapping with only `uri`."""

    name: Name | None = option(None, description="Name in logs, events and file names; default: file stem or host.")
    uri: Annotated[Text, AfterValidator(_check_uri)] = Field(
        repr=False,
        description="Path as typed (relative to this file), file://, rtsp:// or http(s)://.",
    )
    username: Text | None = option(None, description="User name for rtsp and http.")
    password: SecretText | None = option(None, description="Password for rtsp and http; never printed.")
    latency: Duration = option("100ms", ge=0, description="Jitter buffer of an rtsp source.")
    timeout: Duration = option(
        "10s", gt=0, description="Silence after which a live source counts as lost; rounded up to seconds."
    )
    reconnect: Reconnect = option({}, title="Reconnect", description="How to connect to a lost live source again.")
    loop: Boolean = option(False, description="Start a file again at its end, for ever.")
    infer: dict[Text, SourceInfer] = option(
        {}, description="What infer stages do otherwise for this source, by the stage's name."
    )

    _location: str = PrivateAttr("")

    @model_validator(mode="before")
    @classmethod
    def accept(cls, data: Any) -> Any:
        """A plain string is the uri; ``user:password@`` in the uri moves to the keys of its own."""
        if data is None or isinstance(data, str):
            data = {} if data is None else {"uri": data}
        if not isinstance(data, Mapping) or not isinstance(data.get("uri"), str):
            return data
        try:
            uri, credentials = uris.split_credentials(data["uri"])
        except ValueError as error:
            raise wrong_text(str(error), "write 'username' and 'password' as separate keys") from None
        if credentials is None:
            return data
        if data.get("username") is not None or data.get("password") is not None:
            raise wrong_text("has credentials in 'uri' and in 'username' or 'password'", "remove one of the two")
        return {**data, "uri": uri, "username": credentials.username, "password": credentials.password}

    def model_post_init(self, context: Any) -> None:
        """Find the location: relative paths start from the definition's folder."""
        if self.kind == "file":
            self._location = str(uris.file_path(self.uri, base_directory(context).absolute()))
        else:
            self._location = redact_parameters(self.uri)

    @property
    def kind(self) -> uris.Kind:
        """``file``, ``rtsp`` or ``http``."""
        return uris.SCHEMES.get(uris.scheme_of(self.uri), "file")

    @property
    def live(self) -> bool:
        """True when silence or end of stream means that the source was lost."""
        return self.kind == "rtsp"

    @property
    def location(self) -> str:
        """Absolute path, or the URI without credentials: fit to be printed."""
        return self._location

    @property
    def gst_uri(self) -> SecretStr:
        """The URI for GStreamer, percent-encoded, with credentials."""
        if self.kind == "file":
            return SecretStr(uris.file_uri(Path(self._location)))
        password = self.password.get_secret_value() if self.password is not None else None
        return SecretStr(uris.network_uri(self.uri, self.username, password))

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        mapping = super().__get_pydantic_json_schema__(core, handler)
        path = {"type": "string", "title": "uri", "description": "Path or address."}
        return {"title": "source", "description": cls.__doc__, "anyOf": [path, mapping]}


def with_names(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The same sources, each with a name of its own."""
    names = uris.unique_names([s.name for s in sources], [uris.default_name(s.uri) for s in sources])
    return tuple(s.model_copy(update={"name": name}) for s, name in zip(sources, names, strict=True))

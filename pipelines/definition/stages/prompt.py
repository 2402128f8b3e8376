"""The prompt stage."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from pipelines.definition.analytics import Polygon
from pipelines.definition.fields import Auto, Duration, Integer, Line, Name, Number, SecretText, Text, wrong, wrong_text
from pipelines.definition.sections import OneKey, Section, option
from pipelines.definition.stages.types import ClassFilter, Params, StageName, plain_tree


def _check_endpoint(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname
        _port = parts.port  # raises ValueError
    except ValueError:
        known = False
    if not known:
        raise wrong_text("is no http or https address", "write the base URL, as in http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise wrong_text("has more than host and path in it", "write a key as 'api_key: ${VLM_KEY}'")
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise wrong("is more than the base URL", "leave out /chat/completions")
    return url


def _check_not_empty(text: str) -> str:
    if not text.strip():
        raise wrong_text("is empty", "write what is to be asked")
    return text


def _parse_schema(value: Any) -> dict[str, Any]:
    plain = plain_tree(value)
    if not isinstance(plain, dict):
        raise wrong_text("is not a mapping", "write a JSON Schema: {type: object, required: [colour]}")
    return plain


Endpoint = Annotated[Text, AfterValidator(_check_endpoint)]
Question = Annotated[Text, AfterValidator(_check_not_empty)]
AnswerSchema = Annotated[dict[str, Any], PlainValidator(_parse_schema), WithJsonSchema({"type": "object"})]


class PromptTrigger(Section):
    """When somebody is asked about: all that is given must hold."""

    classes: tuple[ClassFilter, ...] | None = option(
        None, min_length=1, description="Classes of the objects, names or ids; default: all."
    )
    min_age: Auto[Duration] = option(
        "auto", description="How long a track must have been seen; auto: as long as 'within' if 'frames' is above 1."
    )
    zones: tuple[Polygon, ...] | None = option(
        None, min_length=1, description="An object must stand in one of these polygons, points from 0 to 1."
    )
    events: tuple[Name, ...] | None = option(
        None,
        min_length=1,
        description="Events of stages before it that name the track, or are in the frame.",
    )
    interval: Duration | None = option(None, description="Least time between two questions about one source.")


class PromptBudget(Section):
    """What the endpoint may be asked in any 60 seconds (of the clock, not of the video)."""

    requests_per_minute: Auto[Integer] = option("auto", ge=1, description="Most requests; auto: any number.")
    tokens_per_minute: Auto[Integer] = option(
        "auto", ge=1, description="Most tokens, of questions and answers, as the endpoint tells; auto: any number."
    )


class PromptStage(OneKey):
    """Ask a vision-language model about tracks or frames, beside the stream (pyprompt)."""

    KEY: ClassVar[str] = "prompt"

    endpoint: Endpoint = Field(description="Base URL of an OpenAI-compatible endpoint: http://localhost:8000/v1.")
    model: Line = Field(description="Model, as the endpoint calls it.")
    text: Question = Field(description="What is asked; {label}, {source} and {track_id} are filled in.")
    name: StageName | None = option(None, description="Name of this stage; default: prompt, prompt-2 …")
    api_key: SecretText | None = option(None, description="Sent as bearer token; never printed.")
    params: Params = option(None, description="Further keys of each request: {temperature: 0}.")
    per: Literal["track", "frame"] = option(
        "track", description="What a question is about: a tracked object, once; or a whole frame."
    )
    trigger: PromptTrigger = option({}, title="Trigger", description="When somebody is asked about.")
    refresh: Auto[Duration] = option(
        "auto", description="Time after which a track is asked about again; auto: once per track."
    )
    frames: Integer = option(1, ge=1, le=32, description="Most pictures of a question, the best ones.")
    within: Duration = option("2s", gt=0, description="How old pictures may be.")
    margin: Number = option(0.1, ge=0, le=4, description="What is shown around an object, as a share of its size.")
    max_side: Integer = option(768, ge=16, le=8192, description="Longest side of a picture, pixels.")
    answer: Literal["text", "json"] = option("text", description="What the answer must be.")
    answer_schema: AnswerSchema | None = option(None, description="JSON Schema that a JSON answer must fit.")
    attribute: Name | None = option(
        None, description="Name under which objects carry the answer; default: the stage's name."
    )
    budget: PromptBudget = option({}, title="Budget", description="What the endpoint may be asked in a minute.")
    max_tokens: Auto[Integer] = option(
        256, ge=1, description="Longest answer, tokens; auto: as the endpoint likes ('max_tokens' is not sent)."
    )
    timeout: Duration = option("30s", gt=0, description="Longest wait for an answer.")
    retries: Integer = option(2, ge=0, le=100, description="Further attempts after failures that may pass.")
    concurrent: Integer = option(4, ge=1, le=256, description="Most requests at the same time.")
    queue: Integer = option(64, ge=1, le=100_000, description="Most questions that wait.")
    overflow: Literal["drop-oldest", "drop-newest"] = option(
        "drop-oldest", description="Which question goes (and is counted) when no more may wait."
    )
    finish: Duration = option(
        "5s", ge=0, description="How long the end of files waits for open answers; 0s: not at all. Cameras never wait."
    )
    on_error: Literal["skip", "stop"] = option(
        "skip", description="When a question stays without an answer: count it, or stop the run."
    )

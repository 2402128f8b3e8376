"""An OpenAI-compatible endpoint: POST /chat/completions, through urllib3."""

from __future__ import annotations

import base64
import email.utils
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elements.prompting.options import PromptError, PromptOptions
from elements.prompting.pictures import Picture

MOST_BYTES = 1 << 20
"""A longer answer is none."""
_PASSING = (408, 409, 425, 429)  # and 5xx: another attempt may succeed
_OF_THE_REQUEST = (400, 413, 415, 422)  # another request may succeed
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")  # as OpenAI checks the name of a schema
_SHOWN = 200  # characters of what the endpoint says


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint answered.

    Attributes:
        text: of the answer.
        model: that made it, as the endpoint calls it.
        tokens: of question and answer together; 0 if the endpoint does not tell.
        truncated: the answer was cut at ``max_tokens``.
    """

    text: str
    model: str
    tokens: int
    truncated: bool


class RequestError(Exception):
    """A request brought no answer. The text says why; it holds no secret.

    Attributes:
        kind: the same for all errors of a kind: ``HTTP 429``, ``time-out``.
        passing: whether another attempt may succeed.
        retry_after: seconds that the endpoint asks to wait, ``None`` if it does not; 0 where there is no need.
        tokens: what the attempt cost, as far as the endpoint tells.
    """

    def __init__(
        self, kind: str, text: str, passing: bool = True, retry_after: float | None = None, tokens: int = 0
    ) -> None:
        super().__init__(text)
        self.kind, self.passing, self.retry_after, self.tokens = kind, passing, retry_after, tokens


class ChatClient:
    """Sends questions. Thread-safe.

    Args:
        options: of the stage.
        api_key: sent as bearer token; empty: none.
        params: further keys of the request's body (``temperature``).

    Raises:
        PromptError: if urllib3 is not installed.
    """

    def __init__(self, options: PromptOptions, api_key: str = "", params: Mapping[str, Any] | None = None) -> None:
        try:
            import urllib3
        except ImportError:
            raise PromptError(
                "prompts are sent by urllib3, which is not installed: pip install 'gstorch[prompt]'"
            ) from None
        self._options, self._key, self._params = options, api_key, dict(params or {})
        self._url = f"{options.endpoint.rstrip('/')}/chat/completions"
        self._headers = {"Content-Type": "application/json", "User-Agent": "gstorch"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._pool = urllib3.PoolManager(maxsize=options.concurrent, retries=False)

    def ask(self, text: str, pictures: Sequence[Picture]) -> Reply:
        """Ask and wait for the answer.

        Raises:
            RequestError: if there is none.
        """
        status, headers, data = self._post(json.dumps(self._body(text, pictures)).encode())
        if status != 200:
            passing = status in _PASSING or status >= 500
            said = f"HTTP {status}{self._said(data)}"
            pause = 0.0 if status in _OF_THE_REQUEST else retry_after_s(headers.get("Retry-After"))
            raise RequestError(f"HTTP {status}", said, passing, pause)
        return self._reply(data)

    def close(self) -> None:
        """Let go of the sockets that are idle."""
        self._pool.clear()

    def _body(self, text: str, pictures: Sequence[Picture]) -> dict[str, Any]:
        options = self._options
        content: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(p.jpeg).decode()}"}}
            for p in pictures
        ]
        content.append({"type": "text", "text": text})
        body: dict[str, Any] = {"model": options.model, "messages": [{"role": "user", "content": content}]}
        if options.max_tokens:
            body["max_tokens"] = options.max_tokens
        if options.answer_schema is not None:
            name = _NOT_IN_A_NAME.sub("_", options.attribute or "answer")[:64]
            schema = {"name": name, "schema": options.answer_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif options.answer == "json":
            body["response_format"] = {"type": "json_object"}
        return {**body, **self._params}

    def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        import urllib3

        limit = self._options.timeout
        ends = time.monotonic() + limit
        timeout = urllib3.Timeout(total=limit)
        try:
            response = self._pool.request(
                "POST", self._url, body=body, headers=self._headers, timeout=timeout, redirect=False,
                preload_content=False,
            )  # fmt: skip
            try:
                return response.status, response.headers, _read(response, ends, limit)
            finally:
                response.release_conn()
        except urllib3.exceptions.TimeoutError as error:
            if isinstance(error, urllib3.exceptions.ConnectTimeoutError) and not isinstance(
                error, urllib3.exceptions.NewConnectionError
            ):
                raise RequestError("time-out", f"no connection within {limit:g} s") from None
            if isinstance(error, urllib3.exceptions.NewConnectionError):
                raise RequestError("no connection", self._clean(str(error))) from None
            raise RequestError("time-out", f"no answer within {limit:g} s") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise RequestError("connection", self._clean(f"the connection failed: {error}")) from None

    def _reply(self, data: bytes) -> Reply:
        try:
            found = json.loads(data)
            choice = found["choices"][0]
            usage = found.get("usage") or {}
            tokens = int(usage.get("total_tokens") or 0)
            text = _text_of(choice["message"]["content"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise RequestError(
                "not a chat completion", f"the endpoint answered no chat completion{self._said(data)}"
            ) from None
        cut = choice.get("finish_reason") == "length"
        return Reply(text, str(found.get("model") or self._options.model), tokens, cut)

    def _said(self, data: bytes) -> str:
        """What the endpoint says, fit to be shown, after a colon."""
        try:
            text = str(json.loads(data)["error"]["message"])
        except (ValueError, LookupError, TypeError, RecursionError):
            text = data[: 4 * _SHOWN].decode(errors="replace")
        text = " ".join(self._clean(text).split())
        return f": {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}" if text else ""

    def _clean(self, text: str) -> str:
        """The text without the key, which endpoints like to repeat, and without what is not printable."""
        if self._key:
            text = text.replace(self._key, "***")
        return "".join(sign if sign.isprintable() else " " for sign in text)


def retry_after_s(value: str | None, now_s: float | None = None) -> float | None:
    """Seconds of a Retry-After header (a number of them, or a date); ``None`` if it says nothing.

    >>> retry_after_s("2"), retry_after_s("soon")
    (2.0, None)
    """
    if not value:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None
    return max(0.0, at - (time.time() if now_s is None else now_s))


def _read(response: Any, ends: float, limit: float) -> bytes:
    """The body; the time-out counts for all of it, not for each piece.

    Raises:
        RequestError: if it takes too long or is too large.
    """
    pieces, size = [], 0
    while piece := response.read1():
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise RequestError("too long", f"the answer is larger than {MOST_BYTES >> 20} MiB", False, 0.0)
        if time.monotonic() > ends:
            raise RequestError("time-out", f"no whole answer within {limit:g} s")
    return b"".join(pieces)


def _text_of(content: Any) -> str:
    """The text of a message: a text, or a list of parts.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(content, list):
        content = "".join(str(part["text"]) for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError("no text")
    return content.strip()

"""HTTP POST, through urllib3."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import Broker, BrokerError, Receipt, all_delivered, envelope
from pipelines.delivery.connection import Connection, joined

REFUSED_FOR_GOOD = (400, 413, 415, 422)


class Webhook(Broker):
    """Posts a JSON array of messages (see `envelope`); any 2xx acknowledges all of them.

    400, 413, 415 and 422 refuse: the array is halved until the message that is to blame stands alone. Everything else,
    also a redirection, is tried again later. A password without a user name is sent as bearer token.
    Options: ``batch`` (100): messages per request.
    """

    NAME = "webhook"
    LIBRARY = "urllib3"
    OPTIONS = ("batch",)

    def __init__(self, connection: Connection, timeout: float = 10.0) -> None:
        super().__init__(connection, timeout)
        self._batch = self.number_option("batch", 100, 1, 10_000)
        self._pool: Any = None
        self._headers: dict[str, str] = {}

    def connect(self) -> None:
        """Nothing is sent: an endpoint takes POSTs only, and the first batch is one."""
        import urllib3

        place = self.connection
        files: dict[str, Any] = {}
        if place.tls:
            named = {"ca_certs": place.tls.ca, "cert_file": place.tls.cert, "key_file": place.tls.key}
            files = {name: str(path) for name, path in named.items() if path}
        self._headers = {"Content-Type": "application/json", "User-Agent": "gstorch"}
        if place.username:
            self._headers |= urllib3.make_headers(basic_auth=f"{place.username}:{place.secret or ''}")
        elif place.secret:
            self._headers["Authorization"] = f"Bearer {place.secret}"
        scheme = "https" if place.tls else "http"
        self._pool = urllib3.connection_from_url(
            f"{scheme}://{joined(*place.hosts[0])}", timeout=self.timeout, retries=False, **files
        )

    def send(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        """One request after the other."""
        for start in range(0, len(messages), self._batch):
            yield from self._post(messages[start : start + self._batch])

    def close(self) -> None:
        """Let go of the sockets."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _post(self, messages: Sequence[Queued]) -> Iterator[Receipt]:
        from urllib3.exceptions import HTTPError

        body = b"[" + b",".join(map(envelope, messages)) + b"]"
        try:
            answer = self._pool.request(
                "POST", self.connection.path or "/", body=body, headers=self._headers, redirect=False
            )
        except HTTPError as error:
            raise BrokerError(f"no answer{_why_not(error, self.timeout)}") from None
        if 200 <= answer.status < 300:
            yield from all_delivered(messages)
        elif answer.status not in REFUSED_FOR_GOOD:
            raise BrokerError(f"the endpoint answers {answer.status} {answer.reason or ''}".rstrip())
        elif len(messages) == 1:
            yield Receipt(messages[0].number, f"the endpoint answers {answer.status} {answer.reason or ''}".rstrip())
        else:
            middle = len(messages) // 2
            yield from self._post(messages[:middle])
            yield from self._post(messages[middle:])


def _why_not(error: Exception, timeout: float) -> str:
    """Why there is no answer. urllib3's own texts name its classes; what they wrap says it."""
    inner = [part for part in error.args if isinstance(part, Exception)]
    cause = error.__cause__ or (inner[-1] if inner else error)
    if isinstance(cause, TimeoutError) or type(error).__name__.endswith("TimeoutError"):
        return f" within {timeout:g} s"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f": its certificate is refused: {cause.verify_message}"
    return f": {(isinstance(cause, OSError) and cause.strerror) or cause}"

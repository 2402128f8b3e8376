"""The webhook adapter against a server that does as a test tells it."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from app import deliver
from pipelines.delivery.backlog import Queued
from pipelines.delivery.broker import BrokerError, Receipt
from pipelines.delivery.connection import parse_connection
from pipelines.delivery.delivery import Settings
from pipelines.delivery.outbox import Outbox
from pipelines.delivery.store import Message
from pipelines.delivery.webhook import Webhook

pytest.importorskip("urllib3")
MESSAGES = [Queued(n, f"box-{n}", "door", "t", b'{"n": %d}' % n, 0.0) for n in range(1, 9)]


class Server(ThreadingHTTPServer):
    """Answers ``status``, or 422 to an array with the message ``poison``."""

    status, poison = 200, 0

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], list[dict]]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        poisoned = any(message["payload"]["n"] == self.server.poison for message in body)
        self.send_response(422 if poisoned else self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def webhook(server: Server, **how) -> Webhook:
    adapter = Webhook(
        parse_connection("webhook", f"http://127.0.0.1:{server.server_port}/hook?x=1", **how), timeout=2.0
    )
    adapter.connect()
    return adapter


def test_an_array_of_envelopes_per_request(server):
    receipts = list(webhook(server, options={"batch": "5"}).send(MESSAGES))
    assert receipts == [Receipt(n) for n in range(1, 9)]
    assert [len(body) for _, _, body in server.requests] == [5, 3]
    path, _, body = server.requests[0]
    assert path == "/hook?x=1"
    assert body[0] == {"id": "box-1", "key": "door", "topic": "t", "payload": {"n": 1}}


def test_one_message_that_is_refused_does_not_take_the_others_along(server):
    server.poison = 3
    receipts = list(webhook(server).send(MESSAGES))
    assert [r.number for r in receipts] == list(range(1, 9))
    assert [r.number for r in receipts if r.refused] == [3]
    assert "422" in receipts[2].refused


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
def test_everything_else_is_tried_again_later(server, status):
    server.status = status
    with pytest.raises(BrokerError, match=f"the endpoint answers {status}"):
        list(webhook(server).send(MESSAGES))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("username", "header"), [("guard", "Basic Z3VhcmQ6aHVzaA=="), (None, "Bearer hush")], ids=["basic", "bearer"]
)
def test_log_in(server, username, header):
    list(webhook(server, username=username, password=SecretStr("hush")).send(MESSAGES[:1]))
    assert server.requests[0][1]["authorization"] == header


class Silent:
    """Takes connections and answers nothing, or hangs up."""

    def __init__(self, hangs_up: bool = False) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.server_port = self._socket.getsockname()[1]
        if hangs_up:
            threading.Thread(target=self._hang_up, daemon=True).start()

    def _hang_up(self) -> None:
        taken, _ = self._socket.accept()
        with taken, taken.makefile("rb") as request:  # the whole of it: the answer is awaited by then
            headers = b"".join(iter(request.readline, b"\r\n"))
            request.read(int(re.search(rb"(?i)content-length: (\d+)", headers)[1]))
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing is a reset

    def close(self) -> None:
        self._socket.close()


def refusal(port_of, scheme: str = "http", timeout: float = 2.0) -> str:
    adapter = Webhook(parse_connection("webhook", f"{scheme}://127.0.0.1:{port_of.server_port}/"), timeout=timeout)
    adapter.connect()
    with pytest.raises(BrokerError) as raised:
        list(adapter.send(MESSAGES[:1]))
    return str(raised.value)


def test_why_there_is_no_answer_is_said_without_the_librarys_names():
    silent = Silent()
    assert refusal(silent, timeout=0.1) == "no answer within 0.1 s"
    assert refusal(silent, "https", timeout=0.1) == "no answer within 0.1 s"
    silent.close()
    assert refusal(silent) == "no answer: Connection refused"
    assert refusal(Silent(hangs_up=True)) == "no answer: Connection reset by peer"


def test_deliver_says_what_it_waits_for(tmp_path: Path, monkeypatch, caplog) -> None:
    """The address listens, but nobody ever answers."""
    monkeypatch.setattr(deliver, "PATIENCE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = Settings(parse_connection("webhook", f"http://{address}/"), tmp_path / "o.db", timeout=0.5)
        with contextlib.closing(Outbox(settings.outbox)) as outbox:
            outbox.put([Message("door", "t", b"1"), Message("door", "t", b"2")])
        with caplog.at_level("INFO", "gstorch.delivery"):
            counters = deliver.empty(settings, seconds=0.3)
    assert counters.queued == 2
    assert [m for m in caplog.messages if "no answer yet" in m] == [
        f"webhook at {address}: no answer yet, 2 messages wait; an answer may take 0.5 s, all of this 0.3 s (--timeout)"
    ]

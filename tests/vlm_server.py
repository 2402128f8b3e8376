"""A stand-in for an OpenAI-compatible endpoint, on a thread, with scripted behaviour."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2
import numpy as np


@dataclass(frozen=True)
class Asked:
    """One request: what came, decoded."""

    text: str
    pictures: list[np.ndarray]  # (h, w, 3) uint8 RGB
    body: dict[str, Any]
    headers: dict[str, str]
    at: float


@dataclass(frozen=True)
class Says:
    """One scripted reply.

    ``slow``: seconds before it; ``trickle``: seconds between its bytes; ``hang_up``: the connection is closed without.
    """

    text: str | Callable[[Asked], str] = "a thing"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    slow: float = 0.0
    trickle: float = 0.0
    hang_up: bool = False
    tokens: int | None = 120
    finish_reason: str = "stop"


class VlmServer:
    """Answers by ``script``, one entry per request; the last one for all that follow.

    >>> with VlmServer(Says(status=500), Says("red")) as server:
    ...     run(endpoint=server.url)
    """

    def __init__(self, *script: Says) -> None:
        self.asked: list[Asked] = []
        self._script: Sequence[Says] = script or (Says(),)
        self._lock = threading.Lock()
        self._let_go = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> VlmServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go.set()
        self._http.shutdown()
        self._http.server_close()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        asked = decoded(body, dict(request.headers))
        with self._lock:
            says = self._script[min(len(self.asked), len(self._script) - 1)]
            self.asked.append(asked)
        if request.path != "/v1/chat/completions":
            says = Says(status=404)
        if says.slow and self._let_go.wait(says.slow):
            says = Says(hang_up=True)
        if says.hang_up:
            request.close_connection = True
            return
        data = says.body if says.body is not None else completion(says, asked)
        try:
            request.send_response(says.status)
            for name, value in {"Content-Length": str(len(data)), **says.headers}.items():
                request.send_header(name, value)
            request.end_headers()
            for piece in [data[n : n + 1] for n in range(len(data))] if says.trickle else [data]:
                request.wfile.write(piece)
                self._let_go.wait(says.trickle)
        except OSError:
            request.close_connection = True  # whoever asked has gone


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Whoever asked has gone."""


def completion(says: Says, asked: Asked) -> bytes:
    if says.status != 200:
        return json.dumps({"error": {"message": says.text if isinstance(says.text, str) else "no"}}).encode()
    text = says.text if isinstance(says.text, str) else says.text(asked)
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": says.finish_reason}
    reply: dict[str, Any] = {"model": "stand-in-vl", "choices": [choice]}
    if says.tokens is not None:
        reply["usage"] = {"total_tokens": says.tokens}
    return json.dumps(reply).encode()


def decoded(body: dict[str, Any], headers: dict[str, str]) -> Asked:
    parts = body["messages"][0]["content"]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return Asked(text, [_picture(url) for url in urls], body, headers, time.monotonic())


def _picture(url: str) -> np.ndarray:
    prefix = "data:image/jpeg;base64,"
    assert url.startswith(prefix)
    data = np.frombuffer(base64.b64decode(url.removeprefix(prefix)), np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_COLOR)[..., ::-1]


def colour_of(asked: Asked) -> str:
    """The answer of a model that sees colours: that of the middle of the first picture."""
    picture = asked.pictures[0]
    height, width = picture.shape[:2]
    middle = picture[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3].reshape(-1, 3).mean(0)
    return ("red", "green", "blue")[int(np.argmax(middle))]

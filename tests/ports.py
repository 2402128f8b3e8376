"""Ports on loopback for servers that tests start, stop and start again."""

from __future__ import annotations

import contextlib
import os
import random
import socket

HOST = "127.0.0.1"
FIRST, EACH = 10_000, 2_000  # the last test process's end below 32768, from where on Linux gives ports to clients
PROCESSES = 11

_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES
_start = FIRST + _process * EACH
_left = random.sample(range(_start, _start + EACH), EACH)


def free_port() -> int:
    """A port that nobody listens on, and that no other test is given: its server may go and come back."""
    while _left:
        port = _left.pop()
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port
    raise RuntimeError(f"no port from {_start} to {_start + EACH} is left")

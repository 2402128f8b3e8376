"""Ports on loopback for servers that tests start, stop and start again."""

from __future__ import annotations

import contextlib
import random
import socket

HOST = "127.0.0.1"
PORTS = range(10_000, 32_000)  # above, Linux gives ports to clients

_marks: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody listens on, and that no other test of this machine is given: its server may go and come back.

    An abstract socket marks it as given away for as long as this process lives.
    """
    for port in random.sample(PORTS, len(PORTS)):
        mark = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            mark.bind(f"\0gstorch-tests-{port}")
            socket.create_server((HOST, port)).close()
            _marks.append(mark)
            return port
        mark.close()
    raise RuntimeError("no port is left")

"""The sender in a process of its own: what it does takes no time from the video's interpreter, and cannot break it."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipelines.delivery.backlog import Backlog
from pipelines.delivery.broker import broker_class
from pipelines.delivery.connection import Connection
from pipelines.delivery.store import OutboxError, explained
from pipelines.delivery.worker import Backoff, Sender

log = logging.getLogger("gstorch.delivery")

ROOT = Path(__file__).resolve().parents[2]
NICENESS = 5
"""On a machine without a core to spare the video goes first."""
GRACE_S = 2.0
LONGEST_PAUSE_S = 60.0
TAKE_OVER_S = 15.0


@dataclass(frozen=True, slots=True)
class Order:
    """What the child is told, over its standard input so that nobody can read the password from its command line."""

    outbox: Path
    connection: Connection
    timeout: float
    backoff: Backoff


class SenderProcess:
    """The pipeline's handle of its sender; a sender that dies is started again by `revive`."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._process = self._spawn()
        self._started = time.monotonic()
        self._pause = GRACE_S

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """False when it has died and was not revived yet."""
        return self._process.poll() is None

    def revive(self) -> int | None:
        """Start a new sender if this one has died; returns the dead one's exit status.

        One that dies again soon is left dead for longer each time, up to `LONGEST_PAUSE_S`.
        """
        status = self._process.poll()
        lived = time.monotonic() - self._started
        if status is None or lived < self._pause:
            return None
        self._pause = GRACE_S if lived > 2 * LONGEST_PAUSE_S else min(2 * self._pause, LONGEST_PAUSE_S)
        self._started = time.monotonic()
        self._process = self._spawn()
        return status

    def end(self, seconds: float) -> None:
        """Let it send for at most ``seconds`` more, or until the outbox is empty; then it is gone."""
        with contextlib.suppress(OSError):  # it may be dead already
            self._stdin.write(f"{max(seconds, 0.0)}\n".encode())
            self._stdin.flush()
        try:
            self._process.wait(max(seconds, 0.0) + GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            self._stdin.close()

    @property
    def _stdin(self) -> BinaryIO:
        assert self._process.stdin is not None
        return self._process.stdin  # type: ignore[return-value]

    def _spawn(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable or "python3", "-m", "pipelines.delivery.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Inside gst-launch-1.0 the interpreter is not the venv's: the child looks where this one does.
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
            # Ctrl-C is for the pipeline, which then drains. Not a session: Linux would give that its own share of the
            # cores, whatever its niceness.
            process_group=0,
        )
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(pickle.dumps(self._order))
            process.stdin.flush()
        return process


# --- the child --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Send until the pipeline says so or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends when its standard input does
    os.nice(NICENESS)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    for name in ("paho", "pika", "nats", "redis", "urllib3", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # errors are reported once, by us, without passwords
    order: Order = pickle.load(sys.stdin.buffer)
    status = 1
    try:
        _send(order, sys.stdin.buffer)
        status = 0
    except OutboxError as error:
        log.error("sender to %s: %s", order.connection.name, error)
    except sqlite3.Error as error:
        log.error("sender to %s: %s", order.connection.name, explained(error, order.outbox))
    except Exception:
        log.error("sender to %s: %s", order.connection.name, order.connection.redact(traceback.format_exc()))
    sys.stderr.flush()
    os._exit(status)  # a thread still reads the standard input, which a normal end would trip over


def _send(order: Order, orders: BinaryIO) -> None:
    backlog = _take_over(order)
    broker = broker_class(order.connection.broker)(order.connection, order.timeout)
    sender = Sender(backlog, broker, order.backoff)
    threading.Thread(target=_obey, args=(orders, sender), daemon=True).start()
    try:
        sender.run()
    finally:
        backlog.close()


def _take_over(order: Order) -> Backlog:
    """The backlog; the sender of a pipeline that was killed may need a moment to notice."""
    until = time.monotonic() + TAKE_OVER_S
    while True:
        try:
            return Backlog(order.outbox)
        except OutboxError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _obey(orders: BinaryIO, sender: Sender) -> None:
    for line in orders:
        sender.drain(float(line))
    sender.stop()
    time.sleep(GRACE_S)
    os._exit(1)  # in the middle of a send: those messages are sent again by the next sender


if __name__ == "__main__":
    main()

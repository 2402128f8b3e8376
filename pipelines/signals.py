"""The signals that a run listens to, as events of its inbox."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from pipelines.bus import BusEvent, Inbox

RELOAD = "SIGHUP"
_TERMINAL_GONE = "hang-up of the terminal"


@contextlib.contextmanager
def signals_into(inbox: Inbox, reload: bool) -> Iterator[None]:
    """Meanwhile SIGINT and SIGTERM become events, and with ``reload`` SIGHUP, too. On other threads than the main one
    nothing is done: Python handles signals there alone.

    SIGHUP has two meanings: "read your files again", and "your terminal is closed". The latter becomes an event of
    another name, which stops the run as SIGTERM does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()

    def handler(number: int, _frame: Any) -> None:
        name = signal.Signals(number).name
        inbox.put(BusEvent("signal", name=_TERMINAL_GONE if name == RELOAD and terminal and _is_gone() else name))

    numbers = [signal.SIGINT, signal.SIGTERM]
    if reload and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _is_gone() -> bool:
    try:
        os.tcgetpgrp(sys.stdin.fileno())
    except (OSError, ValueError):
        return True
    return False

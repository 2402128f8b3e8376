"""SIGHUP means two things: read the definition again, and the terminal is gone."""

from __future__ import annotations

import os
import pty
import queue
import signal
from pathlib import Path

import pytest

from pipelines.bus import BusEvent
from pipelines.signals import signals_into
from tests.clips import make_clip
from tests.gstorch_cli import command, environment, line_count
from tests.waiting import wait_for

DEFINITION = """
pipeline: test
sources: [{uri: clip.mp4, loop: true}]
stages: [{infer: {model: "tests.swap_models:Old"}}]
outputs: [{events: {path: e.jsonl}}]
"""


@pytest.mark.parametrize(("reload", "names"), [(True, ["SIGHUP", "SIGTERM"]), (False, ["SIGTERM"])])
def test_signals_become_events(reload, names):
    inbox: queue.SimpleQueue[BusEvent] = queue.SimpleQueue()
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        with signals_into(inbox, reload):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert [inbox.get_nowait().name for _ in names] == names
        assert inbox.empty()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_whose_terminal_is_closed_stops_and_finishes(tmp_path: Path):
    make_clip(tmp_path / "clip.mp4", 160, 120, 20)
    (tmp_path / "p.yaml").write_text(DEFINITION)
    out, log = tmp_path / "e.jsonl", tmp_path / "log.txt"
    arguments = command("run", tmp_path / "p.yaml")
    pid, terminal = pty.fork()
    if pid == 0:
        target = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.execvpe(arguments[0], arguments, environment())
    ended: list[int] = []

    def has_ended() -> bool:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ended.append(os.waitstatus_to_exitcode(status))
        return bool(ended)

    try:
        wait_for(lambda: line_count(out) > 10)
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "the definition has not changed" in log.read_text())
        os.close(terminal)
        wait_for(has_ended)
    finally:
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert ended == [0], log.read_text()
    assert "hang-up of the terminal: stopping sources and draining" in log.read_text()

"""The reconnector's decisions, on a source that only takes notes."""

from __future__ import annotations

import threading
import time

import pytest

from elements.portable.reconnect import Reconnector, ReconnectPolicy
from tests.waiting import LIMIT_S


class Camera:
    """A live source whose connections fail ``failures`` times before one works."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.notes: list[str] = []
        self.stalled = False
        self.changed = threading.Event()
        self.reconnector: Reconnector | None = None

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.changed.set()

    def connect_source(self) -> None:
        self.note("connect")
        if self.failures:
            self.failures -= 1
            self.reconnector.lost("refused")
        else:
            self.reconnector.frame()

    def disconnect_source(self) -> None:
        self.note("disconnect")

    def is_stalled_downstream(self) -> bool:
        self.changed.set()
        return self.stalled

    def source_lost(self, reason: str, attempt: int) -> None:
        self.note(f"lost: {reason}, {attempt}")

    def source_recovered(self, attempt: int) -> None:
        self.note(f"recovered {attempt}")

    def source_given_up(self, reason: str, attempts: int) -> None:
        self.note(f"given up: {reason}, {attempts}")

    def wait_for(self, text: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while text not in self.notes:
            assert time.monotonic() < limit, self.notes
            self.changed.wait(0.05)
            self.changed.clear()


def started(camera: Camera, interval: float = 60, attempts: int = -1) -> Reconnector:
    policy = ReconnectPolicy(interval, interval, attempts, first_pause=0.5, longest_pause=0.01)
    camera.reconnector = Reconnector(camera, policy, "camera")
    camera.reconnector.start()
    return camera.reconnector


@pytest.mark.parametrize(("attempt", "pause"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (1000, 30.0)])
def test_pauses_double_up_to_the_limit(attempt: int, pause: float) -> None:
    assert ReconnectPolicy(10, 10, -1, first_pause=0.5, longest_pause=30).pause(attempt) == pause


def test_a_loss_is_followed_by_attempts_until_one_works() -> None:
    camera = Camera(failures=1)
    reconnector = started(camera)
    reconnector.lost("the stream ended")
    camera.wait_for("recovered 2")
    reconnector.stop()
    assert camera.notes == [
        "disconnect",
        "lost: the stream ended, 1",
        "connect",
        "disconnect",
        "lost: refused, 2",
        "connect",
        "recovered 2",
    ]


def test_attempts_are_counted_anew_after_a_recovery() -> None:
    camera = Camera()
    reconnector = started(camera, attempts=1)
    for _ in range(3):
        camera.notes.clear()
        reconnector.lost("the stream ended")
        camera.wait_for("recovered 1")
    reconnector.stop()


def test_it_gives_up_after_the_last_attempt() -> None:
    camera = Camera(failures=5)
    reconnector = started(camera, attempts=2)
    reconnector.lost("the stream ended")
    camera.wait_for("given up: refused, 2")
    reconnector.stop()
    assert camera.notes.count("connect") == 2


def test_silence_while_playing_means_lost() -> None:
    camera = Camera()
    reconnector = started(camera, interval=0.1)
    reconnector.watch(True)
    camera.wait_for("lost: no frame for 0.1 s, 1")
    reconnector.stop()


def test_silence_while_paused_or_stalled_downstream_does_not() -> None:
    camera = Camera()
    camera.stalled = True
    reconnector = started(camera, interval=0.05)
    assert not camera.changed.wait(0.2)  # paused: nobody looks
    reconnector.watch(True)
    assert camera.changed.wait(LIMIT_S)  # playing: the reconnector looked, and found a stall
    reconnector.stop()
    assert camera.notes == []


def test_stop_ends_the_thread_during_a_pause() -> None:
    camera = Camera(failures=100)
    camera.reconnector = Reconnector(camera, ReconnectPolicy(60, 60, -1, first_pause=0.5, longest_pause=60), "camera")
    camera.reconnector.start()
    camera.reconnector.lost("the stream ended")
    camera.wait_for("lost: the stream ended, 1")
    camera.reconnector.stop()
    assert not any(thread.name == "reconnect-camera" for thread in threading.enumerate())

"""Cameras through the program: absent, lost, frozen, refused, too fast; and files beside them."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.clips import make_clip
from tests.gstorch_cli import Result, command, environment, events, gstorch
from tests.rtsp_server import RATE, RtspServer
from tests.slow_model import SECONDS_PER_FRAME
from tests.waiting import LIMIT_S, wait_for

CLIP_FRAMES = 200
PER_FRAME = RATE * SECONDS_PER_FRAME  # that the camera sends while the slow model is busy with one
PASSWORD = "p@ss:/ w%rd#1"
UNREACHABLE = "cannot be reached (it is off, or the address or port is wrong)"
# Not quicker: a camera that shares a busy machine can be silent for a second.
QUICK = "timeout: 3s, reconnect: {delay: 200ms, max_delay: 400ms"


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    make_clip(path, 320, 240, CLIP_FRAMES)
    return path


def camera(server: RtspServer, more: str = "", attempts: int = -1) -> str:
    """The YAML of a source named 'yard' that is given up on soon."""
    return f"{{name: yard, uri: '{server.address}', {more}{QUICK}, attempts: {attempts}}}}}"


class Run:
    """The program in the background. What it says goes to files, so that it can be watched."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        self.events_path = folder / "events.jsonl"
        self._stderr, self._stdout = folder / "stderr.txt", folder / "stdout.txt"
        with self._stdout.open("w") as out, self._stderr.open("w") as err:
            self.process = subprocess.Popen(command("run", *arguments), stdout=out, stderr=err, env=environment())

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def wait_until_says(self, text: str, times: int = 1) -> None:
        wait_for(lambda: self.stderr.count(text) >= times or self._ended_instead(text))

    def wait_for_frames(self, source: str, more: int = 5) -> None:
        """Until ``more`` frames of the source than now are in the event file."""
        count = self.frames(source)
        wait_for(lambda: self.frames(source) >= count + more or self._ended_instead(source))

    def frames(self, source: str) -> int:
        text = self.events_path.read_text() if self.events_path.exists() else ""
        return text.count(f'"source":"{source}"') + text.count(f'"source": "{source}"')

    def stop(self, number: signal.Signals = signal.SIGINT, limit: float = LIMIT_S) -> Result:
        self.process.send_signal(number)
        return self.result(limit)

    def result(self, limit: float = LIMIT_S) -> Result:
        code = self.process.wait(limit)
        return Result(code, self._stdout.read_text(), self.stderr)

    def _ended_instead(self, awaited: str) -> bool:
        assert self.process.poll() is None, f"ended instead of '{awaited}': {self.stderr}"
        return False


@contextmanager
def running(folder: Path, *sources: str | Path, more: tuple[str, ...] = ()) -> Iterator[Run]:
    """A run of the sources (YAML each), with events and a final summary."""
    definition = folder / "cameras.yaml"
    lines = "".join(f"  - {source}\n" for source in sources)
    definition.write_text(f"pipeline: cameras\nsources:\n{lines}outputs:\n  - events: {{path: events.jsonl}}\n")
    run = Run(folder, definition, "--json", *more)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


def test_power_loss_and_silence_leave_the_other_source_alone(tmp_path, clip):
    with RtspServer() as server, running(tmp_path, camera(server), clip) as run:
        run.wait_for_frames("yard")
        server.stop()
        run.wait_until_says("source 'yard': lost: the stream ended")
        run.wait_until_says("source 'clip': finished")  # while the camera is away
        server.start()
        run.wait_until_says("source 'yard': running", 2)
        run.wait_for_frames("yard")

        server.freeze()
        run.wait_until_says("source 'yard': lost: no frame for 3 s")
        server.thaw()
        run.wait_until_says("source 'yard': running", 3)
        run.wait_for_frames("yard")
        result = run.stop()

    assert result.code == 0, result.stderr
    assert result.source("yard")["state"] == "stopped"
    assert [e["frame"] for e in events(run.events_path, "clip")] == list(range(CLIP_FRAMES))
    of_camera = events(run.events_path, "yard")
    assert {e["source_id"] for e in of_camera} == {0}
    assert [e["frame"] for e in of_camera] == list(range(len(of_camera)))
    times = [e["stream_time_s"] for e in of_camera]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert max(later - earlier for earlier, later in pairwise(times)) > 1  # the time goes on while it is lost


def test_a_camera_that_is_absent_at_the_start_may_come(tmp_path, clip):
    server = RtspServer()
    with running(tmp_path, camera(server), clip) as run:
        run.wait_until_says(f"source 'yard': lost: {UNREACHABLE}")
        run.wait_until_says("source 'clip': finished")
        with server:
            run.wait_until_says("source 'yard': running")
            run.wait_for_frames("yard")
            result = run.stop(signal.SIGTERM)
    assert result.code == 0, result.stderr
    assert result.source("clip")["frames"] == CLIP_FRAMES
    assert result.source("yard")["reason"] is None


@pytest.mark.parametrize("beside_a_file", [False, True])
def test_attempts_run_out(tmp_path, clip, beside_a_file):
    server = RtspServer()
    with running(tmp_path, camera(server, attempts=2), *([clip] if beside_a_file else [])) as run:
        result = run.result()
    assert result.code == (3 if beside_a_file else 1), result.stderr
    assert result.source("yard")["state"] == "failed"
    assert result.source("yard")["reason"] == f"gave up after 2 attempts to reconnect: {UNREACHABLE}"
    if beside_a_file:
        assert result.source("clip")["frames"] == CLIP_FRAMES


def test_the_others_go_on_when_attempts_run_out(tmp_path, clip):
    looping = f"{{name: clip, uri: '{clip}', loop: true}}"
    with running(tmp_path, camera(RtspServer(), attempts=1), looping) as run:
        run.wait_until_says("source 'yard': failed: gave up after 1 attempt to reconnect")
        run.wait_for_frames("clip", 2 * CLIP_FRAMES)
        result = run.stop()
    assert result.code == 3, result.stderr
    assert result.source("clip")["state"] == "stopped"


def test_attempts_run_out_of_a_camera_that_was_there(tmp_path):
    with RtspServer() as server, running(tmp_path, camera(server, attempts=1)) as run:
        run.wait_for_frames("yard")
        server.stop()
        result = run.result()
    assert result.code == 1, result.stderr
    assert result.source("yard")["frames"] == len(events(run.events_path)) >= 5
    assert result.source("yard")["reason"] == f"gave up after 1 attempt to reconnect: {UNREACHABLE}"


@pytest.mark.parametrize("frozen", [False, True])
def test_a_signal_while_a_camera_is_lost(tmp_path, frozen):
    """A frozen camera accepts connections and never answers."""
    with RtspServer() as server, running(tmp_path, camera(server)) as run:
        run.wait_for_frames("yard")
        if frozen:
            server.freeze()
            run.wait_until_says("source 'yard': lost: no frame for 3 s")
        else:
            server.stop()
            run.wait_until_says("source 'yard': lost: cannot be reached")
        result = run.stop()
        server.stop()
    assert result.code == 3, result.stderr
    assert result.source("yard")["state"] == "lost"
    assert result.source("yard")["reason"]


def test_a_wrong_password_is_told(tmp_path):
    with RtspServer("guard", PASSWORD) as server:
        login = "username: guard, password: wrong, "
        with running(tmp_path, camera(server, login, attempts=1)) as run:
            result = run.result()
    assert result.code == 1
    assert "source 'yard': lost: user or password is wrong or missing" in result.stderr
    assert result.source("yard")["reason"].endswith("user or password is wrong or missing")


def test_the_password_is_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("GST_DEBUG", "3")
    monkeypatch.setenv("YARD_PASSWORD", PASSWORD)
    with RtspServer("guard", PASSWORD) as server:
        login = "username: guard, password: '${YARD_PASSWORD}', "
        with running(tmp_path, camera(server, login), more=("-v",)) as run:
            run.wait_for_frames("yard")
            server.stop()
            run.wait_until_says("source 'yard': lost")
            result = run.stop()
    shown = [result.stdout, result.stderr, run.events_path.read_text()]
    for option in ([], ["--dot"], ["--mermaid"]):
        graph = gstorch("explain", tmp_path / "cameras.yaml", *option)
        assert graph.code == 0, graph.stderr
        shown += [graph.stdout, graph.stderr]
    for text in shown:
        for secret in (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD), json.dumps(PASSWORD)[1:-1]):
            assert secret not in text


def test_a_slow_pipeline_drops_frames_and_counts_them(tmp_path):
    """Without a definition; the address holds the password. The server sends one frame each 1/15 s."""
    with RtspServer("guard", PASSWORD) as server:
        arguments = (server.uri, "--model", "tests.slow_model:Slow", "--events", tmp_path / "events.jsonl", "--json")
        run = Run(tmp_path, *arguments)
        try:
            run.wait_for_frames("127.0.0.1", 15)
            result = run.stop()
        finally:
            run.process.kill()
    assert result.code == 0, result.stderr
    assert quote(PASSWORD, safe="") not in result.stderr + result.stdout
    source = result.source("127.0.0.1")
    lines = events(run.events_path)
    assert source["frames"] == len(lines)
    assert source["frames_dropped"] > 15
    numbers = [round(line["stream_time_s"] * RATE) for line in lines]
    sent = numbers[-1] - numbers[0] + 1
    gaps = [later - earlier for earlier, later in pairwise(numbers)]
    never_sent = sum(gap for gap in gaps if gap > 2 * PER_FRAME)  # the camera itself was held up by a busy machine
    after_the_last = max(gaps)  # up to the next frame, never shown
    assert -never_sent <= source["frames"] + source["frames_dropped"] - sent <= after_the_last

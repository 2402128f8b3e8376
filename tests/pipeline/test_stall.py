"""A run whose pipeline stands still fails in bounded time and says where; silent cameras are waited for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from elements.base import Gst, GstBase, keep_floating, sink_and_src
from elements.portable.nvstreammux import NvStreamMux
from elements.portable.nvurisrcbin import NvUriSrcBin
from pipelines.bus import BusEvent
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from pipelines.sources import SourceState
from pipelines.stall import _place
from tests.clips import make_clip
from tests.own_models import RELEASE
from tests.rtsp_server import RtspServer

FRAMES = 8


class Stopper(GstBase.BaseTransform):
    """Keeps the first buffer, or the end of the stream, for ever (until its pads are flushed)."""

    __gtype_name__ = "TestStopper"
    __gstmetadata__ = ("stopper", "Generic", "blocks", "tests")
    __gsttemplates__ = sink_and_src("ANY")
    on_eos = False
    released = False

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.set_in_place(True)

    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        if not Stopper.on_eos:
            _block()
        return Gst.FlowReturn.OK

    def do_sink_event(self, event: Gst.Event) -> bool:
        if event.type == Gst.EventType.EOS and Stopper.on_eos:
            _block()
        return GstBase.BaseTransform.do_sink_event(self, event)


def _block() -> None:
    while not Stopper.released:
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("pipelines.runner.NULL_TIMEOUT_S", 0.5)
    Gst.init(None)
    if Gst.ElementFactory.find("test_stopper") is None:
        Gst.Element.register(None, "test_stopper", 0, Stopper)
    Stopper.on_eos = Stopper.released = False
    yield
    Stopper.released = True


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "red.mp4"
    make_clip(path, 160, 120, FRAMES)
    return path


def runner_of(source: str | Path, stages: list[Any], stall_timeout: str = "2s", **own: Any) -> Runner:
    own |= {"timeout": "3s"} if "rtsp" in str(source) else {}
    definition = {
        "pipeline": "test",
        "sources": [{"uri": str(source), "name": "red", **own}],
        "stages": stages,
        "runtime": {"stall_timeout": stall_timeout},
    }
    return open_runner(make_plan(definition_from_mapping(definition, ".")))


def ran(source: str | Path, stages: list[Any]) -> Runner:
    runner = runner_of(source, stages)
    runner.run()
    return runner


STOPPER = {"node": {"factory": "test_stopper", "name": "stopper"}}


def test_a_deadlocked_element(clip):
    runner = ran(clip, [{"node": {"factory": "queue", "name": "before"}}, STOPPER])
    assert runner.exit_code() == 1
    assert "no frame came through for 2 s although 'red' should deliver (runtime.stall_timeout)" in runner.outcome.error
    assert "buffers last passed 'before' and are held by 'stopper' (test_stopper)" in runner.outcome.error


def test_outputs_that_do_not_finish_after_the_last_frame(clip):
    """Every frame was counted and every source has ended: the end itself does not come."""
    Stopper.on_eos = True
    runner = ran(clip, [{"node": {"factory": "queue"}}, STOPPER])
    assert runner.exit_code() == 1
    assert [count.frames for count in runner.counts] == [FRAMES]
    assert runner.outcome.error.startswith("every source has ended, but the outputs did not finish within 2 s")
    assert "held by 'stopper' (test_stopper)" in runner.outcome.error


def test_a_paused_sink(clip):
    """Somebody keeps the sink from playing: it takes one buffer and waits."""
    runner = runner_of(clip, [])
    sink = runner._element("sink")
    sink.set_locked_state(True)
    sink.set_state(Gst.State.PAUSED)
    runner.run()
    sink.set_locked_state(False)
    assert runner.exit_code() == 1
    assert "held by 'sink' (fakesink)" in runner.outcome.error
    assert "not playing: 'sink' (paused" in runner.outcome.error


def own(name: str) -> list[Any]:
    RELEASE.clear()
    return [{"infer": {"model": f"tests.own_models:{name}"}}]


def test_a_model_that_loads_for_longer_is_waited_for(clip, caplog, monkeypatch):
    monkeypatch.setattr("pipelines.runner.NULL_TIMEOUT_S", 60.0)  # a busy machine may stop slowly
    runner = runner_of(clip, own("BlocksInLoad"))

    def look(_: Runner) -> None:
        if "'infer' (pyinfer) is still starting, and is waited for" in caplog.text:
            RELEASE.set()

    runner.run(look)
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert [count.frames for count in runner.counts] == [FRAMES]


def test_a_stop_does_not_wait_for_a_model_that_loads(clip):
    runner = runner_of(clip, own("BlocksInLoad"), stall_timeout="30s")
    runner.run(lambda runner: runner.stop())
    RELEASE.set()
    assert runner.outcome.error == "the pipeline did not stop within 1 s; 'infer' (pyinfer) is still starting"


def test_a_model_that_does_not_close(clip):
    runner = ran(clip, own("BlocksInClose"))
    RELEASE.set()
    assert runner.outcome.error == "the pipeline did not stop within 0 s; 'infer' (pyinfer) is still stopping"
    assert runner.statuses[0].state is SourceState.FINISHED


@pytest.mark.parametrize(
    ("element", "method", "said"),
    [(NvStreamMux, "_stop", "'mux' (nvstreammux)"), (NvUriSrcBin, "_dismantle", "'source-0' (nvurisrcbin)")],
)
def test_what_does_not_stop_before_the_stages_is_named(clip, monkeypatch, element, method, said):
    RELEASE.clear()
    monkeypatch.setattr(element, method, lambda _: RELEASE.wait())
    runner = ran(clip, [])
    RELEASE.set()
    assert runner.outcome.error == f"the pipeline did not stop within 0 s; still stopping: {said}"
    assert "Thread 'shut-down':" in runner.outcome.trace
    assert "lambda _: RELEASE.wait()" in runner.outcome.trace


def test_an_element_that_its_bin_has_let_go_meanwhile_is_named():
    assert _place(Gst.ElementFactory.make("identity", "left"), Gst.Pipeline()) == "'left' (identity)"


def test_a_source_that_was_stopped_is_not_repeated(clip):
    """While the pipeline drained it would begin anew hundreds of times a second."""
    runner = runner_of(clip, [], loop=True)
    repeats = []

    def look(runner: Runner) -> None:
        repeats.append(runner._element("source-0").get_property("file-loop"))
        runner.stop()

    runner.run(look)
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert repeats[0]
    assert not runner._element("source-0").get_property("file-loop")


def test_a_camera_that_goes_silent_is_waited_for(monkeypatch):
    """NVIDIA's nvurisrcbin connects again without a word: no message tells that the camera is away or back."""
    monkeypatch.setattr(Runner, "_on_element_message", lambda *_: None)
    seen = []
    with RtspServer() as server:

        def look(runner: Runner) -> None:
            state = runner.statuses[0].state
            if seen[-1:] == [state]:
                return
            seen.append(state)
            if state is SourceState.LOST:
                server.thaw()
            elif SourceState.LOST in seen:
                runner.inbox.put(BusEvent("signal", name="SIGINT"))
            elif state is SourceState.RUNNING:
                server.freeze()

        runner = runner_of(server.address, [])
        runner.run(look)
    told = [state for state in seen if state is not SourceState.STARTING]  # which may pass before the first look
    assert told[:3] == [SourceState.RUNNING, SourceState.LOST, SourceState.RUNNING]
    assert runner.outcome.error == ""

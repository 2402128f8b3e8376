"""Runs whose models are exchanged, and what their events say."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from elements.inference.swap.status import SwapState
from pipelines.control import CommandResult, SwapModel
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from tests.clips import make_clip
from tests.gstorch_cli import events, line_count
from tests.onnx_models import NAMES, finder, save
from tests.waiting import LIMIT_S, wait_for

OLD, NEW = "tests.swap_models:Old", "tests.swap_models:New"


def make_clips(folder: Path) -> list[Path]:
    """Four clips of a second, each of its own size."""
    sizes = ((160, 120), (120, 160), (128, 128), (192, 108))
    for number, (width, height) in enumerate(sizes):
        make_clip(folder / f"clip{number}.mp4", width, height, 30)
    return [folder / f"clip{number}.mp4" for number in range(4)]


def make_finders(folder: Path) -> dict[str, str]:
    """Real networks: of another input size, layout and class list each."""
    german = {"names": str(["rot", "grün", "blau"])}
    return {
        "small": save(finder("yolov8", (160, 160), metadata={"names": str(list(NAMES))}), folder / "small.onnx"),
        "large": save(finder("yolox", (320, 320), metadata=german), folder / "large.onnx"),
        "not numbers": save(
            finder("yolov8", (160, 160), not_numbers=True, metadata={"names": str(list(NAMES))}), folder / "nan.onnx"
        ),
    }


class Run:
    """Looping clips through one infer stage, on a thread; made to be changed from the test."""

    def __init__(self, clips: list[Path], out: Path, sources: dict[int, dict] | None = None, **infer: Any) -> None:
        own = sources or {}
        self.out = out
        definition = {
            "pipeline": "test",
            "sources": [
                {"uri": str(clip), "loop": True, "infer": {"infer": own[i]} if i in own else {}}
                for i, clip in enumerate(clips)
            ],
            "stages": [{"infer": {"model": OLD, **infer}}],
            "outputs": [{"events": {"path": str(out)}}],
        }
        self.runner: Runner = open_runner(make_plan(definition_from_mapping(definition, out.parent)))
        self._thread = threading.Thread(target=self.runner.run)

    def __enter__(self) -> Run:
        self._thread.start()
        self.wait_for_frames(8)
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.stop()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    @property
    def element(self) -> Any:
        return self.runner.assembly.gst.get_by_name("infer")

    def wait_for_frames(self, more: int) -> None:
        target = line_count(self.out) + more
        wait_for(lambda: line_count(self.out) >= target)

    def apply(self, command: Any) -> CommandResult:
        return self.runner.control.apply(command)

    def swap(self, model: str, source: str | None = None, **options: Any) -> tuple[SwapState, str]:
        """Ask for a model and wait for the answer and some frames behind it."""
        result = self.apply(SwapModel("infer", model, source, options))
        assert result.swap is not None, result.reason
        answer = result.swap.result(LIMIT_S)
        self.wait_for_frames(8)
        return answer.state, answer.reason

    def state(self) -> str:
        return str(self.element.get_property("swap-state"))

    def lines(self) -> list[dict[str, Any]]:
        """All events, after the run: every frame once and in order, each with its version and labels that fit."""
        found = events(self.out)
        for source_id, count in enumerate(self.runner.counts):
            numbers = [e["frame"] for e in found if e["source_id"] == source_id]
            assert numbers == list(range(count.frames))
        assert self.runner.exit_code() == 0, self.runner.outcome.error
        assert all(e["models"].keys() == {"infer"} for e in found)
        return found


def versions(lines: list[dict[str, Any]]) -> list[str]:
    """The models that did the frames, each once, in the order in which they came."""
    return list(dict.fromkeys(e["models"]["infer"] for e in lines))


def labels(lines: list[dict[str, Any]], version: str) -> set[str]:
    return {o["label"] for e in lines if e["models"]["infer"].startswith(version) for o in e["objects"]}

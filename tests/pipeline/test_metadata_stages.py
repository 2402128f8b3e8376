"""Filter and operate stages in running pipelines, and what they leave in the outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clips import make_clip
from tests.gstorch_cli import environment, events, gstorch
from tests.onnx_models import finder, save

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 20
RULES = """
import threading, time

def odd(frame):
    if frame.number % 2:
        frame.emit("odd", objects=len(frame))
        frame.draw_text("odd", 10, 10)

def failing(frame):
    if frame.number == 3:
        raise ValueError("three")

def meddling(frame):
    frame.keep([])

def slow(frame):
    time.sleep(0.5)
    frame.emit("slow", of=frame.number)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("stages")
    make_clip(path / "a.mp4", 640, 360, FRAMES)
    make_clip(path / "b.mp4", 360, 640, FRAMES)
    save(finder("yolov8", metadata={"names": str({0: "red", 1: "green", 2: "blue"})}), path / "m.onnx")
    (path / "rules.py").write_text(RULES)
    return path


def run(folder, *stages, outputs="[{events: {path: out.jsonl}}]", sources="[a.mp4, b.mp4]"):
    lines = "".join(f"  - {stage}\n" for stage in ("infer: {model: m.onnx}", *stages))
    (folder / "p.yaml").write_text(f"pipeline: p\nsources: {sources}\nstages:\n{lines}outputs: {outputs}\n")
    return gstorch("run", "p.yaml", "--json", cwd=folder)


def test_filter_between_detector_and_outputs(folder):
    done = run(folder, "filter: {drop: [green], rename: {red: crimson}, remap: {red: 5}}")
    assert done.code == 0, done.stderr
    lines = events(folder / "out.jsonl")
    assert len(lines) == 2 * FRAMES
    found = {tuple(sorted((o["label"], o["class_id"]) for o in line["objects"])) for line in lines}
    assert found == {(("crimson", 5),)}
    assert done.summary["filters"] == {"filter": {"objects-seen": 4 * FRAMES, "objects-removed": 2 * FRAMES}}


def test_a_misspelt_class_is_told(folder):
    done = run(folder, "filter: {keep: [gren]}")
    assert done.code == 0, done.stderr
    assert f"filter: none of {4 * FRAMES} objects was of class 'gren': did you mean 'green'?" in done.stderr


def test_region_in_parts_of_each_source(folder):
    """The red box stands in the left 30 % of either source, the others do not."""
    done = run(folder, "filter: {regions: [[[0, 0], [0.35, 0], [0.35, 1], [0, 1]]]}")
    assert done.code == 0, done.stderr
    labels = {o["label"] for line in events(folder / "out.jsonl") for o in line["objects"]}
    assert labels == {"red"}


def test_operator_emits_and_draws(folder):
    outputs = '[{events: {path: out.jsonl}}, {record: {format: mot, path: "{source}.txt"}}, {file: {path: out.mp4}}]'
    done = run(folder, "track: {}", 'operate: {operator: "rules:odd"}', "draw: {}", outputs=outputs)
    assert done.code == 0, done.stderr
    for line in events(folder / "out.jsonl"):
        told = [{"event": "odd", "objects": len(line["objects"])}]
        assert line.get("events", []) == (told if line["frame"] % 2 else [])
    assert done.summary["operators"]["operate"] == {"frames": 2 * FRAMES, "failed": 0, "dropped": 0}
    written = sum(len(line["objects"]) for line in events(folder / "out.jsonl") if line["source"] == "a")
    assert len((folder / "a.txt").read_text().splitlines()) == written > FRAMES


def test_a_failing_operator_stops_the_run_or_is_counted(folder):
    done = run(folder, 'operate: {operator: "rules:failing"}')
    assert done.code == 1
    assert "operator 'operate' failed on source 'a', frame 3: ValueError: three" in done.stderr
    done = run(folder, 'operate: {operator: "rules:failing", on_error: skip}')
    assert done.code == 0, done.stderr
    assert done.summary["operators"]["operate"]["failed"] == 2
    assert len(events(folder / "out.jsonl")) == 2 * FRAMES


def test_slow_work_in_the_background_drops_frames_of_its_own_only(folder):
    done = run(folder, 'operate: {operator: "rules:slow", run: background, queue: 2}')
    assert done.code == 0, done.stderr
    assert len(events(folder / "out.jsonl")) == 2 * FRAMES
    stats = done.summary["operators"]["operate"]
    assert stats["frames"] + stats["dropped"] == 2 * FRAMES
    assert stats["dropped"] > 0


def test_in_the_background_nothing_can_be_changed(folder):
    done = run(folder, 'operate: {operator: "rules:meddling", run: background}')
    assert done.code == 1
    assert "in the background an operator can only emit: set 'run: inline'" in done.stderr


def test_an_operator_that_is_not_there_is_named_with_its_line(folder):
    done = run(folder, 'operate: {operator: "rules:od"}')
    assert done.code == 2
    assert "p.yaml:5:25: stages[1].operate.operator: module 'rules' has no operator 'od' (did you" in done.stderr


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="env.sh activates .venv, which this test doesn't run in")
def test_a_literal_launch_line(folder):
    line = (
        f"source '{ROOT}/elements/env.sh' >/dev/null && gst-launch-1.0 -q filesrc location=a.mp4 ! decodebin ! "
        "nvvideoconvert ! 'video/x-raw(memory:NVMM)' ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=360 ! "
        "pyinfer model-path=m.onnx ! pymetafilter drop='blue;red' name=f ! fakesink"
    )
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd=folder, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_recording_runs_again_through_the_same_stages(folder):
    stages = ("filter: {drop: [green]}", 'operate: {operator: "rules:odd"}')
    assert run(folder, "track: {}").code == 0
    (folder / "out.jsonl").rename(folder / "recorded.jsonl")
    assert run(folder, "track: {}", *stages).code == 0
    direct = events(folder / "out.jsonl")
    done = gstorch("replay", "recorded.jsonl", "p.yaml", "--json", cwd=folder)
    assert done.code == 0, done.stderr
    again = events(folder / "out.jsonl")
    by_place = {(line["source"], line["frame"]): line for line in again}
    for line in direct:
        other = by_place[line["source"], line["frame"]]
        assert other.get("events") == line.get("events")
        assert [o["label"] for o in other["objects"]] == [o["label"] for o in line["objects"]]
    recorded = [o for line in events(folder / "recorded.jsonl") for o in line["objects"]]
    green = sum(o["label"] == "green" for o in recorded)
    assert green > 0
    counted = json.loads(done.stdout)["operators"]["filter"]
    assert counted == {"objects_seen": len(recorded), "objects_removed": green}
